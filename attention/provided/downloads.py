"""Files whose SHA-256 is known are downloaded, with pooch, so that each is whole or not there.

A `Source` is data that the course does not contain: what it consists of, and where it comes from.
"""

import errno
import functools
import gzip
import hashlib
import io
import re
import shlex
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pooch
import requests

from attention.provided.files import ROOT
from attention.provided.progress import DownloadBar
from autograder.terminal_output import readable

RETRIES = 3  # after 1, 2 and 3 seconds
TIMEOUT = 20  # seconds without a byte
SLACK = 10_000  # bytes that a compressed text may be longer than the text
MAY_PASS = (408, 425, 429)  # besides 500 and more: answers after which trying again may help
PAGE = re.compile(rb"\s*<(!doctype|html|head|\?xml)", re.IGNORECASE)

pooch.get_logger().setLevel("ERROR")


class DownloadError(RuntimeError):
    """A file cannot be had, or is not the right one; str() is one sentence that says why."""


class NotThere(DownloadError):
    """The server has no such file: another address may have it."""


class NoConnection(DownloadError):
    """The server was not reached, or did not send the whole file, however often it was asked."""


class NotWritten(DownloadError):
    """The disk does not take the file: no other address helps."""


@dataclass(frozen=True)
class File:
    """A file of a `Source`: its bytes, its SHA-256, and its path at home if that is not its name.

    At home it may be compressed; size and sha256 are those of the file unpacked.
    """

    size: int
    sha256: str
    path: str = ""


@dataclass
class Source:
    """Data that the course does not contain: files by name, and the address of their home."""

    name: str
    home: str
    files: dict[str, File]

    @property
    def folder(self) -> Path:
        """Where the files are unless one says otherwise."""
        return ROOT / ".cache" / self.name

    def command(self, folder: Path | None = None) -> str:
        """The command that fetches what is missing in a folder."""
        usual = folder is None or folder == self.folder
        there = "" if usual else f" --data {shlex.quote(str(folder))}"
        return f"autograder data fetch {self.name}{there}"

    def fetch(
        self, folder: Path, mirror: str | None = None, say: Callable[[str], object] = print
    ) -> None:
        """Download what is not there and whole.

        mirror  address of a server or a folder that has the files as they are in ``folder``; else
                they come from their home
        say     called with a sentence about each file
        raises  DownloadError, in one sentence, whatever goes wrong
        """
        try:
            self.get(folder, mirror, say)
        except (NoConnection, NotThere) as error:
            other = "leave out --mirror" if mirror else "name a copy of the files with --mirror URL"
            raise type(error)(f"{error}; try again later, or {other}") from error

    def get(
        self,
        folder: Path,
        mirror: str | None,
        say: Callable[[str], object],
        retries: int | None = None,
    ) -> None:
        """As `fetch`, which says besides what else can be done; retries: see `download`."""
        for name, file in self.files.items():
            if self.state(name, folder) == "whole":
                say(f"{name}: there already")
                continue
            place = f"{mirror.rstrip('/')}/{name}" if mirror else f"{self.home}/{file.path or name}"
            download(place, folder / name, file.size, file.sha256, retries)
            say(f"{name}: fetched, {readable(file.size)} bytes")

    def available(self, folder: Path) -> bool:
        """Whether all files are there and as long as they should be; they are not read."""
        try:
            return all(
                (folder / name).stat().st_size == file.size for name, file in self.files.items()
            )
        except OSError:
            return False

    def state(self, name: str, folder: Path) -> str:
        """Say whether a file is "whole", "missing", "altered" or "unreadable"."""
        try:
            with open(folder / name, "rb") as stream:
                got = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            return "missing"
        except OSError:
            return "unreadable"
        return "whole" if got == self.files[name].sha256 else "altered"

    def read(self, name: str, folder: Path, error: type[Exception]) -> bytes:
        """Read a file; an error of this type, in a sentence with the command that mends it."""
        path, command = folder / name, self.command(folder)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise error(f"{name} is not in {folder}: fetch it with {command}") from None
        except OSError as why:
            raise error(f"{path} cannot be read: {why.strerror}") from None
        if hashlib.sha256(content).hexdigest() != self.files[name].sha256:
            raise error(f"{path} is not what it was (its SHA-256 differs): mend it with {command}")
        return content


