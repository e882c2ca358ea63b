"""How a wrong reply relates to the right one: sentences that are true by construction.

Each relation is a function of (got, expected, question) that returns a sentence or ''; but for
``_input``, it takes tensors of one shape. It is said only if the numbers show it, so it holds
whatever the reason for it may be.
"""

import math
from typing import Any

import torch

from autograder.checking.asking.questions import Question
from autograder.checking.diagnosis.error_positions import in_some_places
from autograder.checking.diagnosis.relations_of_items import of_list_for_tensor, of_lists, of_tuples
from autograder.checking.diagnosis.relations_of_shapes import of_shapes
from autograder.checking.toolbox.same_tensors import (
    ENOUGH,
    all_equal,
    comparable,
    constant,
    name_of,
    pairs_of,
    rounding,
    same,
    sums_to_one,
    tensors_of,
    unpacked,
)

NUMBER = bool | int | float
CHANGES = 4  # between neighbours, at least, before truth values are said to be shifted


def between(got: Any, expected: Any, question: Question) -> str:
    """The first relation that holds between two replies, as a sentence, or ''."""
    if isinstance(got, list) and isinstance(expected, list):
        return of_lists(got, expected)
    if isinstance(got, list) and isinstance(expected, torch.Tensor):
        return of_list_for_tensor(got, expected)
    if isinstance(got, tuple):
        return of_tuples(got, expected, lambda one, other: between(one, other, question))
    if isinstance(got, NUMBER) != isinstance(expected, NUMBER):
        return _plain_number(got, expected)
    got, expected = unpacked(got), unpacked(expected)
    if not isinstance(got, torch.Tensor) or not isinstance(expected, torch.Tensor):
        return ""
    if got.is_complex() or expected.is_complex():
        return ""
    relations = OF_ONE_SHAPE if got.shape == expected.shape else (of_shapes, _input)
    return next((said for one in relations if (said := one(got, expected, question))), "")


def _plain_number(got: Any, expected: Any) -> str:
    """A number where a tensor without axes belongs, or the other way around."""
    tensor, number = (expected, got) if isinstance(got, NUMBER) else (got, expected)
    if not isinstance(tensor, torch.Tensor) or tensor.numel() != 1 or tensor.is_complex():
        return ""
    if not same(tensor.reshape(()), unpacked(number)):
        return ""
    kinds = "a tensor", "a plain number"
    mine, right = kinds if tensor is got else kinds[::-1]
    return f"The value is right, but it is {mine} instead of {right}."


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


def _input(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if constant(expected) or question.request != "call":
        return ""
    for position, argument in enumerate(question.details[0], start=1):
        alike = isinstance(argument, torch.Tensor) and argument.shape == got.shape
        if alike and not constant(argument) and same(got, argument):
            return f"The result equals argument {position}, as it came in."
    return ""


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
    if abs(factor + 1) < 1e-5:
        return "The sign is the other way around: every number is the expected one times -1."
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


def _offset(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if not comparable(got, expected):
        return ""
    differences = (got.double() - expected.double()).flatten()
    rtol, _ = rounding(got.dtype, expected.dtype)
    largest = max(x.double().abs().max().item() for x in (got, expected))
    room = max(1e-3 * rtol, 1e-13) * largest
    step = differences.median().item()
    if abs(step) <= 100 * room or not all_equal(differences, room):
        return ""
    return f"Every number is {abs(step):.6g} too {'large' if step > 0 else 'small'}."


def _function(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if not comparable(got, expected):
        return ""
    wide = expected.double()
    functions = {
        "the square of": wide.square(),
        "the square root of": wide.sqrt(),
        "exp of": wide.exp(),
        "the logarithm of": wide.log(),
        "1 divided by": 1 / wide,
        "1 minus": 1 - wide,
        "the absolute value of": wide.abs(),
    }
    for words, value in functions.items():
        if torch.isfinite(value).all() and same(got, value.to(expected.dtype)):
            return f"Every number is {words} the expected one."
    return ""


def _negated(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    truths = got.dtype == expected.dtype == torch.bool and got.numel() >= ENOUGH
    return "True and False are exchanged." if truths and torch.equal(got, ~expected) else ""


def _order(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if got.numel() < ENOUGH or constant(expected):
        return ""
    for pair in pairs_of(got.dim()):
        if got.shape[pair[0]] == got.shape[pair[1]] and same(got.transpose(*pair), expected):
            return f"The result is transposed: its axes {pair[0]} and {pair[1]} are exchanged."
    for axis in range(got.dim()):
        if got.shape[axis] > 1:
            if same(got.flip(axis), expected):
                return f"Along axis {axis} the numbers run backwards."
            said = _shifted(got, expected, axis)
            if said:
                return said
    if len(expected.unique()) < ENOUGH:
        return ""  # True and False, say: that there are as many of each tells nothing
    ordered = got.flatten().sort().values, expected.flatten().sort().values
    return "The numbers are right, but they stand in the wrong places." if same(*ordered) else ""


def _shifted(got: torch.Tensor, expected: torch.Tensor, axis: int) -> str:
    size = got.shape[axis]
    if size < 3 or not _tells_a_shift(expected, axis):
        return ""
    for step, words in ((1, "one place too late"), (-1, "one place too early")):
        if same(got.roll(-step, axis), expected):
            return f"Along axis {axis} everything stands {words}, in a circle."
        start, stop = (1, 0) if step > 0 else (0, 1)
        moved = got.narrow(axis, start, size - 1), expected.narrow(axis, stop, size - 1)
        if not constant(moved[1]) and same(*moved):
            return f"Along axis {axis} everything stands {words}."
    return ""


def _tells_a_shift(expected: torch.Tensor, axis: int) -> bool:
    """Whether a shift would show: truth values that hardly change are alike by chance."""
    if expected.dtype != torch.bool:
        return True
    return int(expected.int().diff(dim=axis).abs().sum()) >= CHANGES


def _normalised(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    """Weights that sum to 1 along another axis than they should."""
    if not got.is_floating_point() or got.dim() < 2 or not torch.isfinite(got).all():
        return ""
    ones = [
        {axis for axis in range(x.dim()) if x.shape[axis] > 1 and sums_to_one(x, axis)}
        for x in (got, expected)
    ]
    if len(ones[0]) == len(ones[1]) == 1 and ones[0] != ones[1]:
        return f"The numbers sum to 1 along axis {min(ones[0])} instead of axis {min(ones[1])}."
    return ""


OF_ONE_SHAPE = (
    _dtype,
    _negated,
    _not_a_number,
    _input,
    _factor,
    _order,
    _normalised,
    _offset,
    _function,
    in_some_places,
)
