"""Where in a result the wrong numbers stand."""

from collections.abc import Iterator

import torch

from autograder.checking.asking.questions import Question
from autograder.checking.toolbox.same_tensors import ENOUGH, same_places, tensors_of


def in_some_places(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    """Which places hold all that is wrong, of two tensors of one shape: a sentence, or ''."""
    if got.numel() < 2 * ENOUGH:
        return ""
    wrong = ~same_places(got, expected)
    if not wrong.any() or wrong.all():
        return ""
    for words, places in _named_places(wrong.shape, question):
        if torch.equal(wrong, ~places):
            return f"Values are right only {words}."
        if not (wrong & ~places).any() and wrong.sum() >= 0.5 * places.sum():
            return f"Values are wrong only {words}."
    return ""


def _named_places(shape: torch.Size, question: Question) -> Iterator[tuple[str, torch.Tensor]]:
    for axis, size in enumerate(shape):
        if size > 1:
            for name, index in (("first", 0), ("last", size - 1)):
                places = torch.zeros(shape, dtype=torch.bool)
                places.select(axis, index).fill_(True)
                yield f"at the {name} index of axis {axis}", places
    for argument in tensors_of(question):
        if argument.dtype == torch.bool:
            try:
                places = argument.broadcast_to(shape)
            except RuntimeError:
                continue
            yield "where a mask among the arguments is True", places
            yield "where a mask among the arguments is False", ~places
