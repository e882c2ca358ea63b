"""Plain values: what may pass between a check and a student's answer.

Tensors, numbers, strings, None, and lists, tuples and dicts of these. Anything else is replaced by
a ``Foreign`` that only says what it was, so that a check can tell the student about it and no
object of the student's own ever reaches a check.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
FLOATS = {torch.float64, torch.float32, torch.float16, torch.bfloat16}
INTEGERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}
# Scalars of NumPy are the numbers, words and truths that they stand for.
NUMPYS = {numpy.bool_, numpy.str_, numpy.float32, numpy.float64, numpy.int32, numpy.int64}
DTYPES = FLOATS | INTEGERS | {torch.bool, torch.complex64}
# 8 or 11 binary digits, after several steps: in shares of the largest number.
HALF = {torch.bfloat16: 2e-2, torch.float16: 2e-3}
MAX_DEPTH = 8  # containers within containers
MAX_ITEMS = 100_000  # in all containers together
# The right answers of all lessons need a size of 1 000 000 (a window over that many tokens).
MAX_SIZE = 2**20  # of one axis: whoever iterates over a tensor makes an object for each row
MAX_NUMBERS = 2**22  # in one tensor


@dataclass(frozen=True)
class Foreign:
    """A result that is not plain; ``description`` says what: 'a numpy.ndarray of shape (2,)'."""

    description: str


def plain(value: Any) -> Any:
    """Return a copy of ``value`` made of plain values only."""
    items = 0  # in all containers so far

    def copy(value: Any, depth: int) -> Any:
        nonlocal items
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) in NUMPYS:
            return value.item()
        if isinstance(value, torch.Tensor):
            return _plain_tensor(value)
        value = _builtin(value)
        if type(value) not in (list, tuple, dict):
            return Foreign(_describe(value))
        if type(value) is dict and not all(type(key) is str for key in value):
            return Foreign("a dict with keys that are not strings")
        items += len(value)
        if depth >= MAX_DEPTH or items > MAX_ITEMS:
            reason = "nested too deeply" if depth >= MAX_DEPTH else "with far too many items"
            return Foreign(f"a {type(value).__name__} {reason}")
        return within(value, lambda item: copy(item, depth + 1))

    return copy(value, 0)


def _builtin(value: Any) -> Any:
    """A list, tuple or dict as Python's own: what topk returns, say, is a tuple with names."""
    if isinstance(value, tuple):
        return tuple(tuple.__iter__(value))
    if isinstance(value, list):
        return list(list.__iter__(value))
    return dict(dict.items(value)) if isinstance(value, dict) else value


def _plain_tensor(value: torch.Tensor) -> torch.Tensor | Foreign:
    kind = type(value)
    if kind not in (torch.Tensor, torch.nn.Parameter):
        return Foreign(f"{_describe(value)}, not a plain tensor")
    if value.layout is not torch.strided or value.is_quantized or value.device.type == "meta":
        layout = str(value.layout).removeprefix("torch.")
        return Foreign(f"a tensor of layout {layout} on {value.device.type}")
    if value.dtype not in DTYPES:
        return Foreign(f"a tensor of dtype {str(value.dtype).removeprefix('torch.')}")
    if too_large(value.shape):
        return Foreign(f"a tensor of shape {tuple(value.shape)}, far too large")
    return value.detach().cpu().resolve_conj().resolve_neg().clone()


def too_large(shape: Sequence[int]) -> bool:
    """Whether a tensor of this shape takes a check too long, or too much memory, to look at.

    An axis of size 0 makes a tensor empty, but not its sums and not the lists that tolist makes: it
    counts like one of size 1.

    >>> too_large((1000, 1000)), too_large((2**26, 0)), too_large((2**14, 2**14, 0))
    (False, True, True)
    """
    places = math.prod(max(1, size) for size in shape)
    return places > MAX_NUMBERS or max(shape, default=0) > MAX_SIZE


def _describe(value: Any) -> str:
    """'a numpy.ndarray of shape (2,)'. The type may be the student's: nothing in it is trusted."""
    kind = type(value)
    try:
        name = kind.__name__
        if kind.__module__ not in ("builtins", "__main__"):
            name = f"{kind.__module__}.{name}"
        shape = tuple(value.shape) if kind.__module__ == "numpy" else ()
        article = "an" if name[0] in "aeiouAEIOU" else "a"
    except Exception:
        return "an object"
    return f"{article} {name}" + (f" of shape {shape}" if shape else "")


def copied(value: Any) -> Any:
    """A copy of a plain value that shares no memory with it; tensors keep their layout in memory.

    >>> rows = torch.zeros(2, 3).T
    >>> copied(rows).stride() == rows.stride()
    True
    """
    if isinstance(value, torch.Tensor):
        strided = value.layout is torch.strided and value.device.type == "cpu"
        if not strided or value.is_contiguous():
            return value.detach().clone()
        storage = value.detach().untyped_storage().clone()
        place = (value.storage_offset(), value.shape, value.stride())
        return torch.empty(0, dtype=value.dtype).set_(storage, *place)
    return within(value, copied)


def within(value: Any, change: Callable[[Any], Any]) -> Any:
    """A list, tuple or dict of what ``change`` makes of its items; any other value as it is."""
    if type(value) in (list, tuple):
        return type(value)(map(change, value))
    if type(value) is dict:
        return {key: change(item) for key, item in value.items()}
    return value


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A plain value in which ``change`` was made of each item of its containers, however deep.

    >>> mapped(float, [1, {"two": (2,)}])
    [1.0, {'two': (2.0,)}]
    """
    if type(value) in (list, tuple, dict):
        return within(value, lambda item: mapped(change, item))
    return change(value)


def leaves(value: Any) -> Iterator[Any]:
    """Yield the items of containers, however deep."""
    if not isinstance(value, list | tuple | dict):
        yield value
        return
    for item in value.values() if isinstance(value, dict) else value:
        yield from leaves(item)


def _rounding(left: torch.Tensor, right: torch.Tensor) -> tuple[float, float]:
    """(rtol, atol) of what was computed in the dtype of both."""
    if right.dtype in HALF:
        finite = (one[one.isfinite()].abs().max() for one in (left, right) if one.isfinite().any())
        return 0.0, HALF[right.dtype] * max((one.item() for one in finite), default=0.0)
    return (1e-4, 1e-5) if right.dtype in (torch.float32, torch.complex64) else (1e-7, 1e-10)


def same(left: Any, right: Any) -> bool:
    """Whether two plain values are equal: tensors by shape, dtype and value up to rounding.

    >>> same([1.0, None], [1.0 + 1e-12, None]), same(1.0, 1), same(float("nan"), 1.0)
    (True, False, False)
    """
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        if torch.equal(left, right):
            return True  # as mostly, behind a call; twenty times quicker than what follows
        rtol, atol = _rounding(left, right)
        return torch.allclose(left, right, rtol=rtol, atol=atol, equal_nan=True)
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=1e-7, abs_tol=1e-10)
    return bool(left == right)


def same_refusal(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two ValueErrors say the same: their words are free, their numbers are not.

    One number may be missing in one of them: the limit, say, that was broken.
    """
    if one[0] != other[0]:
        return False
    fewer, more = sorted((_numbers(message) for _, message in (one, other)), key=len)
    return fewer == more or bool(fewer) and fewer <= more and len(more) - len(fewer) == 1


def _numbers(message: str) -> set[float]:
    return {round(float(text), 3) for text in NUMBER.findall(message)}
