"""How a wrong reply relates to the right one: sentences that are true by construction.

Each relation is a function of (got, expected, question) that returns a sentence or ''. It is said
only if the numbers show it, so it holds whatever the reason for it may be.
"""

import math

import torch

from autograder.inside.values import same

CLOSE = {"rtol": 1e-6, "atol": 1e-10}
LOOSE = {"rtol": 2e-3, "atol": 1e-5}
ENOUGH = 3  # numbers of which a relation between numbers must hold, lest it be chance


def between(got, expected, question):
    """The first relation that holds between two replies, as a sentence, or ''."""
    plain = any(isinstance(value, bool | int | float) for value in (got, expected))
    got, expected = _unpacked(got), _unpacked(expected)
    if plain and isinstance(got, torch.Tensor):
        got = got.double()  # a number beside a tensor has no dtype to compare
    if isinstance(got, list) and isinstance(expected, list):
        return _of_sequences(got, expected, question)
    if isinstance(got, tuple) and not isinstance(expected, tuple):
        return _of_a_tuple(got, expected)
    if not isinstance(got, torch.Tensor) or not isinstance(expected, torch.Tensor):
        return ""
    return next((said for one in RELATIONS if (said := one(got, expected, question))), "")


def _unpacked(value):
    """Numbers as tensors, so that one relation serves for both; lists of numbers as well."""
    if isinstance(value, bool | int | float):
        return torch.tensor(value, dtype=torch.float64)
    return value


def _of_a_tuple(got, expected):
    names = ("first", "second", "third", "fourth")
    for name, part in zip(names, got, strict=False):
        part = _unpacked(part)
        tensors = isinstance(expected, torch.Tensor) and isinstance(part, torch.Tensor)
        if tensors and _same(part, expected):
            return f"The {name} item of the result is right. It should be returned alone."
    return ""


def _of_sequences(got, expected, question):
    if same(got, expected) or not expected:
        return ""
    if any(isinstance(item, torch.Tensor) for item in [*got, *expected]):
        return _of_items(got, expected)
    if len(got) == len(expected):
        try:
            if sorted(got) == sorted(expected):
                order = "reversed" if got == expected[::-1] else "in another order"
                return f"The items are right, but {order}."
        except (TypeError, RuntimeError):
            return ""
        numbers = all(type(x) in (int, float) for x in [*got, *expected])
        if numbers and len({a - b for a, b in zip(got, expected, strict=True)}) == 1:
            return f"Every item is {got[0] - expected[0]:+g} away from the expected one."
        return ""
    short, long = sorted((got, expected), key=len)
    side = "missing" if short is got else "too many"
    count = len(long) - len(short)
    items = "one item is" if count == 1 else f"{count} items are"
    if long[: len(short)] == short:
        return f"At the end {items} {side}; all else is right."
    if long[count:] == short:
        return f"At the beginning {items} {side}; all else is right."
    return ""


def _of_items(got, expected):
    """Which of several results are wrong, if some are right."""
    names = ("first", "second", "third", "fourth")
    if not 1 < len(got) == len(expected) <= len(names):
        return ""
    wrong = [n for n, *pair in zip(names, got, expected, strict=False) if not same(*pair)]
    if len(wrong) == len(got):
        return ""
    verb = "item is" if len(wrong) == 1 else "items are"
    return f"Of the results, the {' and the '.join(wrong)} {verb} wrong; the rest is right."


def _dtype(got, expected, question):
    if got.dtype == expected.dtype or got.shape != expected.shape:
        return ""
    if not torch.allclose(got.double(), expected.double(), **LOOSE, equal_nan=True):
        return ""
    return (
        f"The values are right up to rounding, but their type is {_name(got.dtype)} instead of "
        f"{_name(expected.dtype)}."
    )


def _other_shape(got, expected, question):
    if got.shape == expected.shape:
        return ""
    if got.numel() == expected.numel():
        if _same(got.reshape(expected.shape), expected):
            return "The numbers and their order are right; only the shape differs."
        for pair in _pairs(got.dim()):
            swapped = got.transpose(*pair)
            if swapped.shape == expected.shape and _same(swapped, expected):
                return f"The result is right once its axes {pair[0]} and {pair[1]} are exchanged."
    for axis in range(got.dim()):
        for name, reduced in (("added up", got.sum(axis)), ("averaged", _mean(got, axis))):
            if reduced.shape == expected.shape and _same(reduced, expected):
                return f"Axis {axis} of the result is still there: {name}, it gives what is right."
    for axis in range(expected.dim()):
        for name, reduced in (("sum", expected.sum(axis)), ("mean", _mean(expected, axis))):
            if reduced.shape == got.shape and _same(got, reduced):
                return f"The result is the {name} of what is right over its axis {axis}."
    return ""


