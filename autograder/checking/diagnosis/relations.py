"""How a wrong reply relates to the right one: sentences that are true by construction.

Each relation of two tensors of one shape is a function of these and the question that returns a
sentence or ''; lists and tuples are related by their items. A sentence is said only if the numbers
show it, so it holds whatever the reason for it may be.
"""

import math
from typing import Any

import torch

from autograder.checking.asking.questions import Question
from autograder.checking.diagnosis.forms import in_form
from autograder.checking.toolbox.describe_values import identical
from autograder.checking.toolbox.same_tensors import (
    all_equal,
    comparable,
    name_of,
    rounding,
    same,
    tensors_of,
    unpacked,
)
from autograder.checking.toolbox.student_answer import ORDINALS

TENSORS = "torch.stack makes one tensor of a list of tensors, torch.tensor one of numbers."
ALONE = "It should be returned alone"


def between(got: Any, expected: Any, question: Question) -> str:
    """The first relation that holds between two replies, as a sentence, or ''."""
    if isinstance(got, list) and isinstance(expected, list):
        return _of_lists(got, expected)
    if isinstance(got, list) and isinstance(expected, torch.Tensor):
        return _of_list_for_tensor(got, expected)
    if isinstance(got, tuple):
        return _of_tuples(got, expected, question)
    got, expected = unpacked(got), unpacked(expected)
    if not isinstance(got, torch.Tensor) or not isinstance(expected, torch.Tensor):
        return ""
    if got.is_complex() or expected.is_complex():
        return ""
    if got.shape != expected.shape:
        alike = got.numel() == expected.numel() and same(got.reshape(expected.shape), expected)
        return "The numbers and their order are right; only the shape differs." * alike
    return next((said for one in OF_ONE_SHAPE if (said := one(got, expected, question))), "")


def _dtype(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if got.dtype == expected.dtype:
        return ""
    rtol, atol = rounding(got.dtype, expected.dtype)
    if not torch.allclose(got.double(), expected.double(), rtol=rtol, atol=atol, equal_nan=True):
        return ""
    return (
        f"The values are right up to rounding, but their type is {name_of(got.dtype)} instead of "
        f"{name_of(expected.dtype)}."
    )


def _not_a_number(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if not got.is_floating_point():
        return ""
    bad = ~torch.isfinite(got) & torch.isfinite(expected)
    if not bad.any() or not same(got[~bad], expected[~bad]):
        return ""
    nan, count = torch.isnan(got[bad]), int(bad.sum())
    kind = "NaN" if nan.all() else "NaN or infinite" if nan.any() else "infinite"
    if bad.all():
        if count == 1:
            return f"The result is {kind} where a finite number belongs."
        return f"All numbers are {kind} where finite ones belong."
    are, belong = ("is", "a finite one belongs") if count == 1 else ("are", "finite ones belong")
    return f"{count} of {bad.numel()} numbers {are} {kind} where {belong}; the rest is right."


def _factor(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if not comparable(got, expected):
        return ""
    nonzero = expected != 0
    ratios = got[nonzero].double() / expected[nonzero].double()
    if not all_equal(ratios) or not same(got[~nonzero], expected[~nonzero]):
        return ""
    factor = ratios.median().item()
    if not math.isfinite(factor) or abs(factor - 1) < 1e-5:
        return ""
    if factor == 0:
        return "Every number is 0."
    return f"Every number is {factor:.6g} times the expected one{_named_factor(factor, question)}."


def _named_factor(factor: float, question: Question) -> str:
    """' (√6, where 6 is a size of the arguments)' if one explains the factor; several do not."""
    sizes = {size for item in tensors_of(question) for size in item.shape if size > 1}
    found = {
        (text, size)
        for size in sizes
        for text, value in (
            (f"{size}", size),
            (f"√{size}", math.sqrt(size)),
            (f"1 / {size}", 1 / size),
            (f"1 / √{size}", 1 / math.sqrt(size)),
        )
        if math.isclose(factor, value, rel_tol=1e-5)
    }
    if len(found) != 1:
        return ""
    ((text, size),) = found
    where = "" if text == str(size) else f"{text}, where "
    return f" ({where}{size} is a size of the arguments)"


OF_ONE_SHAPE = (_dtype, _not_a_number, _factor)


def _of_lists(got: Any, expected: Any) -> str:
    """One relation between two lists, as a sentence, or ''."""
    if len(got) != len(expected) or identical(got, expected):
        return ""
    if identical(got, expected[::-1]):
        return "The items are right, but in reversed order."
    rest = list(got)
    for item in expected:
        place = next((n for n, one in enumerate(rest) if identical(one, item)), None)
        if place is None:
            return ""
        del rest[place]
    return "The items are right, but in another order."


def _of_list_for_tensor(got: Any, expected: torch.Tensor) -> str:
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


def _of_tuples(got: Any, expected: Any, question: Question) -> str:
    """One relation of a tuple to what belongs in its place."""
    if not isinstance(expected, tuple):
        parts = zip(ORDINALS, got, strict=False)
        name = next((name for name, part in parts if _like(part, expected)), "")
        return name and f"The {name} item of the result is right. {ALONE}."
    if len(got) != len(expected):
        return ""
    pairs = enumerate(zip(got, expected, strict=True))
    wrong = [place for place, pair in pairs if not _like(*pair)]
    if len(wrong) == 2 and _exchanged(got, expected, *wrong):
        first, second = (ORDINALS[place] for place in wrong)
        return f"The {first} and the {second} item of the result are exchanged."
    if len(wrong) != 1 or wrong[0] >= len(ORDINALS):
        return ""
    only = f"Of the result's items only the {ORDINALS[wrong[0]]} is wrong: "
    said = between(got[wrong[0]], expected[wrong[0]], question)
    if said and not said.startswith(("True", "NaN")):
        said = said[0].lower() + said[1:]
    return said and only + said


def _exchanged(got: Any, expected: Any, one: int, other: int) -> bool:
    known = max(one, other) < len(ORDINALS)
    return known and _like(got[one], expected[other]) and _like(got[other], expected[one])


def _like(one: Any, other: Any) -> bool:
    """Whether two items are the same up to rounding, of the same type."""
    one, other = unpacked(one), unpacked(other)
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and same(one, other)
    return identical(one, other)
