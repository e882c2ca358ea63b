"""How a wrong reply relates to the right one: sentences that are true by construction.

Each relation is a function of two tensors of one shape and the question, (got, expected, question),
that returns a sentence or ''. It is said only if the numbers show it, so it holds whatever the
reason for it may be.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch

from autograder.checking.asking.questions import Question
from autograder.checking.diagnosis.relations_of_items import of_list_for_tensor, of_lists, of_tuples
from autograder.checking.toolbox.same_tensors import (
    ENOUGH,
    all_equal,
    comparable,
    constant,
    name_of,
    pairs_of,
    rounding,
    same,
    same_places,
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
    if got.shape != expected.shape:
        return _of_shapes(got, expected)
    return next((said for one in OF_ONE_SHAPE if (said := one(got, expected, question))), "")


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


def _function(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if not comparable(got, expected):
        return ""
    wide = expected.double()
    functions = {
        "the square of": wide.square(),
        "exp of": wide.exp(),
        "the logarithm of": wide.log(),
    }
    for words, value in functions.items():
        if torch.isfinite(value).all() and same(got, value.to(expected.dtype)):
            return f"Every number is {words} the expected one."
    return ""


def _order(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    if got.numel() < ENOUGH or constant(expected):
        return ""
    for pair in pairs_of(got.dim()):
        if got.shape[pair[0]] == got.shape[pair[1]] and same(got.transpose(*pair), expected):
            return f"The result is transposed: its axes {pair[0]} and {pair[1]} are exchanged."
    for axis in range(got.dim()):
        if got.shape[axis] > 1:
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


def _in_some_places(got: torch.Tensor, expected: torch.Tensor, question: Question) -> str:
    """Which places hold all that is wrong."""
    if got.numel() < 2 * ENOUGH:
        return ""
    wrong = ~same_places(got, expected)
    if not wrong.any() or wrong.all():
        return ""
    for words, places in _named_places(wrong.shape):
        if torch.equal(wrong, ~places):
            return f"Values are right only {words}."
        if not (wrong & ~places).any() and wrong.sum() >= 0.5 * places.sum():
            return f"Values are wrong only {words}."
    return ""


def _named_places(shape: torch.Size) -> Iterator[tuple[str, torch.Tensor]]:
    for axis, size in enumerate(shape):
        if size > 1:
            for name, index in (("first", 0), ("last", size - 1)):
                places = torch.zeros(shape, dtype=torch.bool)
                places.select(axis, index).fill_(True)
                yield f"at the {name} index of axis {axis}", places


OF_ONE_SHAPE = (
    _dtype,
    _not_a_number,
    _factor,
    _order,
    _function,
    _in_some_places,
)


def _of_shapes(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Of two tensors of other shapes whether they hold the same numbers."""
    if got.numel() != expected.numel():
        return ""
    if same(got.reshape(expected.shape), expected):
        return "The numbers and their order are right; only the shape differs."
    for pair in pairs_of(got.dim()):
        swapped = got.transpose(*pair)
        if swapped.shape == expected.shape and same(swapped, expected):
            return f"The result is right once its axes {pair[0]} and {pair[1]} are exchanged."
    return ""


def of_sizes(result: object, right: object) -> str:
    """What the sizes of two tensors show, whatever their numbers: a sentence, or ''."""
    if not isinstance(result, torch.Tensor) or not isinstance(right, torch.Tensor):
        return ""
    got, expected = list(result.shape), list(right.shape)
    if got == expected:
        return ""
    if sorted(got) == sorted(expected):
        return "The shape is the right one with its axes in another order."
    if math.prod(got) == math.prod(expected) and _merged(got, expected):
        return "Neighbouring axes of the right shape are merged into one."
    return ""


def _merged(got: list[int], expected: list[int]) -> bool:
    """Whether ``got`` is ``expected`` with one run of neighbours multiplied."""
    run = len(expected) - len(got) + 1
    return run > 1 and any(
        expected[:n] + [math.prod(expected[n : n + run])] + expected[n + run :] == got
        for n in range(len(got))
    )
