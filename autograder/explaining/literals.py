"""Plain values as Python writes them: tensors with all their digits, so that nothing is rounded."""

import textwrap
from typing import Any

import numpy
import torch

from autograder.inside.messages.values import leaves

WIDTH = 100  # characters of a line


def written(value: Any, layout: bool = False, indent: int = 0) -> str:
    """The Python text of a plain value, on lines that begin ``indent`` spaces in, save the first.

    layout  whether a tensor has its own layout in memory, too
    """
    text = _text(value, layout)
    if len(text) + indent <= WIDTH or not isinstance(value, torch.Tensor | list | tuple | dict):
        return text
    inner, end = " " * (indent + 4), " " * indent
    if isinstance(value, torch.Tensor):
        numbers, rest = _numbers(value, layout)
        rows = _rows(numbers, indent + 4) if isinstance(numbers, list) else str(numbers)
        return f"torch.tensor(\n{inner}{rows},\n{inner}{_dtype(value)},\n{end}){rest}"
    if isinstance(value, dict):
        items = [f"{key!r}: {written(one, layout, indent + 4)}" for key, one in value.items()]
    else:
        items = [written(one, layout, indent + 4) for one in value]
    opening, closing = "{}" if isinstance(value, dict) else "()" if type(value) is tuple else "[]"
    return opening + "".join(f"\n{inner}{one}," for one in items) + f"\n{end}{closing}"


def size(value: Any) -> int:
    """How many numbers and words a plain value holds."""
    return sum(one.numel() if isinstance(one, torch.Tensor) else 1 for one in leaves(value))


def _text(value: Any, layout: bool) -> str:
    """The same on one line."""
    if isinstance(value, torch.Tensor):
        numbers, rest = _numbers(value, layout)
        return f"torch.tensor({_listed(numbers)}, {_dtype(value)}){rest}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v, layout)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        items = ", ".join(_text(one, layout) for one in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, list):
        return "[" + ", ".join(_text(one, layout) for one in value) + "]"
    return _number(value)


def _dtype(tensor: torch.Tensor) -> str:
    return f"dtype={tensor.dtype}"


def _numbers(tensor: torch.Tensor, layout: bool) -> tuple[Any, str]:
    """Pair (numbers, as nested lists of texts; what is to be done with the tensor made of them)."""
    rest = f".reshape{tuple(tensor.shape)}" if not tensor.numel() and tensor.dim() > 1 else ""
    if layout and not tensor.is_contiguous():
        whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        place = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        return _shortest(whole), f".as_strided({', '.join(map(str, place))})"
    return ([] if rest else _shortest(tensor)), rest


def _shortest(tensor: torch.Tensor) -> Any:
    """The numbers of a tensor as texts, each as short as it can be in its own precision."""
    if tensor.dtype == torch.float32:
        # Shorter than what `tolist` gives, which are the digits of float64.
        return _each(tensor.numpy(), lambda one: _number(float(str(numpy.float32(one)))))
    return _each(tensor.tolist(), _number)


def _each(numbers: Any, change: Any) -> Any:
    if isinstance(numbers, list) or getattr(numbers, "ndim", 0) > 0:
        return [_each(one, change) for one in numbers]
    return change(numbers)


def _number(value: Any) -> str:
    text = repr(value)
    if text in ("inf", "-inf", "nan"):
        return text.replace("inf", "torch.inf").replace("nan", "torch.nan")
    return text


def _listed(numbers: Any) -> str:
    return f"[{', '.join(map(_listed, numbers))}]" if isinstance(numbers, list) else numbers


def _rows(numbers: list[Any], indent: int) -> str:
    """Nested lists of texts: one row a line, or as many lines as its numbers take."""
    if len(line := _listed(numbers)) + indent <= WIDTH:
        return line
    if not isinstance(numbers[0], list):
        return textwrap.fill(line, WIDTH - indent - 2).replace("\n", f"\n{' ' * (indent + 1)}")
    inner = " " * (indent + 4)
    rows = [f"\n{inner}{_rows(one, indent + 4)}," for one in numbers]
    return f"[{''.join(rows)}\n{' ' * indent}]"
