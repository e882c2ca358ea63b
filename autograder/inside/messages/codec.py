"""The messages between the grader and a student's process: JSON and safetensors, never pickle.

A message is a dict of plain values (see ``inside.messages.values``). Its tensors travel as
safetensors, everything else as JSON in which each container is tagged: ``{"list": […]}``,
``{"dict": {…}}``, ``{"tensor": "0", "strides": […]}``. Decoding trusts nothing: whatever is not
exactly of this form raises ProtocolError. ``Channel`` sends and receives them.
"""

import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import safetensors.torch
import torch

from autograder.inside.messages.values import DTYPES, Foreign, too_large

HEADER = struct.Struct("!II")  # bytes of JSON, bytes of safetensors
TABLE = struct.Struct("<Q")  # safetensors begin with the bytes of their table of contents
MAX_TABLE = 2**20
MAX_DEPTH = 32
MAX_ITEMS = 250_000  # in all containers: two values as plain as can be, and a message around them
MAX_AXES = 8  # a place in a tensor takes a number for each, and a check may ask for many places
STEP = 0.1  # seconds of silence after which the one who waits looks round
TEXT_WEIGHS = 16  # how much more memory a byte of JSON takes, once read, than one of a tensor


class ProtocolError(Exception):
    """The other side sent something that is not a message."""


def pack(message: dict[str, Any]) -> bytes:
    """Encode ``message`` as the bytes of one frame."""
    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(_encode(message, tensors)).encode()
    blob = safetensors.torch.save(tensors) if tensors else b""
    return HEADER.pack(len(text), len(blob)) + text + blob


def unpack(text: bytes, blob: bytes, layouts: bool = False) -> dict[str, Any]:
    """Decode the two parts of a frame. Raises ProtocolError on anything malformed.

    Each tensor of ``blob`` can be used once, so that a message never takes more memory than its
    bytes promise, and none is larger than ``plain`` lets pass. With ``layouts``, for messages to be
    trusted, tensors may be of any size, and lie in memory as they did.
    """
    try:
        if blob and TABLE.unpack_from(blob)[0] > MAX_TABLE:
            raise ProtocolError("a message of far too many tensors")
        tensors = safetensors.torch.load(blob) if blob else {}
        message = _Decoder(tensors, layouts).decode(json.loads(text))
    except ProtocolError:
        raise
    except Exception as error:  # the bytes are the student's: any parser may trip over them
        raise ProtocolError(f"unreadable message: {type(error).__name__}") from None
    if type(message) is not dict:
        raise ProtocolError("a message is not a dict")
    return message


def _encode(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value, tensors)
    if isinstance(value, Foreign):
        return {"foreign": value.description}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encode(item, tensors) for item in value]}
    if type(value) is dict:
        return {"dict": {key: _encode(item, tensors) for key, item in value.items()}}
    raise TypeError(f"{type(value).__name__} is not a plain value")


