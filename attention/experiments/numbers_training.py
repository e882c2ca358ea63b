"""A training of the numbers translator in pieces, for lessons 11 to 14.

The schedule, an untrained model, its loss, one update, batches of equal length, and what is
measured on held-out numbers.
"""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided.data.numbers import Batch, Corpus, Pair, numbers
from attention.provided.data.tokens import PAD
from attention.provided.models import translators
from attention.provided.progress import Bar
from attention.provided.training_steps import fewer
from attention.transformer import Transformer

ANSWERS = "training"  # batches by tokens: hidden in its grading

MAX_TOKENS, SENTENCES = 2500, 55  # of a batch; 55 sentences make about as many tokens


def rate(step: int, schedule: str, peak: float, warmup: int) -> float:
    """Return the learning rate of a step, from 1.

    schedule  "constant"; "rise": a line up to the peak, which is kept; "noam": the same line, then
              down with 1 / √step
    """
    if schedule == "constant":
        return peak
    if step < warmup:
        return peak * step / warmup
    return peak * (math.sqrt(warmup / step) if schedule == "noam" else 1.0)


def loss_of(model: nn.Module, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy per real letter of a batch, ()."""
    logits = model(batch.source, batch.target).flatten(0, 1)
    target = batch.target.flatten()
    return F.cross_entropy(logits, target, ignore_index=PAD, label_smoothing=smoothing)


def fresh(corpus: Corpus, seed: int = translators.SEED, **sizes: Any) -> Transformer:
    """Return an untrained Transformer of lesson 10 for a corpus.

    sizes  those that are not translators.SMALL's, by name
    """
    torch.manual_seed(seed)
    vocabularies = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    return Transformer(*vocabularies, **translators.SMALL | sizes)


def gradients_of(model: nn.Module, batch: Batch) -> list[Tensor]:
    """Return the gradients of a batch's mean loss per letter, one tensor a parameter."""
    model.zero_grad()
    loss_of(model, batch).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Tensor,
    max_norm: float = math.inf,
    norms: list[float] | None = None,
) -> float:
    """Take one step; returns the loss before it, and appends the gradient's length to ``norms``."""
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if norms is not None:
        norms.append(norm.item())
    optimizer.step()
    return loss.item()


def buckets_of(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Group pairs by the length of their German, at most MAX_TOKENS letters in each group."""
    found: list[list[Pair]] = [[]]
    for pair in sorted(pairs, key=lambda pair: len(pair[2])):
        if (len(found[-1]) + 1) * (len(pair[2]) + 1) > MAX_TOKENS:
            found.append([])
        found[-1].append(pair)
    return found


def held_out_batches(corpus: Corpus, count: int = 150) -> list[Batch]:
    """Return so many numbers that no training has seen, in batches of 50."""
    pairs = sorted(random.Random(1).sample(corpus.test, count), key=lambda pair: len(pair[2]))
    return [corpus.batch(pairs[begin : begin + 50]) for begin in range(0, count, 50)]


def batches_in(corpus: Corpus, order: str, seed: int) -> Iterator[Batch]:
    """Yield batches without end, epoch after epoch.

    order  "shuffled buckets", "buckets": the shortest first, or "random batches"
    """
    draw, pairs = random.Random(seed), corpus.train
    buckets = buckets_of(pairs)
    while True:
        if order == "random batches":
            mixed, n = draw.sample(pairs, len(pairs)), SENTENCES
            buckets = [mixed[begin : begin + n] for begin in range(0, len(mixed), n)]
        elif order == "shuffled buckets":
            draw.shuffle(buckets)
        yield from (corpus.batch(bucket) for bucket in buckets)


def strange(batch: Batch, vocab_size: int, seed: int) -> Batch:
    """Return the same sources with letters drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    letters = torch.randint(3, vocab_size, batch.target.shape, generator=generator)
    target = letters.where(batch.target != PAD, batch.target)
    return Batch(batch.source, batch.lengths, target)


def numbered_batches(
    steps: int, losses: Sequence[float]
) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """Yield (number, (source, target)): buckets of the training numbers, in a new order each epoch.

    losses  those of the steps so far: the last one stands in the progress bar
    """
    corpus, steps = numbers(), fewer(steps, 10)
    buckets, number = buckets_of(corpus.train), 0
    with Bar(steps) as bar:
        for epoch in range(steps):
            for pairs in random.Random(epoch).sample(buckets, len(buckets)):
                number, batch = number + 1, corpus.batch(pairs)
                yield number, (batch.source, batch.target)
                bar.update(number, losses[-1])
                if number == steps:
                    return


def held_out() -> list[tuple[Tensor, Tensor]]:
    """Return 150 numbers that no training has seen, in three batches (source, target)."""
    return [(batch.source, batch.target) for batch in held_out_batches(numbers())]


def copy_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a checkpoint: a copy of the model's weights, which go on changing."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def padded_share(lengths: Sequence[int], max_tokens: int) -> float:
    """Return the share of PAD if batches are filled with texts in this order."""
    padded = count = longest = 0
    for length in lengths:
        if max(longest, length) * (count + 1) > max_tokens:  # this batch is full
            padded, count, longest = padded + count * longest, 0, 0
        count, longest = count + 1, max(longest, length)
    return 1 - sum(lengths) / (padded + count * longest)


def entropy() -> float:
    """Return the entropy of how frequent the letters of the training numbers are, in nats."""
    corpus = numbers()
    letters = corpus.batch(corpus.train).target
    shares = letters[letters != PAD].bincount() / (letters != PAD).sum()
    return -(shares * shares.clamp(min=1e-9).log()).sum().item()


def evaluate(model: nn.Module, batches: Sequence[Batch]) -> dict[str, float]:
    """Return loss per letter, share of right letters, and how sure the model is of wrong ones."""
    model.eval()
    loss, letters, right, sure = 0.0, 0, 0, 0.0
    with torch.no_grad():
        for batch in batches:
            real = batch.target != PAD
            log_p = model(batch.source, batch.target)[real].log_softmax(-1)  # (letters, V)
            target = batch.target[real]
            best, guess = log_p.max(-1)
            wrong = guess != target
            loss += F.nll_loss(log_p, target, reduction="sum").item()
            sure += best.exp()[wrong].sum().item()
            letters, right = letters + len(target), right + int((~wrong).sum())
    model.train()
    wrong_letters = max(1, letters - right)
    return {"loss": loss / letters, "right": right / letters, "sure": sure / wrong_letters}
