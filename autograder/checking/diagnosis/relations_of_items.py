"""How a list or a tuple relates to the right one: items missing, exchanged, in another order."""

from collections.abc import Callable
from typing import Any

import torch

from autograder.checking.diagnosis.forms import in_form
from autograder.checking.toolbox.describe_values import identical
from autograder.checking.toolbox.same_tensors import same, unpacked
from autograder.checking.toolbox.student_answer import ORDINALS

TENSORS = "torch.stack makes one tensor of a list of tensors, torch.tensor one of numbers."
ALONE = "It should be returned alone"


def of_lists(got: Any, expected: Any) -> str:
    """One relation between two lists, as a sentence, or ''."""
    if not got or not expected or identical(got, expected):
        return ""
    if len(got) == len(expected):
        return _reordered(got, expected)
    return _longer(got, expected)


def _reordered(got: Any, expected: Any) -> str:
    if identical(got, expected[::-1]):
        return "The items are right, but in reversed order."
    rest = list(got)
    for item in expected:
        place = next((n for n, one in enumerate(rest) if identical(one, item)), None)
        if place is None:
            return ""
        del rest[place]
    return "The items are right, but in another order."


def _longer(got: Any, expected: Any) -> str:
    """Items that are missing at the end, or too many there."""
    short, long = sorted((got, expected), key=len)
    if not identical(long[: len(short)], short):
        return ""
    count = len(long) - len(short)
    items, verb = ("one item", "is") if count == 1 else (f"{count} items", "are")
    if short is got:
        return f"At the end {items} {verb} missing; all else is right."
    return f"At the end there {verb} {items} too many; all else is right."


def of_list_for_tensor(got: Any, expected: torch.Tensor) -> str:
    """How one tensor is made of a list of tensors whose numbers are right, or ''."""
    tensors = got and all(isinstance(item, torch.Tensor) for item in got)
    if not tensors or len({item.shape for item in got}) != 1:
        whole = in_form(got, expected)
        right = isinstance(whole, torch.Tensor) and same(whole, expected)
        return f"The numbers are right, but they stand in lists. {TENSORS}" if right else ""
    whole = torch.stack(got)
    for axis in range(whole.dim()):
        if same(whole.movedim(0, axis), expected):
            return (
                "The numbers are right, but they stand in a list of tensors. "
                f"torch.stack(…, dim={axis}) makes one tensor of it."
            )
    return ""


def of_tuples(got: Any, expected: Any, between: Callable[[Any, Any], str]) -> str:
    """One relation of a tuple to what belongs in its place; ``between`` relates two items."""
    if not isinstance(expected, tuple):
        name = _which_is_right(got, expected)
        return name and f"The {name} item of the result is right. {ALONE}."
    if len(got) != len(expected):
        return f"The result has {len(got)} items instead of {len(expected)}."
    pairs = enumerate(zip(got, expected, strict=True))
    wrong = [place for place, pair in pairs if not _like(*pair)]
    if len(wrong) == 2 and _exchanged(got, expected, *wrong):
        first, second = (ORDINALS[place] for place in wrong)
        return f"The {first} and the {second} item of the result are exchanged."
    if len(wrong) != 1 or wrong[0] >= len(ORDINALS):
        return ""
    pair = got[wrong[0]], expected[wrong[0]]
    only = f"Of the result's items only the {ORDINALS[wrong[0]]} is wrong: "
    said = between(*pair)
    if said and not said.startswith(("True", "NaN")):
        said = said[0].lower() + said[1:]
    return said and only + said


def _exchanged(got: Any, expected: Any, one: int, other: int) -> bool:
    known = max(one, other) < len(ORDINALS)
    return known and _like(got[one], expected[other]) and _like(got[other], expected[one])


def _which_is_right(got: Any, expected: Any) -> str:
    """'first', if that item of a tuple is what belongs in its place, or ''."""
    found = (name for name, part in zip(ORDINALS, got, strict=False) if _like(part, expected))
    return next(found, "")


def _like(one: Any, other: Any) -> bool:
    """Whether two items are the same up to rounding, of the same type."""
    one, other = unpacked(one), unpacked(other)
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and same(one, other)
    return identical(one, other)
