"""A call with fewer digits: it is shown in the place of the check's where both go the same way."""

import dataclasses
import re
from typing import Any

import torch

from autograder.explaining.program import Asked
from autograder.explaining.running import plain

DECIMALS = (2, 3)  # are tried, one after the other
SAVED = 20  # characters at least
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")  # as tensors print it
ROOM = 0.01  # how far results may be apart, in shares of the largest number


def rounded(one: Asked, decimals: int) -> Asked:
    """The same question with so many decimals of each number."""
    before, last = (_rounded(list(step), decimals) for step in (one.before, [one.question]))
    return Asked(tuple(before), last[0])


def _rounded(value: Any, decimals: int) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        details = _rounded(getattr(value, "details", ()), decimals)
        return dataclasses.replace(value, details=details)
    if isinstance(value, torch.Tensor):
        wide = value.dtype in (torch.float32, torch.float64)
        return torch.round(value.detach(), decimals=decimals) if wide else value
    if type(value) in (list, tuple):
        return type(value)(_rounded(item, decimals) for item in value)
    if type(value) is dict:
        return {key: _rounded(item, decimals) for key, item in value.items()}
    return round(value, decimals) if type(value) is float else value


def near(told: str, other: str) -> bool:
    """Whether two programs printed the same words, and about the same numbers."""
    one, two = plain(told), plain(other)
    if NUMBER.sub("…", one) != NUMBER.sub("…", two):
        return False
    left, right = ([float(text) for text in NUMBER.findall(line)] for line in (one, two))
    room = ROOM * max(map(abs, right), default=0.0)
    return all(abs(a - b) <= room for a, b in zip(left, right, strict=True))
