"""Lesson 11: each part of a training, and what happens without it.

The numbers translator is trained with one thing changed. Each function trains from a seed on one
core, and returns plain numbers. Everything that the lesson lets a learner write is PyTorch's own
here, so a learner's answers do not enter.
"""

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, read
from attention.provided.data.numbers import Batch, Corpus, Pair, numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.models import translators
from attention.provided.progress import Bar
from attention.provided.training_steps import one_thread
from attention.sequence_to_sequence import masked_cross_entropy
from attention.transformer import Transformer

ANSWERS = "training"  # batches by tokens, the mean of checkpoints: hidden in its grading

WARMUP, PEAK = 40, 0.0073  # of the lesson's training
MAX_TOKENS, SENTENCES = 2500, 55  # of a batch; 55 sentences make about as many tokens
SIZES = (1, 4, 16, 64, 256)  # of batches whose gradients are compared
KEPT = 5  # checkpoints for the mean
DIVERGED = 99.0  # stands for a loss that is no number any more


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


def first_steps(
    n_layers: int,
    schedule: str,
    peak: float,
    seed: int,
    optimizer: str = "Adam",
    steps: int = 60,
    warmup: int = 20,
) -> dict[str, Any]:
    """Train a post-norm Transformer on batches of 32; returns the mean loss of the last 5 steps.

    optimizer  "Adam" or "SGD", with a momentum of 0.9
    """
    rates = [rate(step, schedule, peak, warmup) for step in range(1, steps + 1)]
    last = statistics.fmean(losses_at(rates, n_layers, seed, optimizer)[-5:])
    return {"loss": round(last, 3) if math.isfinite(last) else DIVERGED}


def losses_at(
    rates: Sequence[float],
    n_layers: int = 2,
    seed: int = 0,
    optimizer: str = "Adam",
    label: str = "training",
) -> list[float]:
    """Train a fresh post-norm Transformer with these learning rates; the losses, one a step.

    n_layers   on each side
    optimizer  "Adam" or "SGD", with a momentum of 0.9
    """
    corpus = numbers()
    losses: list[float] = []
    with one_thread(), Bar(len(rates), label) as bar:
        model = fresh(corpus, seed, n_layers=n_layers, pre_norm=False)
        used: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), 0.0, momentum=0.9)
        if optimizer == "Adam":
            used = torch.optim.Adam(model.parameters(), 0.0, betas=(0.9, 0.98), eps=1e-9)
        batches = corpus.batches(32, len(rates), seed)
        for now, batch in zip(rates, batches, strict=True):
            used.param_groups[0]["lr"] = now
            losses.append(_update(model, used, loss_of(model, batch)))
            bar.update(len(losses), losses[-1])
    return losses


def whole_training(
    seed: int,
    order: str = "shuffled buckets",
    smoothing: float = 0.1,
    max_norm: float = 1.0,
    schedule: str = "noam",
    steps: int = 120,
    every: int = 10,
) -> dict[str, Any]:
    """Train as lesson 11 does, or with one thing changed.

    order      "shuffled buckets", "buckets": the shortest first, or "random batches"
    smoothing, max_norm, schedule  of labels, gradients and learning rate
    returns    loss_of_N and right_of_N: held-out loss, not smoothed, and share of right letters,
               with the mean of the last N checkpoints, 1, 3 and 5; there is one every so many steps
    """
    corpus = numbers()
    kept: list[dict[str, Tensor]] = []
    with one_thread(), Bar(steps) as bar:
        model = fresh(corpus, seed)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        for step, batch in zip(range(1, steps + 1), _batches(corpus, order, seed), strict=False):
            adam.param_groups[0]["lr"] = rate(step, schedule, PEAK, WARMUP)
            loss = _update(model, adam, loss_of(model, batch, smoothing), max_norm)
            bar.update(step, loss)
            if step % every == 0 and step > steps - KEPT * every:
                kept.append({name: x.clone() for name, x in model.state_dict().items()})
        result: dict[str, Any] = {}
        for count in (1, 3, KEPT):
            model.load_state_dict(_mean(kept[-count:]))
            outside = evaluate(model, _held_out(corpus))
            result[f"loss_of_{count}"] = round(outside["loss"], 4)
            result[f"right_of_{count}"] = round(outside["right"], 4)
    return result


