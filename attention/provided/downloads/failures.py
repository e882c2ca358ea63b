"""What may go wrong with a download, and the sentence that says so."""

import contextlib
import errno
import hashlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import requests

from autograder.terminal_output import readable

RETRIES = 3  # after 1, 2 and 3 seconds
TIMEOUT = 20  # seconds without a byte
MAY_PASS = (408, 425, 429)  # besides 500 and more: answers after which trying again may help
PAGE = re.compile(rb"\s*<(!doctype|html|head|\?xml)", re.IGNORECASE)
Result = TypeVar("Result")


class DownloadError(RuntimeError):
    """A file cannot be had, or is not the right one; str() is one sentence that says why."""


class NotThere(DownloadError):
    """The server has no such file: another address may have it."""


class NoConnection(DownloadError):
    """The server was not reached, or did not send the whole file, however often it was asked."""


class NotWritten(DownloadError):
    """The disk does not take the file: no other address helps."""


def check_address(url: str) -> None:
    """Raise DownloadError if this is no http, https or file address."""
    if not url.startswith(("http://", "https://", "file:")):
        raise DownloadError(
            f"{url} cannot be downloaded: an address begins with http:// or https://, or with "
            "file:/// if it is a folder on this machine"
        )
    try:
        if not url.startswith("file:"):
            requests.Request("GET", url).prepare()
    except ValueError as error:
        raise of_an_address(url, error) from None


@contextlib.contextmanager
def refusals(url: str) -> Iterator[None]:
    """Make a DownloadError of what trying again cannot mend; other RequestExceptions pass."""
    try:
        yield
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status in MAY_PASS or status >= 500:
            raise
        kind = NotThere if status in (403, 404, 410) else DownloadError
        raise kind(f"{named(url)}: {of_the_network(error)}") from error
    except requests.exceptions.SSLError as error:
        raise DownloadError(f"{named(url)}: {of_the_network(error)}") from error
    except ValueError as error:
        raise of_an_address(url, error) from error


def insist(
    url: str, attempt: Callable[[], Result], hopeless: Callable[[Exception], bool]
) -> Result:
    """Try again what may pass; NoConnection in the end, at once what `refusals` says otherwise.

    hopeless  asked after each failure whether another attempt is in vain
    """
    for number in range(1, 2 + RETRIES):
        try:
            with refusals(url):
                return attempt()
        except requests.RequestException as error:
            if number > RETRIES or hopeless(error):
                times = f"; given up after {number} attempts" if number > 1 else ""
                words = f"{named(url)}: {of_the_network(error)}{times}"
                raise NoConnection(words) from error
        time.sleep(number)
    raise AssertionError("the last attempt returns or raises")


# The sentences


def named(url: str) -> str:
    """An address as it is shown: without a password in it.

    >>> named("https://me:secret@pypi.example/simple")
    'https://pypi.example/simple'
    """
    place = urlsplit(url).netloc
    return url.replace(place, place.rpartition("@")[2], 1) if "@" in place else url


def of_an_address(url: str, error: Exception) -> DownloadError:
    """The address is none."""
    return DownloadError(f"{url} is no valid address: {error}")


def of_the_network(error: requests.RequestException) -> str:
    """What the server answers, or why there is no connection."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}".rstrip()
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    words = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return f"no connection ({words.splitlines()[0]})"


def of_a_wrong_file(url: str, what: str, kind: str = "file") -> str:
    """Another file came than the one that is known."""
    return f"{named(url)} is not the {kind} that the course knows: {what}; nothing of it was kept"


WEB_PAGE = "it is a web page, perhaps the login page of a network"


def of_a_wrong_sum(start: bytes, length: int, size: int, got: str, sha256: str) -> str:
    """In what way the bytes that came are wrong, for `of_a_wrong_file`."""
    if PAGE.match(start):
        return WEB_PAGE
    what = f"expected SHA-256 {sha256[:16]}…, got {got[:16]}…"
    if length < size:
        what += f", and only {readable(length)} of {readable(size)} bytes"
    return what


def of_wrong_bytes(content: bytes, size: int, sha256: str) -> str:
    """The same for bytes in memory."""
    got = hashlib.sha256(content).hexdigest()
    return of_a_wrong_sum(content[:1000], len(content), size, got, sha256)


def of_the_disk(error: OSError, path: Path) -> str:
    """The disk does not take a file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"there is no space left for {path}: free some, and ask again"
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{path} cannot be written: there is a file where its folder should be"
    return f"{path} cannot be written: {error.strerror or error}".splitlines()[0]