def _encode_tensor(value: torch.Tensor, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    value = value.detach()
    name = str(len(tensors))
    tensors[name] = value.clone(memory_format=torch.contiguous_format)
    if value.is_contiguous():
        return {"tensor": name}
    return {"tensor": name, "strides": list(value.stride())}


class _Decoder:
    """Turns tagged JSON into plain values; refuses every other form."""

    def __init__(self, tensors: dict[str, torch.Tensor], layouts: bool) -> None:
        self._tensors, self._layouts = tensors, layouts
        self._items = 0

    def decode(self, item: Any, depth: int = 0) -> Any:
        if item is None or type(item) in (bool, int, float):
            return item
        if type(item) is str:
            if self._layouts:  # a check may ask with half of a surrogate pair
                return item
            return item.encode("utf-8", "replace").decode()
        if type(item) is not dict or depth > MAX_DEPTH:
            raise ProtocolError("a value is of no known form")
        if "tensor" in item:
            return self._tensor(item["tensor"], item.get("strides"))
        ((kind, content),) = item.items()
        if kind in ("list", "tuple", "dict"):
            self._count(content)
        if kind in ("list", "tuple"):
            decoded = [self.decode(part, depth + 1) for part in content]
            return tuple(decoded) if kind == "tuple" else decoded
        if kind == "dict":
            return {key: self.decode(part, depth + 1) for key, part in content.items()}
        if kind == "foreign" and type(content) is str:
            return Foreign(content[:500])
        raise ProtocolError("a value is of no known form")

    def _count(self, content: Any) -> None:
        self._items += len(content)
        if self._items > MAX_ITEMS and not self._layouts:
            raise ProtocolError("a message of far too many items")

    def _tensor(self, name: str, strides: list[int] | None) -> torch.Tensor:
        values = self._tensors.pop(name)
        if values.dtype not in DTYPES:
            raise ProtocolError(f"a tensor of dtype {values.dtype}")
        if values.dim() > MAX_AXES:
            raise ProtocolError(f"a tensor of {values.dim()} axes")
        if too_large(values.shape) and not self._layouts:
            raise ProtocolError(f"a tensor of shape {tuple(values.shape)}, far too large")
        if strides is None or not self._layouts:
            return values
        room = 1 + sum((size - 1) * step for size, step in zip(values.shape, strides, strict=True))
        laid_out = torch.zeros(room, dtype=values.dtype).as_strided(values.shape, strides)
        # An expanded axis holds one copy.
        compact = tuple(slice(0, 1) if step == 0 else slice(None) for step in strides)
        laid_out[compact].copy_(values[compact])
        return laid_out


class TooLarge(ProtocolError):
    """The other side announced a message that is longer than the limit."""


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """Sends and receives whole messages over a stream socket.

    ``limit`` bounds the bytes of a message received; those of its JSON, which takes more memory
    once it is read, count TEXT_WEIGHS times. A larger one is refused by its header. ``trusted`` is
    whether what is received keeps the layout of its tensors, which may take more room than its
    bytes. ``passed(seconds, silent)`` is told of every step of waiting, and whether it was in vain;
    what it raises ends the waiting.
    """

    def __init__(
        self,
        connection: socket.socket,
        limit: int,
        trusted: bool = False,
        passed: Callable[[float, bool], None] | None = None,
    ) -> None:
        self._connection = connection
        self._limit = limit
        self._trusted = trusted
        self._passed = passed
        connection.settimeout(STEP if passed else None)
        self.received = 0  # bytes of all messages, those of their JSON counted TEXT_WEIGHS times

    def send(self, message: dict[str, Any]) -> None:
        """Send ``message``."""
        view = memoryview(pack(message))
        while view:
            view = view[self._patiently(self._connection.send, view) :]

    def receive(self) -> dict[str, Any]:
        """The next message."""
        text_size, blob_size = HEADER.unpack(self._read(HEADER.size))
        if TEXT_WEIGHS * text_size > self._limit or blob_size > self._limit:
            raise TooLarge(f"a message of more than {self._limit >> 20} MiB")
        self.received += TEXT_WEIGHS * text_size + blob_size
        text, blob = self._read(text_size), self._read(blob_size)
        return unpack(text, blob, layouts=self._trusted)

    def close(self) -> None:
        """Close this end."""
        self._connection.close()

    def _read(self, size: int) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            count = self._patiently(self._connection.recv_into, view)
            if count == 0:
                raise ChannelClosed("end of stream")
            view = view[count:]
        return bytes(buffer)

    def _patiently(self, action: Callable[[Any], int], view: memoryview) -> int:
        """Send or receive a part; raises ChannelClosed."""
        count = None
        while count is None:
            start = time.monotonic()
            try:
                count = action(view)
            except TimeoutError:
                pass
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if self._passed is not None:
                self._passed(time.monotonic() - start, count is None)
        return count