def few_sentences(
    n_pairs: int, smoothing: float, seed: int, steps: int = 150, every: int = 10
) -> dict[str, Any]:
    """Train on few pairs, again and again; returns losses on them and on held-out pairs.

    returns  lists with a number every ``every`` steps: train and held_out (loss, not smoothed),
             right (share of held-out letters), sure (mean probability of the model's own letter
             where it is wrong)
    """
    corpus = numbers()
    pairs = random.Random(seed).sample(corpus.train, n_pairs)
    own, held_out = [corpus.batch(pairs[:200])], _held_out(corpus)
    found: dict[str, list[float]] = {"train": [], "held_out": [], "right": [], "sure": []}
    draw = random.Random(seed)
    with one_thread(), Bar(steps) as bar:
        model = fresh(corpus, seed)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        for step in range(1, steps + 1):
            adam.param_groups[0]["lr"] = rate(step, "rise", 0.003, 40)
            batch = corpus.batch(draw.sample(pairs, 32))
            bar.update(step, _update(model, adam, loss_of(model, batch, smoothing), 1.0))
            if step % every == 0:
                outside = evaluate(model, held_out)
                row = {"train": evaluate(model, own)["loss"], "held_out": outside.pop("loss")}
                for name, value in (row | outside).items():
                    found[name].append(round(value, 4))
    return dict(found)


def strange_batch(
    optimizer: str, max_norm: float, seed: int, before: int = 60, after: int = 21
) -> dict[str, Any]:
    """Train, then learn from one batch of wrong letters, then go on as before.

    optimizer  "AdamW" or "SGD"
    returns    held_out: the loss before the strange batch, after it, and then every 10 steps;
               norm: length of the strange batch's gradient over that of the batch before it
    """
    corpus = numbers()
    held_out, found = _held_out(corpus, 100), []
    with one_thread(), Bar(before + after) as bar:
        model = fresh(corpus, seed)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        sgd = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        norms: list[float] = []
        for step, batch in enumerate(corpus.batches(32, before + after, seed), start=1):
            used = adam if optimizer == "AdamW" or step <= before // 2 else sgd
            adam.param_groups[0]["lr"] = rate(step, "rise", 0.005, 40)
            if step == before + 1:
                found.append(evaluate(model, held_out)["loss"])
                batch = _strange(batch, len(corpus.target_vocabulary), seed)
            bar.update(step, _update(model, used, loss_of(model, batch), max_norm, norms))
            if step > before and step % 10 == 1:
                found.append(evaluate(model, held_out)["loss"])
    ratio = norms[before] / statistics.fmean(norms[before - 10 : before])
    return {"held_out": [round(loss, 4) for loss in found], "norm": round(ratio, 1)}


def gradient_noise(seed: int, steps: int, reference: int = 4000) -> dict[str, Any]:
    """Train as lesson 10 does and stop after so many steps; how alike are gradients of batches?

    steps      of 300, with the learning rates of all 300
    reference  pairs whose gradient stands for that of all
    returns    "angles of N": degrees between the gradient of a batch of N pairs and the reference,
               for six batches; and loss, on the pairs of the reference
    """
    corpus, draw = numbers(), random.Random(seed)
    model = fresh(corpus, seed)
    if steps:
        batches = corpus.batches(translators.BATCH, steps, seed)
        translators.train(model, batches, translators.STEPS, masked_cross_entropy)
    with one_thread():
        loss, whole = _gradient(model, corpus, draw.sample(corpus.train, reference))
        found: dict[str, Any] = {"loss": round(loss, 4)}
        for size in SIZES:
            parts = [_gradient(model, corpus, draw.sample(corpus.train, size))[1] for _ in range(6)]
            likeness = F.cosine_similarity(torch.stack(parts), whole, dim=1).clamp(-1, 1)
            found[f"angles of {size}"] = [round(x, 1) for x in likeness.acos().rad2deg().tolist()]
    return found


