"""How a result of another shape relates to the right one, by its numbers or by its sizes alone."""

import math
from collections.abc import Iterator

import torch

from autograder.checking.asking.questions import Question
from autograder.checking.toolbox.same_tensors import pairs_of, same


def of_shapes(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    """The first relation between tensors of two shapes that holds, as a sentence, or ''."""
    if got.numel() == expected.numel():
        if same(got.reshape(expected.shape), expected):
            return "The numbers and their order are right; only the shape differs."
        for pair in pairs_of(got.dim()):
            swapped = got.transpose(*pair)
            if swapped.shape == expected.shape and same(swapped, expected):
                return f"The result is right once its axes {pair[0]} and {pair[1]} are exchanged."
    if not got.is_floating_point() or not expected.is_floating_point():
        return ""
    for axis, words, reduced in _reduced(got):
        if same(reduced, expected) and not _vanishes(expected):
            return f"The result has an axis too many: {words} over axis {axis} it is right."
    for axis, words, reduced in _reduced(expected):
        if same(got, reduced) and not _vanishes(got):
            return f"The result is the right one {words} over its axis {axis}."
    return ""


def _vanishes(x: torch.Tensor) -> bool:
    """Whether all is 0 but for rounding: sums and means are alike then."""
    return bool((x.abs() < 1e-9).all())


def _reduced(x: torch.Tensor) -> Iterator[tuple[int, str, torch.Tensor]]:
    for axis, size in enumerate(x.shape):
        if size:
            yield axis, "added up", x.sum(axis)
            yield axis, "averaged", x.mean(axis)


def of_sizes(result: object, right: object) -> str:
    """What the sizes of two tensors show, whatever their numbers: a sentence, or ''."""
    if not isinstance(result, torch.Tensor) or not isinstance(right, torch.Tensor):
        return ""
    got, expected = list(result.shape), list(right.shape)
    if got == expected:
        return ""
    if sorted(got) == sorted(expected):
        return "The shape is the right one with its axes in another order."
    if len(got) == len(expected) + 1 and _without_one(got, expected):
        return "The shape has one axis of size 1 too many."
    if len(got) + 1 == len(expected) and _without_one(expected, got):
        return "The shape lacks an axis of size 1."
    if math.prod(got) == math.prod(expected) and _merged(got, expected):
        return "Neighbouring axes of the right shape are merged into one."
    return ""


def _without_one(longer: list[int], shorter: list[int]) -> bool:
    places = (place for place, size in enumerate(longer) if size == 1)
    return any(longer[:place] + longer[place + 1 :] == shorter for place in places)


def _merged(got: list[int], expected: list[int]) -> bool:
    """Whether ``got`` is ``expected`` with one run of neighbours multiplied."""
    run = len(expected) - len(got) + 1
    return run > 1 and any(
        expected[:n] + [math.prod(expected[n : n + run])] + expected[n + run :] == got
        for n in range(len(got))
    )
