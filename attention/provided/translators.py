"""Train the translators of lessons 02, 03 and 10, measure them, and load trained ones by name.

Trained weights are in data/checkpoints/, with the losses of their training.
`python -m attention.provided.translators` makes them again, all or those named.
"""

import argparse
import contextlib
import importlib
import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attention.provided import data, model_file
from attention.provided.data import Batch, Corpus, Pair
from attention.provided.descent import descend, fewer
from attention.provided.files import ROOT
from attention.provided.model_file import ModelFileError
from attention.provided.progress import Bar

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

# name: module, class and sizes. The class is imported when it is asked for, since the modules of a
# lesson are not there while it is graded.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sequence_to_sequence": ("sequence_to_sequence", "Seq2Seq", {}),
    "sequence_to_sequence_reversed": ("sequence_to_sequence", "Seq2Seq", {"reverse": True}),
    "sequence_to_sequence_128_numbers": ("sequence_to_sequence", "Seq2Seq", {"d_state": 128}),
    "sequence_to_sequence_3000_steps": ("sequence_to_sequence", "Seq2Seq", {}),
    "bahdanau_attention": ("bahdanau_attention", "BahdanauTranslator", {}),
    "transformer": ("transformer", "Transformer", SMALL),
    "transformer_tied": ("transformer", "Transformer", SMALL | {"tied": "target"}),
}
STEPS_OF = {"sequence_to_sequence_3000_steps": 3000}  # all others: STEPS

Loss = Callable[[Tensor, Tensor], Tensor]


def train(
    model: nn.Module,
    batches: Iterable[Batch],
    steps: int,
    loss: Loss | None = None,
    learning_rate: float = LEARNING_RATE,
) -> list[float]:
    """Train a translator by teacher forcing with Adam; returns the loss of every step.

    batches  an iterable of at least `steps` Batches
    loss     a function of (logits, target), by default `masked_cross_entropy` of lesson 02

    The learning rate rises for a tenth of the steps and then falls to 0 in a straight line. While
    nbgrader runs the notebook, 5 steps are taken: enough to see that it works.
    """
    loss = loss or _from_lesson("sequence_to_sequence", "masked_cross_entropy")
    with one_thread():
        return _train(model, batches, steps, loss, learning_rate)


def _from_lesson(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"attention.{module}"), name)


def _train(
    model: nn.Module, batches: Iterable[Batch], steps: int, loss: Loss, learning_rate: float
) -> list[float]:
    steps = fewer(steps)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    shape = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps))
    )
    values = (
        loss(model(*_sources(model, batch), batch.target), batch.target)
        for batch, _ in zip(batches, range(steps), strict=False)
    )
    with Bar(steps) as bar:
        return descend(model, values, optimizer, shape, bar, max_norm=1.0)


def _sources(model: nn.Module, batch: Batch) -> tuple[Tensor, ...]:
    """What a translator is told of the source: a Transformer finds the padding by itself."""
    takes_lengths = "lengths" in inspect.signature(model.forward).parameters
    return (batch.source, batch.lengths) if takes_lengths else (batch.source,)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one core: as fast for small matrices, and sums in the same order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def translations(model: Any, corpus: Corpus, pairs: Sequence[Pair]) -> list[str]:
    """Return the model's translation of every pair's source, as texts."""
    batch = corpus.batch(pairs)
    with one_thread():
        written = model.translate(*_sources(model, batch))
    return ["".join(corpus.target_vocabulary.decode(row)) for row in written]


def accuracy_by_digits(model: Any, corpus: Corpus, at_most: int = 100) -> dict[int, float]:
    """Return {number of digits: share of test numbers translated without any error}.

    Lengths of which there are fewer than 10 test numbers are left out. While nbgrader runs the
    notebook, 10 numbers of each length are translated.
    """
    return {
        digits: _exact(translations(model, corpus, pairs), pairs)
        for digits, pairs in corpus.test_by_digits(fewer(at_most, 10)).items()
        if len(pairs) >= 10
    }