def _gradient(model: nn.Module, corpus: Corpus, pairs: Sequence[Pair]) -> tuple[float, Tensor]:
    """The mean loss per letter of pairs, and its gradient as one long vector."""
    loss, letters = 0.0, sum(len(pair[2]) + 1 for pair in pairs)
    model.zero_grad()
    for begin in range(0, len(pairs), 250):
        batch = corpus.batch(pairs[begin : begin + 250])
        part = loss_of(model, batch) * (batch.target != PAD).sum() / letters
        part.backward()
        loss += part.item()
    gradients = (one.grad for one in model.parameters() if one.grad is not None)
    return loss, nn.utils.parameters_to_vector(gradients)


def angles() -> list[Axes]:
    """Draw how far gradients of batches point from that of 4,000 pairs; print the medians."""
    rows = seeds.where(read("training", "gradient noise"), reference=None)
    times = sorted({row["steps"] for row in rows})
    axes: list[Axes] = [*plots.panels(columns=len(times), width=3.4, height=2.5)]
    for ax, steps in zip(axes, times, strict=True):
        of = seeds.where(rows, steps=steps)
        named = {
            f"{size} pairs": [x for row in of for x in row[f"angles of {size}"]] for size in SIZES
        }
        medians = "  ".join(f"{label} {statistics.median(x):.0f}°" for label, x in named.items())
        print(f"after {steps:3d} steps, loss {of[0]['loss']:.3f} with seed 0:  {medians}")
        seeds.dots(named, ax, f"after {steps} steps", "degrees")
        ax.set(xlim=(-3, 120), xticks=[0, 30, 60, 90])
    return axes


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


