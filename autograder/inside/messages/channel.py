"""One end of the connection between the grader and a student's process."""

import socket
import time
from collections.abc import Callable
from typing import Any

from autograder.inside.messages.codec import HEADER, ProtocolError, pack, unpack

STEP = 0.1  # seconds of silence after which the one who waits looks round
TEXT_WEIGHS = 16  # how much more memory a byte of JSON takes, once read, than one of a tensor


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
            raise ProtocolError(f"a result of more than {self._limit >> 20} MiB")
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
