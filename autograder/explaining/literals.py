"""Plain values as Python writes them: tensors with all their digits, so that nothing is rounded."""

import pprint
from typing import Any

import numpy
import torch

from autograder.inside.messages.values import leaves, mapped

WIDTH = 100  # characters of a line
ROOM = 16  # of them, for what stands before and behind the numbers of a tensor


class _Code(str):
    """Text that stands for itself in what pprint writes."""

    __repr__ = str.__str__


def written(value: Any, layout: bool = False, indent: int = 0) -> str:
    """The Python text of a plain value, on lines that begin ``indent`` spaces in, save the first.

    layout  whether a tensor has its own layout in memory, too
    """

    def code(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return _Code(_tensor(item, layout))
        return _number(item) if isinstance(item, float) else item

    return _lines(mapped(code, value), WIDTH - indent).replace("\n", f"\n{' ' * indent}")


def size(value: Any) -> int:
    """How many numbers and words a plain value holds."""
    return sum(one.numel() if isinstance(one, torch.Tensor) else 1 for one in leaves(value))


def _lines(value: Any, width: int) -> str:
    return pprint.pformat(value, width=width, compact=True, sort_dicts=False)


def _tensor(tensor: torch.Tensor, layout: bool) -> str:
    """The text that makes a tensor: on one line, or with its numbers on lines of their own."""
    whole, rest = tensor, ""
    if layout and not tensor.is_contiguous():
        whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        place = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        rest = f".as_strided({', '.join(map(str, place))})"
    elif not tensor.numel() and tensor.dim() > 1:
        whole, rest = tensor.flatten(), f".reshape{tuple(tensor.shape)}"
    numbers, dtype = _lines(_numbers(whole), WIDTH - ROOM), f"dtype={tensor.dtype}"
    line = f"torch.tensor({numbers}, {dtype}){rest}"
    if "\n" not in line and len(line) <= WIDTH - ROOM:
        return line
    inner = numbers.replace("\n", "\n    ")
    return f"torch.tensor(\n    {inner},\n    {dtype},\n){rest}"


def _numbers(tensor: torch.Tensor) -> Any:
    """The numbers of a tensor, each as short as it can be in its own precision."""
    if tensor.dtype != torch.float32:
        return mapped(_number, tensor.tolist())
    # Shorter than what `tolist` gives, which are the digits of float64.
    return mapped(lambda one: _number(float(str(numpy.float32(one)))), tensor.tolist())


def _number(value: Any) -> Any:
    """A number, or the name that PyTorch has for it."""
    if value in (torch.inf, -torch.inf) or value != value:
        return _Code(repr(value).replace("inf", "torch.inf").replace("nan", "torch.nan"))
    return value
