"""Download one text whose SHA-256 is known, with pooch, so that it ends up whole or not at all."""

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

from attention.provided.downloads import failures
from attention.provided.downloads.failures import (
    RETRIES,
    DownloadError,
    NoConnection,
    NotThere,
    NotWritten,
    of_a_wrong_file,
)

SLACK = 10_000  # bytes that a compressed text may be longer than the text

pooch.get_logger().setLevel("ERROR")


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
    failures.check_address(url)
    receive = functools.partial(_receive, size=size, sha256=sha256)
    registry, urls = {path.name: f"sha256:{sha256}"}, {path.name: url}
    store = pooch.create(path.parent, "", registry=registry, urls=urls, retry_if_failed=RETRIES)
    try:
        store.fetch(path.name, downloader=receive)
        path.chmod(0o644)  # pooch makes files that only their owner may read
    except requests.RequestException as error:
        words = f"{url}: {failures.of_the_network(error)}; given up after {1 + RETRIES} attempts"
        raise NoConnection(words) from error
    except OSError as error:
        raise NotWritten(failures.of_the_disk(error, path)) from error


def _receive(url: str, output: str, _: object, size: int, sha256: str) -> None:
    """Write the right text to a file. What pooch tries again after is a RequestException."""
    received = _Bounded(url, size + SLACK)
    if url.startswith("file:"):
        _read_file(url, received)
    else:
        with failures.refusals(url):
            pooch.HTTPDownloader(timeout=failures.TIMEOUT)(url, received, None)
    text = _unpacked(received.getvalue(), size)
    if text is None:
        what = "it is damaged and cannot be unpacked"
        raise DownloadError(of_a_wrong_file(url, what, "text"))
    if hashlib.sha256(text).hexdigest() != sha256:
        what = failures.of_wrong_bytes(text, size, sha256)
        raise DownloadError(of_a_wrong_file(url, what, "text"))
    Path(output).write_bytes(text)


def _read_file(url: str, received: _Bounded) -> None:
    try:
        received.write(Path(url2pathname(urlsplit(url).path)).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotThere(f"{url}: {error.strerror}") from error
    except OSError as error:
        raise DownloadError(f"{url}: {error.strerror}") from error


def _unpacked(content: bytes, size: int) -> bytes | None:
    """The text, unpacked if it is compressed, but not much more than its size; None: damaged."""
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.GzipFile(fileobj=io.BytesIO(content)).read(size + 1)
    except (OSError, EOFError, zlib.error):
        return None
