"""Download one file whose SHA-256 is known, so that it ends up whole or not at all.

What has come is kept in a file beside it, ``NAME.part``: the next attempt, in a second or in a
week, goes on from there. Only text with the right SHA-256 gets the final name, by a rename.
"""

import contextlib
import errno
import gzip
import hashlib
import http.client
import io
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib

from attention.provided.files import write_aside
from attention.provided.progress import WIDTH, Bar

try:
    import fcntl
except ImportError:  # Windows: two downloads at once spoil each other, which the SHA-256 shows
    fcntl = None

WAITS = (1, 2, 4, 8)  # seconds before the next attempt, while nothing more comes
ATTEMPTS = 20  # at most, even if each brings a little
TIMEOUT = 20  # seconds without a byte
CHUNK = 1 << 14
SLACK = 10_000  # bytes that a compressed text may be longer than the text


class DataError(RuntimeError):
    """Data that cannot be had or is not right; str() is one sentence that says what to do."""


class NotThere(DataError):
    """The server has no such file: another address may have it."""


class NoConnection(DataError):
    """The server was not reached, or did not send the whole file, however often it was asked."""


class _Interrupted(Exception):
    """This attempt failed; the next may not."""


class _NoSuchRange(Exception):
    """The server has nothing from the byte on that was asked for."""


def download(url, path, size, sha256, say=print, wait=time.sleep):
    """Get the text at an address, which may send it compressed by gzip, into a file.

    url           an http, https or file address
    path          a Path; its folder is made if need be
    size, sha256  of the text, unpacked
    say, wait     called with a sentence, and with seconds, before another attempt
    raises        DataError, in one sentence, whatever goes wrong
    """
    _check_address(url)
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("a+b") as file:
                _lock(file, part)
                write_aside(path, _verified(url, file, size, sha256, say, wait))
                file.truncate(0)
        finally:
            if part.exists() and part.stat().st_size == 0:
                part.unlink()
    except OSError as error:
        raise DataError(_of_the_disk(error, path)) from error


def _check_address(url):
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        raise DataError(f"{url} is no valid address: {error}") from None
    if parts.scheme not in ("http", "https", "file"):
        raise DataError(
            f"{url} cannot be downloaded: an address begins with http:// or https://, or with "
            "file:/// if it is a folder on this machine"
        )
    if parts.scheme != "file" and not parts.hostname:
        raise DataError(f"{url} names no server")


