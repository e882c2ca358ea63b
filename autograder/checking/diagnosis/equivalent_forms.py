"""Replies with the same numbers in another form: a float for a tensor of one number, a list for a
tuple, another precision. What is said of the numbers is true of both."""

from typing import Any

import torch

from autograder.checking.asking.questions import Replied
from autograder.checking.asking.right_form import UNSAID
from autograder.checking.toolbox.same_tensors import same as same_tensors
from autograder.inside.messages.values import same


def replied(one: Replied, other: Replied, right: Replied) -> bool:
    """Whether two replies hold the same numbers; where a refusal is right, its words are free."""
    if right.refuses() and one.refuses() and other.refuses() or one.agrees(other):
        return True
    values = one.kind == other.kind == "value" and one.modified == other.modified
    return values and alike(one.value, other.value)


def alike(one: Any, other: Any) -> bool:
    """Whether two values hold the same numbers, up to the rounding of the less precise of the two.

    A float counts as one in float32, in which it may have been computed.

    >>> alike([1.0, 2.0], torch.tensor([1.0, 2.0])), alike((1, None), [1.0, None]), alike(1.0, 1.01)
    (True, True, False)
    """
    if one is UNSAID or other is UNSAID:
        return True
    one, other = _unfolded(one, other), _unfolded(other, one)
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _same_numbers(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return same(one, other)


def _unfolded(value: Any, beside: Any) -> Any:
    """A number as a tensor, a tuple as a list, and a tensor as well, if it is beside either."""
    if isinstance(value, bool | int) and abs(value) < 2**63:
        return torch.tensor(int(value))
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float32)
    listed = isinstance(value, torch.Tensor) and value.ndim and isinstance(beside, list | tuple)
    return list(value) if listed or isinstance(value, tuple) else value


def _same_numbers(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.is_complex() or other.is_complex():
        return same(one, other)
    if not (one.is_floating_point() and other.is_floating_point()):
        one, other = one.double(), other.double()  # whole numbers are exact
    return same_tensors(one, other)
