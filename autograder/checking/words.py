"""Values in a few words, for messages."""

import itertools
from typing import Any

import torch

from autograder.inside.values import Foreign

SHOWN = 60  # characters of a value in a message


def describe(value: Any) -> str:
    """Say in a few words what a plain value is."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}, {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, Foreign):
        return value.description
    if value is None:
        return "None (is there a return?)"
    kind = type(value).__name__
    return f"{'an' if kind == 'int' else 'a'} {kind}: {short(show(value))}"


def show(value: Any) -> str:
    """Like repr, but tensors are described and only the first items of a container shown."""
    if isinstance(value, list | tuple):
        items = ", ".join(show(item) for item in value[: SHOWN // 2])
        return f"[{items}]" if isinstance(value, list) else f"({items})"
    if isinstance(value, dict):
        first = itertools.islice(value.items(), SHOWN // 2)
        return "{" + ", ".join(f"{key!r}: {show(item)}" for key, item in first) + "}"
    if isinstance(value, torch.Tensor | Foreign):
        return describe(value)
    if type(value) is int and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def number(value: Any, digits: int = 6) -> str:
    value = value.item() if isinstance(value, torch.Tensor) else value
    if isinstance(value, float | complex):
        return f"{value + 0:.{digits}g}"  # -0.0 + 0 is 0.0
    return short(show(value))


def two_numbers(got: Any, expected: Any) -> tuple[str, str]:
    """Both as text, with as many digits as it takes to tell them apart."""
    for digits in (6, 9, 12, 17):
        pair = number(got, digits), number(expected, digits)
        if pair[0] != pair[1]:
            break
    return pair