def exact_match(model: Any, corpus: Corpus, at_most: int = 500) -> float:
    """Return the share of held-out numbers, drawn from all lengths, translated without any error.

    While nbgrader runs the notebook, 10 numbers are translated.
    """
    count = min(fewer(at_most, 10), len(corpus.test))
    pairs = random.Random(SEED).sample(corpus.test, count)
    return _exact(translations(model, corpus, pairs), pairs)


def _exact(texts: Sequence[str], pairs: Sequence[Pair]) -> float:
    return sum(text == pair[2] for text, pair in zip(texts, pairs, strict=True)) / len(pairs)


def size(model: nn.Module) -> int:
    """Return how many parameters a model has."""
    return sum(parameter.numel() for parameter in model.parameters())


def trained(name: str) -> tuple[Any, Corpus]:
    """Return the trained model called ``name``, ready to translate, and its corpus.

    Raises KeyError, with the names there are, for an unknown name, and ModelFileError if its file
    is missing, damaged or altered.
    """
    if name == "numbers":
        return _of_the_training_command()
    if name not in MODELS:
        names = ", ".join([*MODELS, "numbers"])
        raise KeyError(f"no trained model is called {name!r}; there are: {names}")
    model, corpus = _untrained(name)
    load(model, name)
    return model, corpus


def _of_the_training_command() -> tuple[Any, Corpus]:
    """The model "numbers", which `python -m attention.train numbers` trained."""
    from attention.train.model import load_model

    path = CHECKPOINTS / "numbers.safetensors"
    with _made_again(f"python -m attention.train numbers --export {path}"):
        model, _, _ = load_model(path)
    return model, data.numbers()


def _untrained(name: str) -> tuple[Any, Corpus]:
    module, kind, sizes = MODELS[name]
    corpus = data.numbers()
    vocabularies = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    return _from_lesson(module, kind)(*vocabularies, **sizes), corpus


def load(model: nn.Module, name: str) -> list[float]:
    """Copy the trained weights called ``name`` into a model, and return their training losses.

    Raises ModelFileError if the file is missing, damaged, altered, or of another model.
    """
    path = CHECKPOINTS / f"{name}.safetensors"
    with _made_again(f"python -m attention.provided.translators {name}"):
        weights, about = model_file.load(path)
        model_file.put(weights, model, path)
    model.eval()
    losses: list[float] = about["losses"]
    return losses


@contextlib.contextmanager
def _made_again(command: str) -> Iterator[None]:
    """Let what is wrong with a file say which command makes it again."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{error}; `{command}` makes it again") from None


def remake(name: str, folder: Path = CHECKPOINTS, steps: int | None = None) -> tuple[Any, Corpus]:
    """Train the model called ``name`` from its seed, and store it; returns model and corpus."""
    steps = steps or STEPS_OF.get(name, STEPS)
    torch.manual_seed(SEED)
    model, corpus = _untrained(name)
    losses = train(model, corpus.batches(BATCH, steps, SEED), steps)
    folder.mkdir(parents=True, exist_ok=True)
    about = {"losses": [round(loss, 4) for loss in losses]}
    model_file.save(folder / f"{name}.safetensors", model_file.weights_of(model), about)
    return model, corpus


def main(arguments: Sequence[str] | None = None) -> None:
    """Remake the checkpoints named, all if none is; print the accuracy by number of digits."""
    parser = argparse.ArgumentParser(
        prog="python -m attention.provided.translators",
        description="Train the models of lessons 02, 03 and 10 again and store their weights.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(MODELS)}; or all")
    parser.add_argument(
        "--to", type=Path, default=CHECKPOINTS, help="folder (default: data/checkpoints)"
    )
    parser.add_argument("--steps", type=int, help="(default: those of the model)")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in MODELS:
            parser.error(f"no model is called {name!r}; there are: {', '.join(MODELS)}")
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps must be at least 1, not {options.steps}")
    for name in options.names or MODELS:
        accuracy = accuracy_by_digits(*remake(name, options.to, options.steps))
        shown = "  ".join(f"{digits} digits {share:.2f}" for digits, share in accuracy.items())
        print(f"{name}: {shown}")


if __name__ == "__main__":
    main()
