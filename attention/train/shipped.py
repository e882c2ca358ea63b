"""The trained models that the course ships, by name, and how they are made again.

`python -m attention.train.shipped` trains the translators of lessons 02, 03 and 10 anew, all or
those named.
"""

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from attention.provided.data.numbers import Corpus, numbers
from attention.provided.models import model_file
from attention.provided.models.translators import (
    BATCH,
    CHECKPOINTS,
    SEED,
    SMALL,
    STEPS,
    accuracy_by_digits,
    load,
    made_again,
    train,
)

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
    from attention.train.core.model import load_model

    path = CHECKPOINTS / "numbers.safetensors"
    with made_again(f"python -m attention.train numbers --export {path}"):
        model, _, _ = load_model(path)
    return model, numbers()


def _untrained(name: str) -> tuple[Any, Corpus]:
    module, kind, sizes = MODELS[name]
    corpus = numbers()
    vocabularies = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    return _from_lesson(module, kind)(*vocabularies, **sizes), corpus


def _from_lesson(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"attention.{module}"), name)


def remake(name: str, folder: Path = CHECKPOINTS, steps: int | None = None) -> tuple[Any, Corpus]:
    """Train the model called ``name`` from its seed, and store it; returns model and corpus."""
    steps = steps or STEPS_OF.get(name, STEPS)
    torch.manual_seed(SEED)
    model, corpus = _untrained(name)
    loss = _from_lesson("sequence_to_sequence", "masked_cross_entropy")
    losses = train(model, corpus.batches(BATCH, steps, SEED), steps, loss)
    folder.mkdir(parents=True, exist_ok=True)
    about = {"losses": [round(loss, 4) for loss in losses]}
    model_file.save(folder / f"{name}.safetensors", model_file.weights_of(model), about)
    return model, corpus


def main(arguments: Sequence[str] | None = None) -> None:
    """Remake the checkpoints named, all if none is; print the accuracy by number of digits."""
    parser = argparse.ArgumentParser(
        prog="python -m attention.train.shipped",
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
