"""The published chat model is taught by examples, with lesson 21's LowRank beside its matrices."""

import importlib
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attention.provided.data.tokens import EOS, pad
from attention.provided.models import model_file
from attention.provided.models.decoders import smollm2
from attention.provided.models.model_file import ModelFileError, Weights

SYSTEM = ""  # what the model is told before the questions: nothing, which is the quickest
Pairs = Sequence[tuple[str, str]]  # questions and their answers
Piece = Callable[..., Any]


def lesson() -> Any:
    """The module of lesson 21; ValueError if it is not in this copy, as in a student's before."""
    try:
        return importlib.import_module("attention.answers")
    except ModuleNotFoundError as error:
        raise ValueError(f"this needs {error.name}, lesson 21's, which is not here yet") from None


def insert(model: Any, LowRank: Piece, rank: int) -> None:
    """Put an update of this rank beside each matrix of a ModernDecoder's layers.

    Nothing else learns.
    """
    model.requires_grad_(False)
    for part, name, child in _inside(model):
        if isinstance(child, nn.Linear):
            setattr(part, name, LowRank(child, rank))


def merge(model: Any) -> None:
    """Put linear layers that compute the same in the places of the updates."""
    for part, name, child in _inside(model):
        if hasattr(child, "merged"):
            setattr(part, name, child.merged())


def _inside(model: Any) -> Iterator[tuple[nn.Module, str, Any]]:
    """What attentions and feed-forward networks consist of: each with what has it, and its name."""
    for layer in model.layers:
        for part in (layer.attention, layer.feed_forward):
            yield from ((part, name, child) for name, child in list(part.named_children()))


def asked(tokens: Any, question: str) -> list[int]:
    """The ids of a question, in the form in which `attention.chat` asks a model that was taught.

    tokens  smollm2.Tokens
    """
    ids: list[int] = tokens.encode(smollm2.prompt([("user", question)], SYSTEM))
    return ids


def batch(tokens: Any, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Questions as they are asked, each with its answer and its end.

    tokens   smollm2.Tokens
    returns  ids (B, T), filled up with PAD, and how many of each row are the question, (B,)
    """
    questions = [asked(tokens, question) for question, _ in pairs]
    answers = [tokens.encode(answer) + [EOS] for _, answer in pairs]
    ids = pad([one + answer for one, answer in zip(questions, answers, strict=True)])
    return ids, torch.tensor([len(one) for one in questions])


def teach(
    model: Any,
    tokens: Any,
    pairs: Pairs,
    answer_loss: Piece,
    steps: int,
    rate: float,
    seed: int = 0,
    size: int = 8,
    bfloat16: bool = False,
) -> Iterator[float]:
    """Take steps of training on examples that are drawn at random; yields the loss of each step.

    Whatever of the model requires a gradient learns, by AdamW, at a rate that falls to 0.

    tokens       smollm2.Tokens
    answer_loss  lesson 21's
    size         examples of a step
    bfloat16     factors of matrix products are rounded: quicker where the processor can multiply so
    """
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, rate, weight_decay=0.0)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    draw = random.Random(seed)
    for _ in range(steps):
        ids, lengths = batch(tokens, draw.sample(pairs, min(size, len(pairs))))
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            scores, _ = model(ids)
        loss = answer_loss(scores.float(), ids, lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
        yield loss.item()


def updates(model: nn.Module) -> Weights:
    """The numbers of the inserted updates, by their names."""
    named = model.named_parameters()
    return {name: weight.detach() for name, weight in named if name.endswith((".A", ".B"))}


def save(path: Path, model: nn.Module, rank: int) -> None:
    """Write the updates, and of which model they are; OSError, and nothing is written, if not."""
    model_file.save(path, updates(model), {"low_rank": smollm2.NAME, "rank": rank})


def load(path: Path, model: Any, LowRank: Piece) -> None:
    """Insert the updates of a file.

    Raises ModelFileError if the file is missing or damaged, or no update of this model.
    """
    weights, about = model_file.load(path)
    if about.get("low_rank") != smollm2.NAME:
        raise ModelFileError(
            f"{path} is no update of {smollm2.NAME}: python -m attention.teach makes one"
        )
    insert(model, LowRank, about["rank"])
    own = updates(model)
    if {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in own.items()}:
        raise ModelFileError(f"{path} is an update of another model: names or sizes differ")
    for name, weight in own.items():
        weight.copy_(weights[name])


def add(path: Path, model: Any) -> None:
    """Add the updates of a file to the matrices of a model; errors as in `lesson` and `load`."""
    load(path, model, lesson().LowRank)
    merge(model)
