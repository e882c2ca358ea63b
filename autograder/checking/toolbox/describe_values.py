"""Values in a few words, for messages."""

from typing import Any

import torch

from autograder.checking.toolbox.same_tensors import name_of
from autograder.inside.messages.values import Foreign

SHOWN = 60  # characters of a value in a message
WHOLE = 8  # items of a result of several parts: so many are shown, however long each is


def describe(value: Any) -> str:
    """Say in a few words what a plain value is."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}, {name_of(value.dtype)}"
    if isinstance(value, Foreign):
        return value.description
    if value is None:
        return "None (is there a return?)"
    kind = type(value).__name__
    return f"{'an' if kind == 'int' else 'a'} {kind}: {show(value)}"


def show(value: Any, room: int = SHOWN) -> str:
    """Like repr, but tensors are described, and what is long ends behind an item: '… 7 more'.

    ``room``, in characters, is what the items of a list, or the parts of a dict, may take.
    """
    if isinstance(value, list | tuple | dict):
        if room == SHOWN and len(value) <= WHOLE and _has_parts(value):
            room = WHOLE * 100
        shown = _items(value, room)
        if isinstance(value, tuple):
            return f"({shown},)" if len(value) == 1 else f"({shown})"
        return f"[{shown}]" if isinstance(value, list) else f"{{{shown}}}"
    if isinstance(value, torch.Tensor):  # without commas, which here are between items
        return f"tensor {tuple(value.shape)} {name_of(value.dtype)}"
    if isinstance(value, Foreign):
        return short(value.description)
    if isinstance(value, str):
        return _text(value, room)
    if type(value) is int and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def _has_parts(value: list[Any] | tuple[Any, ...] | dict[str, Any]) -> bool:
    """Whether a container is a result of several parts: a tuple, or one that holds tensors."""
    items = value.values() if isinstance(value, dict) else value
    return isinstance(value, tuple) or any(isinstance(item, torch.Tensor) for item in items)


def _items(value: list[Any] | tuple[Any, ...] | dict[str, Any], room: int) -> str:
    """The first items, as many as find room but at least one, and how many follow."""
    shown: list[str] = []
    taken = 0
    for item in value:
        if isinstance(value, dict):
            text = f"{_text(item, SHOWN)}: {show(value[item], SHOWN // 2)}"
        else:
            text = show(item, max(min(room, SHOWN) // 2, 10))
        taken += len(text) + 2
        if shown and taken > room:
            break
        shown.append(text)
    more = [f"… {len(value) - len(shown)} more"] if len(shown) < len(value) else []
    return ", ".join(shown + more)


def _text(value: str, room: int) -> str:
    if len(value) <= room:
        return repr(value)
    return f"{value[: room - 1]!r}… {len(value) - room + 1} more characters"


def describe_both(got: Any, expected: Any) -> tuple[str, str]:
    """Both in a few words; where these hide what differs, the first item that does is added."""
    pair = describe(got), describe(expected)
    path = _difference(got, expected)
    if not path or not any("… " in text for text in pair):
        return pair
    return _with_item(pair[0], got, path), _with_item(pair[1], expected, path)


def _with_item(text: str, value: Any, path: list[Any]) -> str:
    place = "".join(f"[{_text(key, SHOWN) if isinstance(key, str) else key}]" for key in path)
    for key in path:
        if not _has(value, key):
            return f"{text}\nno item {place}"
        value = value[key]
    return f"{text}\n{place} = {show(value, SHOWN - 1)}"


def _has(value: Any, key: Any) -> bool:
    return key in value if isinstance(value, dict) else key < len(value)


def identical(got: Any, expected: Any) -> bool:
    """Whether two plain values are of the same types and equal to the last digit."""
    return _difference(got, expected) is None


def _difference(got: Any, expected: Any) -> list[Any] | None:
    """The way to the first item that differs: [] if that is the value itself, None if none does."""
    if type(got) is not type(expected):
        return []
    if isinstance(expected, torch.Tensor):
        return None if got.dtype == expected.dtype and torch.equal(got, expected) else []
    if not isinstance(expected, list | tuple | dict):
        return None if got == expected else []
    tables = isinstance(expected, dict)
    for key in [*expected, *got] if tables else range(max(len(got), len(expected))):
        if not _has(got, key) or not _has(expected, key):
            return [key]
        inner = _difference(got[key], expected[key])
        if inner is not None:
            return [key, *inner]
    return None


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
