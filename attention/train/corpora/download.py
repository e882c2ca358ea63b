"""Download one text whose SHA-256 is known, with pooch, so that it ends up whole or not at all."""

import errno
import functools
import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pooch
import requests

RETRIES = 3  # after 1, 2 and 3 seconds
TIMEOUT = 20  # seconds without a byte
SLACK = 10_000  # bytes that a compressed text may be longer than the text
MAY_PASS = (408, 425, 429)  # besides 500 and more: answers after which trying again may help

pooch.get_logger().setLevel("ERROR")


class DownloadError(RuntimeError):
    """A text cannot be had, or is not the right one; str() is one sentence that says why."""


class NotThere(DownloadError):
    """The server has no such file: another address may have it."""


class NoConnection(DownloadError):
    """The server was not reached, or did not send the whole file, however often it was asked."""


class _Bounded(io.BytesIO):
    """Bytes in memory, at most so many."""

    def __init__(self, url: str, most: int):
        super().__init__()
        self.url, self.most = url, most

    def write(self, content: Any) -> int:
        if self.tell() + len(content) > self.most:
            raise DownloadError(f"{self.url} is longer than it should be; nothing of it was kept")
        return super().write(content)


def download(url: str, path: Path, size: int, sha256: str) -> None:
    """Get the text at an address, which may send it compressed by gzip, into a file.

    url           an http, https or file address
    path          its folder is made if need be
    size, sha256  of the text, unpacked
    raises        DownloadError, in one sentence, whatever goes wrong; an older file stays then
    """
    _check_address(url)
    receive = functools.partial(_receive, size=size, sha256=sha256)
    registry, urls = {path.name: f"sha256:{sha256}"}, {path.name: url}
    store = pooch.create(path.parent, "", registry=registry, urls=urls, retry_if_failed=RETRIES)
    try:
        store.fetch(path.name, downloader=receive)
        path.chmod(0o644)  # pooch makes files that only their owner may read
    except requests.RequestException as error:
        words = f"{url}: {_of_the_network(error)}; given up after {1 + RETRIES} attempts"
        raise NoConnection(words) from error
    except OSError as error:
        raise DownloadError(_of_the_disk(error, path)) from error


def _check_address(url: str) -> None:
    if not url.startswith(("http://", "https://", "file:")):
        raise DownloadError(
            f"{url} cannot be downloaded: an address begins with http:// or https://, or with "
            "file:/// if it is a folder on this machine"
        )
    try:
        if not url.startswith("file:"):
            requests.Request("GET", url).prepare()
    except ValueError as error:
        raise _of_an_address(url, error) from None


def _receive(url: str, output: str, _: object, size: int, sha256: str) -> None:
    """Write the right text to a file. What pooch tries again after is a RequestException."""
    received = _Bounded(url, size + SLACK)
    if url.startswith("file:"):
        _read_file(url, received)
    else:
        _ask(url, received)
    text = _unpacked(received.getvalue(), size)
    if text is None or hashlib.sha256(text).hexdigest() != sha256:
        raise DownloadError(_of_a_wrong_file(url, text, size, sha256))
    Path(output).write_bytes(text)


def _read_file(url: str, received: _Bounded) -> None:
    try:
        received.write(Path(url2pathname(urlsplit(url).path)).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotThere(f"{url}: {error.strerror}") from error
    except OSError as error:
        raise DownloadError(f"{url}: {error.strerror}") from error


def _ask(url: str, received: _Bounded) -> None:
    try:
        pooch.HTTPDownloader(timeout=TIMEOUT)(url, received, None)
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status in MAY_PASS or status >= 500:
            raise
        kind = NotThere if status in (403, 404, 410) else DownloadError
        raise kind(f"{url}: {_of_the_network(error)}") from error
    except requests.exceptions.SSLError as error:
        raise DownloadError(f"{url}: {_of_the_network(error)}") from error
    except ValueError as error:
        raise _of_an_address(url, error) from error


def _unpacked(content: bytes, size: int) -> bytes | None:
    """The text, unpacked if it is compressed, but not much more than its size; None: damaged."""
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.GzipFile(fileobj=io.BytesIO(content)).read(size + 1)
    except (OSError, EOFError, zlib.error):
        return None


def readable(number: int) -> str:
    """A number with its digits in groups of three.

    >>> readable(1801238)
    '1 801 238'
    """
    return f"{number:_}".replace("_", " ")


# What may go wrong, in words


def _of_an_address(url: str, error: Exception) -> DownloadError:
    return DownloadError(f"{url} is no valid address: {error}")


def _of_the_network(error: requests.RequestException) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}".rstrip()
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    words = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return f"no connection ({words.splitlines()[0]})"


def _of_a_wrong_file(url: str, text: bytes | None, size: int, sha256: str) -> str:
    if text is None:
        what = "it is damaged and cannot be unpacked"
    elif text.lstrip()[:1] == b"<":
        what = "it is a web page, perhaps the login page of a network"
    else:
        got = hashlib.sha256(text).hexdigest()
        what = f"expected SHA-256 {sha256[:16]}…, got {got[:16]}…"
        if len(text) < size:
            what += f", and only {readable(len(text))} of {readable(size)} bytes"
    return f"{url} is not the text that the course knows: {what}; nothing of it was kept"


def _of_the_disk(error: OSError, path: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"there is no space left for {path}: free some, and ask again"
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{path} cannot be written: there is a file where its folder should be"
    return f"{path} cannot be written: {error.strerror or error}".splitlines()[0]
