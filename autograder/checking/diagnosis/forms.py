"""Replies whose numbers come in another form than the right ones: put into it, and compared.

A column for a row, a list of tensors, a second result that was forgotten: a check stops there. The
numbers may be wrong besides, and these say more about what was not understood. So where a form can
be mended without doubt, a diagnosis looks at replies that are mended.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from autograder.checking.asking.questions import Exchange, Replied
from autograder.checking.toolbox.same_tensors import same as same_tensors
from autograder.inside.messages.values import same

PLAIN = bool | int | float
MOST = 64  # items of a list that are put together


class Unsaid:
    """Stands for a result that an answer does not return: nothing is known of it."""


UNSAID = Unsaid()


def in_form(value: Any, right: Any, missing: Callable[[Any], Any] = lambda item: item) -> Any:
    """``value`` in the form of ``right``; the value itself where it has that, or where none fits.

    missing  makes of a result that is not there what stands in its place

    >>> in_form([1.0, 2.0], torch.zeros(2, 1, dtype=torch.float64)).tolist()
    [[1.0], [2.0]]
    >>> in_form(torch.ones(2), (torch.zeros(2), 0.5))[1]
    0.5
    """
    try:
        return _in_form(value, right, missing)
    except (RuntimeError, ValueError, OverflowError, TypeError):
        return value  # a result may be anything


def _in_form(value: Any, right: Any, missing: Callable[[Any], Any]) -> Any:
    if isinstance(right, tuple):
        return _tuple(value, right, missing)
    if isinstance(right, torch.Tensor):
        return _tensor(value, right)
    if isinstance(right, PLAIN) and isinstance(value, torch.Tensor) and value.numel() == 1:
        return _tensor(value, torch.tensor(right)).item()
    if type(right) is int and type(value) is float and value.is_integer():
        return int(value)
    return list(value) if isinstance(right, list) and isinstance(value, tuple) else value


def _tuple(value: Any, right: tuple[Any, ...], missing: Callable[[Any], Any]) -> Any:
    numbers = all(isinstance(item, torch.Tensor) and not item.dim() for item in right)
    in_a_row = isinstance(value, torch.Tensor) and value.shape == (len(right),) and numbers
    given = list(value) if isinstance(value, list | tuple) or in_a_row else [value]
    if not 0 < len(given) <= len(right):
        return value
    pairs = list(zip(given, right, strict=False))
    made = [in_form(*pair) for pair in pairs]
    if len(given) < len(right) and not all(
        _of_one_form(*pair) for pair in zip(made, right, strict=False)
    ):
        return value  # which of the results it is, is not clear
    as_it_is = type(value) is tuple and len(given) == len(right)
    if as_it_is and all(one is other for one, other in zip(made, given, strict=True)):
        return value
    return (*made, *map(missing, right[len(given) :]))


def _of_one_form(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape
    return type(one) is type(other)


def _tensor(value: Any, right: torch.Tensor) -> Any:
    made = value
    if isinstance(value, PLAIN) and right.numel() == 1:
        made = _put_together(value)
    elif isinstance(value, list | tuple):
        made = _put_together(value)
        axes = range(1, made.dim()) if isinstance(made, torch.Tensor) else ()
        turned = [made.movedim(0, axis) for axis in axes]
        found = [_of_kind(one, right) for one in (made, *turned, *value) if _fits(one, right)]
        made = next((one for one in found if same_tensors(one, right)), (*found, value)[0])
    return _of_kind(made, right) if _fits(made, right) else value


def _put_together(value: Any) -> Any:
    """One tensor of the numbers and tensors in nested lists; None where these do not fit."""
    if isinstance(value, PLAIN):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    if isinstance(value, torch.Tensor) or type(value) not in (list, tuple):
        return value
    items = [_put_together(item) for item in value[: MOST + 1]]
    if not 0 < len(items) <= MOST or not all(isinstance(item, torch.Tensor) for item in items):
        return None
    return torch.stack(items) if len({(x.shape, x.dtype) for x in items}) == 1 else None


def _fits(value: Any, right: torch.Tensor) -> bool:
    """Whether the axes are those of ``right``, but for some of size 1."""
    if not isinstance(value, torch.Tensor):
        return False
    one, other = ([size for size in x.shape if size != 1] for x in (value, right))
    return one == other


def _of_kind(value: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """In the shape of ``right``, and of its kind: numbers for True and False, or the other way."""
    made = value if value.shape == right.shape else value.reshape(right.shape)
    if right.is_floating_point() and not made.is_floating_point() and not made.is_complex():
        return made.to(right.dtype)
    whole = bool((made == made.long()).all()) if made.is_floating_point() else not made.is_complex()
    few = right.dtype == torch.bool and bool(((made == 0) | (made == 1)).all())
    if made.dtype != right.dtype and whole and not right.is_floating_point():
        return made.to(right.dtype) if few or right.dtype != torch.bool else made
    return made


def mended(
    exchanges: Sequence[Exchange], missing: Callable[[Any], Any] = lambda item: item
) -> Iterator[Exchange]:
    """The exchanges with the replies to calls in the form of the right ones, others as they are."""
    for question, got, right in exchanges:
        if question.request == "call" and got.kind == right.kind == "value":
            made = in_form(got.value, right.value, missing)
            got = got if made is got.value else dataclasses.replace(got, value=made)
        yield question, got, right


def same_numbers(one: Replied, other: Replied, right: Replied) -> bool:
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
        return _equal(one, other)
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


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.is_complex() or other.is_complex():
        return same(one, other)
    if not (one.is_floating_point() and other.is_floating_point()):
        one, other = one.double(), other.double()  # whole numbers are exact
    return same_tensors(one, other)