def _not_a_number(got, expected, question):
    if got.shape != expected.shape or not got.is_floating_point():
        return ""
    bad = ~torch.isfinite(got) & torch.isfinite(expected)
    if not bad.any():
        return ""
    kind = "NaN" if torch.isnan(got[bad]).all() else "not finite"
    rest = "" if bad.all() else "; the rest is right" if _same(got[~bad], expected[~bad]) else None
    if rest is None:
        return ""
    some = "All numbers are" if bad.all() else f"{int(bad.sum())} of {bad.numel()} numbers are"
    return f"{some} {kind} where finite ones belong{rest}."


def _input(got, expected, question):
    if _constant(expected) or question.request != "call":
        return ""
    for position, argument in enumerate(question.details[0], start=1):
        alike = isinstance(argument, torch.Tensor) and argument.shape == got.shape
        if alike and not _constant(argument) and _same(got, argument):
            return f"The result equals argument {position}, as it came in."
    return ""


def _factor(got, expected, question):
    if not _comparable(got, expected):
        return ""
    nonzero = expected != 0
    ratios = got[nonzero].double() / expected[nonzero].double()
    if not _all_equal(ratios) or not _same(got[~nonzero], expected[~nonzero]):
        return ""
    factor = ratios.median().item()
    if not math.isfinite(factor) or abs(factor - 1) < 1e-6:
        return ""
    if factor == 0:
        return "Every number is 0."
    if abs(factor + 1) < 1e-6:
        return "The sign is the other way around: every number is the expected one times -1."
    named = _named_factor(abs(factor), question)
    return f"Every number is {factor:.6g} times the expected one{named}."


def _named_factor(factor, question):
    """', and 2.449 is √6' where a size of an argument explains the factor; several are too many."""
    sizes = {size for item in _tensors(question) for size in item.shape if size > 1}
    found = {
        text
        for size in sizes
        for text, value in (
            (f"{size}", size),
            (f"√{size}", math.sqrt(size)),
            (f"1 / {size}", 1 / size),
            (f"1 / √{size}", 1 / math.sqrt(size)),
        )
        if math.isclose(factor, value, rel_tol=1e-5)
    }
    text = next(iter(found), "")
    return f" ({text}, where {text.rpartition(' ')[2].lstrip('√')} is a size of the arguments)" * (
        len(found) == 1
    )


def _offset(got, expected, question):
    if not _comparable(got, expected):
        return ""
    differences = (got.double() - expected.double()).flatten()
    if not _all_equal(differences):
        return ""
    return f"Every number is {differences[0].item():+.6g} away from the expected one."


def _function(got, expected, question):
    if not _comparable(got, expected):
        return ""
    expected = expected.double()
    functions = {
        "the square of": expected.square(),
        "the square root of": expected.sqrt(),
        "exp of": expected.exp(),
        "the logarithm of": expected.log(),
        "1 divided by": 1 / expected,
        "1 minus": 1 - expected,
        "the absolute value of": expected.abs(),
    }
    for words, value in functions.items():
        if torch.isfinite(value).all() and _same(got.double(), value):
            return f"Every number is {words} the expected one."
    return ""


def _negated(got, expected, question):
    if not got.dtype == expected.dtype == torch.bool or got.shape != expected.shape:
        return ""
    exchanged = got.numel() >= ENOUGH and torch.equal(got, ~expected)
    return "True and False are exchanged." if exchanged else ""


def _order(got, expected, question):
    if got.shape != expected.shape or got.numel() < ENOUGH or _constant(expected):
        return ""
    for pair in _pairs(got.dim()):
        if got.shape[pair[0]] == got.shape[pair[1]] and _same(got.transpose(*pair), expected):
            return f"The result is transposed: its axes {pair[0]} and {pair[1]} are exchanged."
    for axis in range(got.dim()):
        if got.shape[axis] > 1:
            if _same(got.flip(axis), expected):
                return f"Along axis {axis} the numbers run backwards."
            said = _shifted(got, expected, axis)
            if said:
                return said
    if got.dtype == torch.bool:
        return ""  # as many True as there should be is no relation
    ordered = got.flatten().sort().values, expected.flatten().sort().values
    if _same(*ordered):
        return "The numbers are right, but they stand in the wrong places."
    return ""