def download(url: str, path: Path, size: int, sha256: str, retries: int | None = None) -> None:
    """Get the file at an address, which may send it compressed by gzip.

    url           an http, https or file address
    path          its folder is made if need be
    size, sha256  of the file, unpacked
    retries       how often a server that may answer later is asked again; RETRIES if None
    raises        DownloadError, in one sentence, whatever goes wrong; an older file stays then
    """
    if not url.startswith(("http://", "https://", "file:")):
        raise DownloadError(
            f"{url} cannot be downloaded: an address begins with http:// or https://, or with "
            "file:/// if it is a folder on this machine"
        )
    label = path.name[:18]  # a line of a terminal has room for it
    receive = functools.partial(_receive, size=size, sha256=sha256, label=label)
    registry, urls = {path.name: f"sha256:{sha256}"}, {path.name: url}
    more = RETRIES if retries is None else retries
    store = pooch.create(path.parent, "", registry=registry, urls=urls, retry_if_failed=more)
    try:
        store.fetch(path.name, downloader=receive)
        path.chmod(0o644)  # pooch makes files that only their owner may read
    except requests.RequestException as error:
        tried = f"; given up after {1 + more} attempts" if more else ""
        raise NoConnection(f"{named(url)}: {_of_the_network(error)}{tried}") from error
    except OSError as error:
        raise NotWritten(_of_the_disk(error, path)) from error


class _Bounded(io.BytesIO):
    """Bytes in memory, at most so many, and a bar that says how many there are."""

    def __init__(self, url: str, most: int, bar: DownloadBar):
        super().__init__()
        self.url, self.most, self.bar = url, most, bar

    def write(self, content: Any) -> int:
        if self.tell() + len(content) > self.most:
            raise DownloadError(_of_a_wrong_file(self.url, "it is longer than it should be"))
        written = super().write(content)
        self.bar.received(self.tell())
        return written


def _receive(url: str, output: str, _: object, size: int, sha256: str, label: str) -> None:
    """Write the right file. What pooch tries again after is a RequestException."""
    with DownloadBar(size, label) as bar:
        received = _Bounded(url, size + SLACK, bar)
        if url.startswith("file:"):
            _read_file(url, received)
        else:
            _ask_server(url, received)
    content = _unpacked(received.getvalue(), size)
    if content is None:
        raise DownloadError(_of_a_wrong_file(url, "it is damaged and cannot be unpacked"))
    if wrong := wrongness(content, size, sha256):
        raise DownloadError(_of_a_wrong_file(url, wrong))
    Path(output).write_bytes(content)


def _ask_server(url: str, received: _Bounded) -> None:
    """Receive what a server sends; DownloadError for what trying again cannot mend."""
    try:
        pooch.HTTPDownloader(timeout=TIMEOUT)(url, received, None)
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status in MAY_PASS or status >= 500:
            raise
        kind = NotThere if status in (403, 404, 410) else DownloadError
        raise kind(f"{named(url)}: {_of_the_network(error)}") from error
    except requests.exceptions.SSLError as error:
        raise DownloadError(f"{named(url)}: {_of_the_network(error)}") from error
    except ValueError as error:
        raise DownloadError(f"{url} is no valid address: {error}") from error


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


def wrongness(content: bytes, size: int, sha256: str) -> str:
    """In what way these are not the right bytes, or ''."""
    got = hashlib.sha256(content).hexdigest()
    if got == sha256:
        return ""
    if PAGE.match(content[:1000]):
        return "it is a web page, perhaps the login page of a network"
    what = f"expected SHA-256 {sha256[:16]}…, got {got[:16]}…"
    if len(content) < size:
        what += f", and only {readable(len(content))} of {readable(size)} bytes"
    return what


def named(url: str) -> str:
    """An address as it is shown: without a password in it.

    >>> named("https://me:secret@pypi.example/simple")
    'https://pypi.example/simple'
    """
    place = urlsplit(url).netloc
    return url.replace(place, place.rpartition("@")[2], 1) if "@" in place else url


def _of_the_network(error: requests.RequestException) -> str:
    """What the server answers, or why there is no connection."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}".rstrip()
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    words = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return f"no connection ({words.splitlines()[0]})"


def _of_a_wrong_file(url: str, what: str) -> str:
    """Another file came than the one that is known."""
    return f"{named(url)} is not the file that the course knows: {what}; nothing of it was kept"


def _of_the_disk(error: OSError, path: Path) -> str:
    """The disk does not take a file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"there is no space left for {path}: free some, and ask again"
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{path} cannot be written: there is a file where its folder should be"
    return f"{path} cannot be written: {error.strerror or error}".splitlines()[0]
