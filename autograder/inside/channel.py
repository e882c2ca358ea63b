"""One end of the connection between the grader and a student's process."""

import socket
import time
from typing import Any

from autograder.inside.codec import HEADER, ProtocolError, pack, unpack

TEXT_WEIGHS = 16  # how much more memory a byte of JSON takes, once read, than one of a tensor


class ChannelClosed(Exception):
    """The other side is gone."""


class TimedOut(Exception):
    """No complete message came in time."""


class Channel:
    """Sends and receives whole messages over a stream socket.

    ``limit`` bounds the bytes of a message received; those of its JSON, which takes more memory
    once it is read, count TEXT_WEIGHS times. A larger one is refused by its header. ``trusted`` is
    whether what is received keeps the layout of its tensors, which may take more room than its
    bytes.
    """

    def __init__(self, connection: socket.socket, limit: int, trusted: bool = False) -> None:
        self._connection = connection
        self._limit = limit
        self._trusted = trusted
        self.received = 0  # bytes of all messages, those of their JSON counted TEXT_WEIGHS times

    def send(self, message: dict[str, Any], seconds: float | None = None) -> None:
        """Send ``message``; raise TimedOut when the other side does not read it in ``seconds``."""
        self._connection.settimeout(seconds)
        try:
            self._connection.sendall(pack(message))
        except TimeoutError:
            raise TimedOut from None
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        """The next message; raise TimedOut when it is not complete in ``seconds``."""
        deadline = None if seconds is None else time.monotonic() + seconds
        text_size, blob_size = HEADER.unpack(self._read(HEADER.size, deadline))
        if TEXT_WEIGHS * text_size > self._limit or blob_size > self._limit:
            raise ProtocolError(f"a result of more than {self._limit >> 20} MiB")
        self.received += TEXT_WEIGHS * text_size + blob_size
        text, blob = self._read(text_size, deadline), self._read(blob_size, deadline)
        return unpack(text, blob, layouts=self._trusted)

    def close(self) -> None:
        """Close this end."""
        self._connection.close()

    def _read(self, size: int, deadline: float | None) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            if deadline is not None:
                self._connection.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                count = self._connection.recv_into(view)
            except TimeoutError:
                raise TimedOut from None
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if count == 0:
                raise ChannelClosed("end of stream")
            view = view[count:]
        return bytes(buffer)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected stream sockets."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