def _lock(file, part):
    """Keep the file to this process until it is closed."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(f"another download is writing {part}: wait until it has ended") from None
    except OSError:
        pass  # some network disks have no locks; then it is as on Windows


def _verified(url, file, size, sha256, say, wait):
    """Fill the file up and return the text in it; empty the file if the text is a wrong one."""
    resumed = file.seek(0, os.SEEK_END) > 0
    text = _text(file, size) if resumed else b""
    if _sha256(text) == sha256:  # stopped after the last byte had come
        return text
    while True:
        _receive(url, file, size, say, wait)
        text = _text(file, size)
        if _sha256(text) == sha256:
            return text
        file.truncate(0)
        if not resumed:
            raise DataError(_of_a_wrong_file(url, text, size, sha256))
        say(f"{_last_part(url)}: what an earlier download left does not fit; from the beginning")
        resumed = False


def _text(file, size):
    """The text in the file, unpacked if it is compressed; None if that fails or it is too long."""
    file.seek(0)
    content = file.read()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(size + 1)
        except (OSError, EOFError, zlib.error):
            return None
    return content


def _sha256(text):
    return hashlib.sha256(text).hexdigest() if text is not None else None


def _receive(url, file, size, say, wait):
    """Append to the file until it is complete; give up when several attempts bring nothing more."""
    most, useless = file.seek(0, os.SEEK_END), 0
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _attempt(url, file, size)
            return
        except _Interrupted as error:
            have = file.seek(0, os.SEEK_END)
            most, useless = max(most, have), 1 if have > most else useless + 1
            if useless > len(WAITS) or attempt == ATTEMPTS:
                kept = f" ({readable(have)} bytes are kept for the next time)" if have else ""
                words = f"{url}: {error}; given up after {attempt} attempts{kept}"
                raise NoConnection(words) from error
            seconds = WAITS[useless - 1]
            say(f"{_last_part(url)}: {error}; trying again in {seconds} s")
        wait(seconds)


def _of(part, all_of_it):
    return f"{readable(part)} of {readable(all_of_it)} bytes"


def _last_part(url):
    return url.rpartition("/")[2]


def readable(number):
    """A number with its digits in groups of three.

    >>> readable(1801238)
    '1 801 238'
    """
    return f"{number:_}".replace("_", " ")


def _attempt(url, file, size):
    """Append to the file what is missing of it, as far as it comes."""
    have = file.seek(0, os.SEEK_END)
    with _open(url, have) as response:
        if have and response.status == 206:
            if not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                file.truncate(0)
                raise _Interrupted("the server sent another part than the one asked for")
        elif have:  # the whole file: the server knows no ranges, or has nothing from this byte on
            have = file.truncate(0)
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        with _Kilobytes(have, total or size, _last_part(url)) as bar:
            for chunk in _chunks(url, response):
                have += file.write(chunk)
                if have > size + SLACK:
                    file.truncate(0)
                    raise DataError(f"{url} is longer than it should be; nothing of it was kept")
                bar.update(have)
    file.flush()
    if total is not None and have < total:
        raise _Interrupted(f"the connection ended after {_of(have, total)}")


class _Kilobytes(Bar):
    """The progress bar of a download, which goes away when that has ended."""

    def __init__(self, begun, total, label):
        super().__init__(total, label)
        self.begun = begun

    def update(self, done):
        """Say how many bytes there are; draws at most 5 times a second."""
        now = time.monotonic()
        if now - self.shown < 0.2:
            return
        self.shown = now
        left = (now - self.begin) / (done - self.begun) * (self.total - done)
        bar = ("█" * round(WIDTH * done / self.total)).ljust(WIDTH, "░")
        counted = f"{done // 1000}/{self.total // 1000} kB"
        self._show(f"{self.label} {bar} {counted} · {left:.0f} s left")

    def __exit__(self, *_):
        self._show("")


def _open(url, have):
    """Ask for the file from byte ``have`` on."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "attention-course"}
    if have:
        headers["Range"] = f"bytes={have}-"
    plain = urllib.parse.quote(url, safe=":/?#[]@!$&'()*+,;=%~")
    try:
        with _network(url):
            request = urllib.request.Request(plain, headers=headers)
            return urllib.request.urlopen(request, timeout=TIMEOUT)
    except _NoSuchRange:
        return _open(url, 0)


def _chunks(url, response):
    while True:
        with _network(url):
            chunk = response.read(CHUNK)
        if not chunk:
            return
        yield chunk


# What may go wrong, in words


@contextlib.contextmanager
def _network(url):
    """Turn whatever the network raises into DataError, or _Interrupted if trying again may help."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise _of_a_status(url, error) from error
    except urllib.error.URLError as error:
        why, words = error.reason, _words(error.reason)
        if isinstance(why, (FileNotFoundError, NotADirectoryError)):
            raise NotThere(f"{url}: {words}") from error
        if url.startswith("file:") or isinstance(why, ssl.SSLCertVerificationError):
            raise DataError(f"{url}: {words}") from error
        raise _Interrupted(f"no connection ({words})") from error
    except (http.client.InvalidURL, ValueError) as error:
        raise DataError(f"{url} is no valid address: {_words(error)}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(f"the connection broke ({_words(error)})") from error


def _of_a_status(url, error):
    answer = f"the server answers {error.code} {error.reason}".splitlines()[0].rstrip(" .")
    if error.code == 416:
        return _NoSuchRange()
    if error.code in (403, 404, 410):
        return NotThere(f"{url}: {answer}")
    if error.code in (408, 425, 429) or error.code >= 500:
        return _Interrupted(answer)
    return DataError(f"{url}: {answer}")


def _words(error):
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _of_a_wrong_file(url, text, size, sha256):
    if text is None:
        what = "it is damaged and cannot be unpacked"
    elif text.lstrip()[:1] == b"<":
        what = "it is a web page, perhaps the login page of a network"
    else:
        what = f"expected SHA-256 {sha256[:16]}…, got {_sha256(text)[:16]}…"
        if len(text) < size:
            what += f", and only {_of(len(text), size)}"
    return f"{url} is not the text that the course knows: {what}; nothing of it was kept"


def _of_the_disk(error, path):
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"there is no space left for {path}: free some, and what has come is not lost"
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{path} cannot be written: there is a file where its folder should be"
    return f"{path} cannot be written: {_words(error)}"