def _shifted(got, expected, axis):
    size = got.shape[axis]
    if size < 3:
        return ""
    for step, words in ((1, "one place too late"), (-1, "one place too early")):
        if _same(got.roll(-step, axis), expected):
            return f"Along axis {axis} everything stands {words}, in a circle."
        start, stop = (1, 0) if step > 0 else (0, 1)
        moved = got.narrow(axis, start, size - 1), expected.narrow(axis, stop, size - 1)
        if not _constant(moved[1]) and _same(*moved):
            return f"Along axis {axis} everything stands {words}."
    return ""


def _normalised(got, expected, question):
    """Weights that sum to 1 along another axis than they should."""
    if got.shape != expected.shape or not got.is_floating_point() or got.dim() < 2:
        return ""
    if not torch.isfinite(got).all():
        return ""
    ones = [
        {axis for axis in range(x.dim()) if x.shape[axis] > 1 and _sums_to_one(x, axis)}
        for x in (got, expected)
    ]
    if len(ones[0]) == len(ones[1]) == 1 and ones[0] != ones[1]:
        return f"The numbers sum to 1 along axis {min(ones[0])} instead of axis {min(ones[1])}."
    return ""


def _some_places(got, expected, question):
    """All is right but in places that can be named."""
    if got.shape != expected.shape or got.numel() < 2 * ENOUGH:
        return ""
    wrong = ~_same_places(got, expected)
    if not wrong.any() or wrong.all():
        return ""
    for words, places in _named_places(wrong.shape, question):
        if torch.equal(wrong, places) or (wrong & ~places).sum() == 0 and _mostly(wrong, places):
            return f"All is right except {words}."
    return ""


def _mostly(wrong, places):
    return wrong.sum() >= 0.5 * places.sum()


def _named_places(shape, question):
    for axis, size in enumerate(shape):
        if size > 1:
            for name, index in (("first", 0), ("last", size - 1)):
                places = torch.zeros(shape, dtype=torch.bool)
                places.select(axis, index).fill_(True)
                yield f"the {name} along axis {axis}", places
                if size > 2:
                    yield f"all but the {name} along axis {axis}", ~places
    for argument in _tensors(question):
        if argument.dtype == torch.bool:
            try:
                places = argument.broadcast_to(shape)
            except RuntimeError:
                continue
            if places.any() and not places.all():
                yield "where a mask among the arguments is True", places
                yield "where a mask among the arguments is False", ~places


RELATIONS = (
    _dtype,
    _negated,
    _not_a_number,
    _other_shape,
    _factor,
    _input,
    _order,
    _normalised,
    _offset,
    _function,
    _some_places,
)


def _tensors(question):
    """The tensors among a question's arguments."""
    items = list(question.details[0]) if question.details else []
    if len(question.details) > 1 and isinstance(question.details[1], dict):
        items += question.details[1].values()
    return [item for item in items if isinstance(item, torch.Tensor)]


def _name(dtype):
    return str(dtype).removeprefix("torch.")


def _pairs(dims):
    return [(a, b) for a in range(dims) for b in range(a + 1, dims)]


def _mean(x, axis):
    return x.sum(axis) / max(1, x.shape[axis])


def _same_places(got, expected):
    if got.dtype == torch.bool or expected.dtype == torch.bool:
        return got == expected
    tolerance = CLOSE if got.dtype == expected.dtype == torch.float64 else LOOSE
    return torch.isclose(got.double(), expected.double(), **tolerance, equal_nan=True)


def _same(got, expected):
    return got.shape == expected.shape and bool(_same_places(got, expected).all())


def _constant(x):
    return x.numel() < 2 or bool((x == x.flatten()[0]).all())


def _all_equal(numbers):
    if len(numbers) < ENOUGH or not torch.isfinite(numbers).all():
        return False
    return bool(torch.allclose(numbers, numbers.median(), rtol=1e-6, atol=1e-9))


def _comparable(got, expected):
    numbers = got.is_floating_point() or expected.is_floating_point()
    finite = torch.isfinite(got).all() and torch.isfinite(expected).all()
    enough = got.numel() >= ENOUGH and not _constant(expected)
    return got.shape == expected.shape and numbers and bool(finite) and enough


def _sums_to_one(x, axis):
    sums = x.double().sum(axis)
    return bool(torch.allclose(sums, torch.ones_like(sums), rtol=1e-5, atol=1e-6))
