"""Download a long file whose SHA-256 is known; what came before an interruption is kept.

The bytes go into a file beside, `NAME.part`. When all are there and their SHA-256 is right, it gets
its name, in one step. So nothing half written ever has that name, whenever the program is stopped.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import requests

from attention.provided.downloads import failures
from attention.provided.downloads.failures import (
    DownloadError,
    NoConnection,
    NotThere,
    NotWritten,
    of_a_wrong_file,
)
from attention.provided.progress import DownloadBar
from autograder.terminal_output import readable

PIECE = 1 << 16  # bytes that are written at once
LABEL = 18  # characters of a file's name before its bar, which then fits into 80


def download(url: str, path: Path, size: int, sha256: str, patient: bool = True) -> None:
    """Get a file; if a part of it is there already, ask only for the rest.

    url           an http, https or file address
    path          its folder is made if need be
    size, sha256  of the file
    patient       try again also where nothing at all comes, since there is no other address
    raises        DownloadError, in one sentence, whatever goes wrong; an older file stays then, and
                  so does the part
    """
    failures.check_address(url)
    part = part_of(path)
    with writing(path):
        for attempt in range(2):
            pieced = _fill(url, part, size, patient)
            wrong = _keep(part, path, size, sha256)
            if wrong is None:
                return
            # What was there may have been the beginning of another file: once more, from the start.
            if attempt or not pieced:
                raise DownloadError(of_a_wrong_file(url, wrong))


def part_of(path: Path) -> Path:
    """Where a file grows until it is whole."""
    return path.with_name(f"{path.name}.part")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make a file's folder and lock it; what the disk refuses becomes NotWritten.

    The lock ends with this process, however that ends. Where a disk or a system knows no locks,
    nothing is locked.
    """
    lock = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock(path.parent)
        yield
    except OSError as error:
        raise NotWritten(failures.of_the_disk(error, path)) from error
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    try:
        import fcntl
    except ImportError:  # Windows lets nobody rename a file that another program has open
        return None
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise NotWritten(f"another download writes into {folder}: wait until it ends") from None
    except OSError:
        pass
    return lock


def _fill(url: str, part: Path, size: int, patient: bool) -> bool:
    """Make the part as long as the file; returns whether it came in several pieces."""
    lengths = [_length(part)]  # before each attempt

    def attempt() -> None:
        try:
            _append(url, part, size, bar)
        finally:
            lengths.append(_length(part))
        if lengths[-1] < size:
            words = f"it ended after {readable(lengths[-1])} of {readable(size)} bytes"
            raise requests.ConnectionError(words)

    def hopeless(error: Exception) -> bool:
        answered = isinstance(error, requests.HTTPError)
        return not (patient or answered or lengths[-1] > lengths[-2])

    try:
        label = part.stem if len(part.stem) <= LABEL else f"{part.stem[: LABEL - 1]}…"
        with DownloadBar(size, label) as bar:
            failures.insist(url, attempt, hopeless)
    except NoConnection as error:
        if not lengths[-1]:
            raise
        kept = f"; the {readable(lengths[-1])} bytes that came are kept"
        raise NoConnection(f"{error}{kept}") from error
    return any(lengths[:-1])


def _length(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _append(url: str, part: Path, size: int, bar: DownloadBar) -> None:
    """Write what the part lacks behind it, or all of it anew if the server sends it all."""
    if (have := _length(part)) == size:
        return
    if have > size:
        part.unlink()
        have = 0
    opened = _from_disk(url) if url.startswith("file:") else _from_server(url, have, size)
    with opened as (begin, pieces):
        have = begin
        with open(part, "ab" if begin else "wb") as stream:
            for piece in pieces:
                have += len(piece)
                if have > size:
                    break
                stream.write(piece)
                bar.received(have)
    if have > size:
        part.unlink()
        raise DownloadError(of_a_wrong_file(url, "it is longer than it should be"))


Opened = tuple[int, Iterator[bytes]]  # where in the file the bytes begin, and the bytes


@contextlib.contextmanager
def _from_disk(url: str) -> Iterator[Opened]:
    try:
        stream = open(url2pathname(urlsplit(url).path), "rb")  # noqa: SIM115
    except OSError as error:
        kind = NotThere if isinstance(error, FileNotFoundError) else DownloadError
        raise kind(f"{url}: {error.strerror}") from error
    with stream:
        yield 0, iter(lambda: stream.read(PIECE), b"")


@contextlib.contextmanager
def _from_server(url: str, have: int, size: int) -> Iterator[Opened]:
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with requests.get(url, headers=headers, stream=True, timeout=failures.TIMEOUT) as response:
        begin = have if _goes_on(response, have) else 0
        if not begin and have and response.status_code in (206, 416):
            # It cannot go on from there. Asked without a range, it sends the file from its start.
            with _from_server(url, 0, size) as whole:
                yield whole
            return
        response.raise_for_status()
        pieces = response.iter_content(PIECE)
        first = next(pieces, b"")
        _refuse_another_file(url, response, first, begin, size)
        yield begin, _chained(first, pieces)


def _goes_on(response: requests.Response, have: int) -> bool:
    where = response.headers.get("Content-Range", "")
    return bool(have) and response.status_code == 206 and where.startswith(f"bytes {have}-")


def _refuse_another_file(
    url: str, response: requests.Response, first: bytes, begin: int, size: int
) -> None:
    """Raise DownloadError, before a part is overwritten, if the answer cannot be the file."""
    if not begin and failures.PAGE.match(first):
        raise DownloadError(of_a_wrong_file(url, failures.WEB_PAGE))
    length = response.headers.get("Content-Length")
    if length is None or "Content-Encoding" in response.headers:
        return
    if begin + int(length) != size:
        what = f"it has {readable(begin + int(length))} bytes, not {readable(size)}"
        raise DownloadError(of_a_wrong_file(url, what))


def _chained(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


def _keep(part: Path, path: Path, size: int, sha256: str) -> str | None:
    """Give a part its name if its SHA-256 is right; else remove it, and say what is wrong."""
    with open(part, "rb+") as stream:
        got = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        start = stream.read(1000)
        os.fsync(stream.fileno())  # a power failure behind this line finds the whole file
    if got == sha256:
        os.replace(part, path)
        return None
    length = _length(part)
    part.unlink()
    return failures.of_a_wrong_sum(start, length, size, got, sha256)