def _update(
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


def _held_out(corpus: Corpus, count: int = 150) -> list[Batch]:
    pairs = sorted(random.Random(1).sample(corpus.test, count), key=lambda pair: len(pair[2]))
    return [corpus.batch(pairs[begin : begin + 50]) for begin in range(0, count, 50)]


def _batches(corpus: Corpus, order: str, seed: int) -> Iterator[Batch]:
    """Batches without end, epoch after epoch."""
    draw, pairs = random.Random(seed), corpus.train
    buckets = buckets_of(pairs)
    while True:
        if order == "random batches":
            mixed, n = draw.sample(pairs, len(pairs)), SENTENCES
            buckets = [mixed[begin : begin + n] for begin in range(0, len(mixed), n)]
        elif order == "shuffled buckets":
            draw.shuffle(buckets)
        yield from (corpus.batch(bucket) for bucket in buckets)


def buckets_of(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Group pairs by the length of their German, at most MAX_TOKENS letters in each group."""
    found: list[list[Pair]] = [[]]
    for pair in sorted(pairs, key=lambda pair: len(pair[2])):
        if (len(found[-1]) + 1) * (len(pair[2]) + 1) > MAX_TOKENS:
            found.append([])
        found[-1].append(pair)
    return found


def _strange(batch: Batch, vocab_size: int, seed: int) -> Batch:
    """The same sources with letters drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    letters = torch.randint(3, vocab_size, batch.target.shape, generator=generator)
    target = letters.where(batch.target != PAD, batch.target)
    return Batch(batch.source, batch.lengths, target)


def _mean(checkpoints: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    names = checkpoints[0]
    return {name: torch.stack([each[name] for each in checkpoints]).mean(0) for name in names}


SEEDS = 0, 1, 2
WHOLE: dict[str, Any] = {
    "order": "shuffled buckets",
    "smoothing": 0.1,
    "max_norm": 1.0,
    "schedule": "noam",
    "steps": 120,
}
CHANGES: list[dict[str, Any]] = [
    {},
    {"smoothing": 0.0},
    {"max_norm": 1e9},
    {"order": "random batches"},
    {"order": "buckets"},
]
SHORT = {"seed": 0, **WHOLE, "steps": 40}  # for the test
PEAKS = {2: (0.002, 0.005, 0.01, 0.02), 6: (0.001, 0.003, 0.008)}
RATES = [
    {"n_layers": n_layers, "schedule": schedule, "peak": peak, "optimizer": "Adam"}
    for n_layers, peaks in PEAKS.items()
    for peak in peaks
    for schedule in ("constant", "noam")
] + [
    {"n_layers": 2, "schedule": "noam", "peak": peak, "optimizer": "SGD"}
    for peak in (0.03, 0.1, 0.3, 1.0)
]
MORE = {"n_pairs": 300, "smoothing": 0.0, "steps": 150}
SHORT_MORE = MORE | {"seed": 0, "steps": 40}
SOON = {"n_layers": 6, "schedule": "noam", "peak": 0.008, "warmup": 5}
SHORT_SOON = SOON | {"seed": 0, "steps": 15}
SHORT_NOISE = {"seed": 0, "steps": 3, "reference": 200}

EXPERIMENTS = {
    "learning rates": Experiment(
        claim="Adam gets further than SGD in 60 steps; a warm-up widens the range of rates that "
        "work, and at 6 + 6 layers it reaches a lower loss than any constant rate tried",
        control="optimiser, schedule, highest rate or depth is changed; model, data and steps are "
        "kept",
        points=[{**rate, "seed": seed} for seed in SEEDS for rate in RATES],
        run=first_steps,
        again={**RATES[0], "seed": 0},
    ),
    "few sentences": Experiment(
        claim="where a model over-fits, smoothed labels make it less certain of its errors",
        control="smoothing 0 or 0.1; the 60 pairs, the order and the steps are kept",
        points=[
            {"n_pairs": 60, "smoothing": smoothing, "seed": seed, "steps": 150}
            for seed in SEEDS
            for smoothing in (0.0, 0.1)
        ]
        + [{"n_pairs": 60, "smoothing": 0.1, "seed": 0, "steps": 40}],
        run=few_sentences,
        again={"n_pairs": 60, "smoothing": 0.1, "seed": 0, "steps": 40},
    ),
    "more sentences": Experiment(
        claim="with 300 sentences a model gets much further on held-out ones than with 60",
        control="300 pairs, beside the 60 of “few sentences”; smoothing 0 and steps are kept",
        points=[MORE | {"seed": seed} for seed in SEEDS] + [SHORT_MORE],
        run=few_sentences,
        again=SHORT_MORE,
    ),
    "a shorter warm-up": Experiment(
        claim="at 6 + 6 layers and a rate of 0.008, 5 steps of warm-up end at a higher loss "
        "than 20",
        control="the steps of warm-up, beside the 20 of “learning rates”; all else is kept",
        points=[SOON | {"seed": seed} for seed in SEEDS] + [SHORT_SOON],
        run=first_steps,
        again=SHORT_SOON,
    ),
    "a strange batch": Experiment(
        claim="what a strange batch undoes when AdamW trains, clipped and not",
        control="clipping on or off; the strange batch and all others are kept",
        points=[
            {"optimizer": "AdamW", "max_norm": max_norm, "seed": seed, "before": 60}
            for seed in SEEDS
            for max_norm in (1.0, 1e9)
        ]
        + [{"optimizer": "AdamW", "max_norm": 1.0, "seed": 0, "before": 20}],
        run=strange_batch,
        again={"optimizer": "AdamW", "max_norm": 1.0, "seed": 0, "before": 20},
    ),
    "gradient noise": Experiment(
        claim="before any training the gradient of 64 pairs points where that of 4,000 does; after "
        "300 steps it hardly does",
        control="the steps of training, and the size of the batch; model and data are kept",
        points=[{"seed": seed, "steps": steps} for steps in (0, 60, 300) for seed in SEEDS]
        + [SHORT_NOISE],
        run=gradient_noise,
        again=SHORT_NOISE,
    ),
    "one part changed": Experiment(
        claim="what each part of the training changes, and the mean of the last checkpoints",
        control="one part changed at a time; everything else is kept",
        points=[{"seed": seed, **WHOLE, **change} for seed in SEEDS for change in CHANGES]
        + [SHORT],
        run=whole_training,
        again=SHORT,
    ),
}
CLAIMS = [
    Claim(
        "several batches, each weighted with its tokens, make the step of one big batch",
        control="one batch or three parts of it; weights and data are kept",
        seeds="exact, up to rounding",
        where="Exercise 11.4",
    ),
]
