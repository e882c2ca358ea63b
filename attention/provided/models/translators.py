"""Train a translator of numbers, measure it, and read the stored weights of one.

A translator is a model of lesson 02, 03 or 10, or any with the same calls. Trained weights are in
data/checkpoints/, with the losses of their training; attention/train/shipped.py makes them.
"""

import contextlib
import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attention.provided.data.numbers import Batch, Corpus, Pair
from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.provided.models.model_file import ModelFileError
from attention.provided.progress import Bar
from attention.provided.training_steps import fewer, one_thread

CHECKPOINTS = ROOT / "data" / "checkpoints"
STEPS, BATCH, LEARNING_RATE, SEED = 300, 64, 6e-3, 0

# A Transformer for two cores. It sees hardly any number twice, so it needs no dropout.
SMALL: dict[str, Any] = {
    "d_model": 64,
    "n_heads": 4,
    "d_ff": 128,
    "n_layers": 2,
    "dropout": 0.0,
    "fused": True,
}

Loss = Callable[[Tensor, Tensor], Tensor]


def train(
    model: nn.Module,
    batches: Iterable[Batch],
    steps: int,
    loss: Loss,
    learning_rate: float = LEARNING_RATE,
) -> list[float]:
    """Train a translator by teacher forcing with Adam; returns the loss of every step.

    batches  an iterable of at least `steps` Batches
    loss     a function of (logits, target), as `masked_cross_entropy` of lesson 02

    While nbgrader runs the notebook, 5 steps are taken: enough to see that it works.
    """
    with one_thread():
        return _train(model, batches, steps, loss, learning_rate)


def _train(
    model: nn.Module, batches: Iterable[Batch], steps: int, loss: Loss, learning_rate: float
) -> list[float]:
    steps = fewer(steps)
    optimizer, losses = adam(model, steps, learning_rate), list[float]()
    model.train()
    with Bar(steps) as bar:
        for batch, step in zip(batches, range(steps), strict=False):
            optimizer.zero_grad()
            logits = model(*_sources(model, batch), batch.target)
            value = loss(logits, batch.target)
            value.backward()
            optimizer.step()
            losses.append(value.item())
            bar.update(step + 1, losses[-1])
    model.eval()
    return losses


def adam(
    model: nn.Module, steps: int, learning_rate: float = LEARNING_RATE
) -> torch.optim.Optimizer:
    """Return Adam for a training of so many steps, whose `step` does two more things.

    Gradients are shortened to the norm 1 if they are longer. The learning rate rises for a tenth of
    the steps and then falls to 0 in a straight line.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps))
    )

    def shorten(*_: Any) -> None:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    optimizer.register_step_pre_hook(shorten)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    return optimizer


def _sources(model: nn.Module, batch: Batch) -> tuple[Tensor, ...]:
    """What a translator is told of the source: a Transformer finds the padding by itself."""
    takes_lengths = "lengths" in inspect.signature(model.forward).parameters
    return (batch.source, batch.lengths) if takes_lengths else (batch.source,)


def translations(model: Any, corpus: Corpus, pairs: Sequence[Pair]) -> list[str]:
    """Return the model's translation of every pair's source, as texts."""
    batch = corpus.batch(pairs)
    length = batch.target.shape[1]
    longer = {"max_length": length} if length > 100 else {}  # 100 is what they write otherwise
    with one_thread():
        return texts_of(corpus, model.translate(*_sources(model, batch), **longer))


def accuracy_by_digits(model: Any, corpus: Corpus, at_most: int = 100) -> dict[int, float]:
    """Return {number of digits: share of test numbers translated without any error}.

    Lengths of which there are fewer than 10 test numbers are left out. While nbgrader runs the
    notebook, 10 numbers of each length are translated.
    """
    return {
        digits: share_right(translations(model, corpus, pairs), [pair[2] for pair in pairs])
        for digits, pairs in corpus.test_by_digits(fewer(at_most, 10)).items()
        if len(pairs) >= 10
    }


def exact_match(model: Any, corpus: Corpus, at_most: int = 500) -> float:
    """Return the share of held-out numbers, drawn from all lengths, translated without any error.

    While nbgrader runs the notebook, 10 numbers are translated.
    """
    count = min(fewer(at_most, 10), len(corpus.test))
    pairs = random.Random(SEED).sample(corpus.test, count)
    return share_right(translations(model, corpus, pairs), [pair[2] for pair in pairs])


def size(model: nn.Module) -> int:
    """Return how many parameters a model has."""
    return sum(parameter.numel() for parameter in model.parameters())


def long_numbers(corpus: Corpus, each: int = 20) -> tuple[Tensor, list[str]]:
    """Return held-out numbers of three to six digits: ids (B, T_k), and the texts that are wanted.

    each  how many of every length; the short ones come first

    While nbgrader runs the notebook, there are 2 of every length.
    """
    groups = corpus.test_by_digits(fewer(each, 2))
    pairs = [pair for digits, some in groups.items() if digits > 2 for pair in some]
    return corpus.batch(pairs).source, [pair[2] for pair in pairs]


def texts_of(corpus: Corpus, ids: Iterable[Tensor]) -> list[str]:
    """Return the German texts of rows of ids, (B, T), each up to its EOS."""
    return ["".join(corpus.target_vocabulary.decode(row)) for row in ids]


def share_right(texts: list[str], wanted: list[str]) -> float:
    """Return the share of the texts that are without any error."""
    return sum(one == two for one, two in zip(texts, wanted, strict=True)) / len(texts)


def load(model: nn.Module, name: str) -> list[float]:
    """Copy the trained weights called ``name`` into a model, and return their training losses.

    Raises ModelFileError if the file is missing, damaged, altered, or of another model.
    """
    path = CHECKPOINTS / f"{name}.safetensors"
    with made_again(f"python -m attention.train.shipped {name}"):
        weights, about = model_file.load(path)
        model_file.put(weights, model, path)
    model.eval()
    losses: list[float] = about["losses"]
    return losses


@contextlib.contextmanager
def made_again(command: str) -> Iterator[None]:
    """Let what is wrong with a file say which command makes it again."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{error}; `{command}` makes it again") from None
