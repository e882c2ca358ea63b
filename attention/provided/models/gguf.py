"""A file of weights in GGUF, the format of llama.cpp, is read: settings, vocabulary, tensors.

Read are the types F32, F16, Q8_0 and Q4_1. The format is described at
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import math
import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attention.provided.models.model_file import ModelFileError

BLOCK = 32  # numbers of a block that share a scale
# Types of values in the header, as `struct` writes them; 8 is a text, 9 a list.
PLAIN = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
# The halves of each byte.
PAIRS = np.array([(byte % 16, byte // 16) for byte in range(256)], np.float32)


class Stored(NamedTuple):
    """A tensor as it lies in the file: its type, its shape, and its bytes, a row for each block."""

    type: str
    shape: tuple[int, ...]
    rows: Bytes


class GGUF:
    """A file that is open.

    settings  {key: value}, as in "llama.block_count"
    tensors   {name: Stored}

    Raises ModelFileError if the file cannot be read, is no GGUF, or has tensors of another type.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 4
        try:
            with open(path, "rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{path} cannot be read: {error}") from error
        try:
            if self._bytes[:4] != b"GGUF" or self._plain("I") not in (2, 3):
                raise ValueError
            n_tensors, n_settings = self._plain("Q"), self._plain("Q")
            self.settings = {self._text(): self._value() for _ in range(n_settings)}
            found = [self._about() for _ in range(n_tensors)]
            aligned = self.settings.get("general.alignment", 32)
            begin = math.ceil(self._at / aligned) * aligned
            self.tensors = {name: self._stored(begin, *rest) for name, rest in found}
        except (struct.error, ValueError, KeyError, UnicodeDecodeError) as error:
            raise ModelFileError(f"{path} is no GGUF of versions and types read here") from error

    def _plain(self, kind: str) -> Any:
        (value,) = struct.unpack_from(f"<{kind}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{kind}")
        return value

    def _text(self) -> str:
        length = self._plain("Q")
        self._at += length
        return self._bytes[self._at - length : self._at].decode()

    def _value(self, kind: int | None = None) -> Any:
        kind = self._plain("I") if kind is None else kind
        if kind == 8:
            return self._text()
        if kind == 9:
            inner, length = self._plain("I"), self._plain("Q")
            return [self._value(inner) for _ in range(length)]
        return self._plain(PLAIN[kind])

    def _about(self) -> tuple[str, tuple[tuple[int, ...], str, int]]:
        name, n_axes = self._text(), self._plain("I")
        shape = tuple(self._plain("Q") for _ in range(n_axes))[::-1]  # the last axis comes first
        return name, (shape, TYPES[self._plain("I")], self._plain("Q"))

    def _stored(self, begin: int, shape: tuple[int, ...], kind: str, offset: int) -> Stored:
        width, numbers, _ = READERS[kind]
        size = math.prod(shape) // numbers * width
        rows = np.frombuffer(self._bytes, np.uint8, size, begin + offset)
        return Stored(kind, shape, rows.reshape(-1, width))


def _halves(rows: Bytes) -> Tensor:
    """Two bytes a number, (n, 2) -> (n, 1)."""
    return torch.from_numpy(rows.copy().view(np.float16).astype(np.float32))


def _q8(rows: Bytes) -> Tensor:
    """A scale, then 32 numbers of a byte: scale · number."""
    return _halves(rows[:, :2]) * torch.from_numpy(rows[:, 2:].copy().view(np.int8)).float()


def _q4(rows: Bytes) -> Tensor:
    """A scale and a minimum, then 16 bytes of two numbers each: scale · number + minimum."""
    scale, least = rows[:, :4].copy().view(np.float16).astype(np.float32).T[:, :, None]  # (n, 1)
    found = PAIRS[rows[:, 4:]].swapaxes(1, 2).reshape(-1, BLOCK)  # all the low halves come first
    found *= scale
    found += least
    return torch.from_numpy(found)


# Bytes and numbers of a block, and how it is read.
READERS: dict[str, tuple[int, int, Callable[[Bytes], Tensor]]] = {
    "F32": (4, 1, lambda rows: torch.from_numpy(rows.copy().view(np.float32))),
    "F16": (2, 1, _halves),
    "Q8_0": (2 + BLOCK, BLOCK, _q8),
    "Q4_1": (4 + BLOCK // 2, BLOCK, _q4),
}
TYPES = {0: "F32", 1: "F16", 3: "Q4_1", 8: "Q8_0"}


def numbers(stored: Stored, unpack_q4: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """The tensor in float32.

    unpack_q4  lesson 21's, if it is to read what has the type Q4_1
    """
    if unpack_q4 is not None and stored.type == "Q4_1":
        return unpack_q4(torch.from_numpy(stored.rows.copy())).reshape(stored.shape)
    return READERS[stored.type][2](stored.rows).view(stored.shape)
