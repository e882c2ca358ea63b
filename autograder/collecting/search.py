"""Find the files that came back, in folders and zips, and open nothing that could do harm."""

import contextlib
import functools
import os
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TypeGuard

from autograder import CourseError
from autograder.grading.notebook.filenames import is_notebook
from autograder.grading.notebook.submission import MAX_BYTES, read_bytes

MAX_DEPTH = 12  # folders in folders, and zips in zips
# Of one zip that a student made, with the zips in it: files, and of these notebooks and zips.
MAX_FILES, MAX_OPENED, MAX_OPENED_MIB = 5000, 200, 100
JUNK_FOLDERS = {"__MACOSX", ".ipynb_checkpoints", "__pycache__"}
JUNK_FILES = {".DS_Store", "Thumbs.db", "desktop.ini", "timestamp.txt", "submission_secret.txt"}
ARCHIVES = (".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz")
DAMAGED = "it is damaged, or packed in a way that is unknown here"
LINK = "it is a link, which is not followed"
TOO_LARGE = f"it is larger than {MAX_BYTES >> 20} MiB"


class Refused(Exception):
    """A file is not opened; str() says why."""


@dataclass(frozen=True)
class Found:
    """Something that lies below what was searched."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The path as it is shown."""
        return shown("/".join(self.parts))


@dataclass(frozen=True)
class NotOpened(Found):
    """What is not opened, and why, as a sentence."""

    why: str


@dataclass(frozen=True)
class File(Found):
    """A plain file: when it was written, and how to read it.

    ``moment`` is UTC, without a zone. Of what lies in a zip of a student's it is the zip's own,
    for the times in there are the student's to choose.
    """

    moment: datetime
    read: Callable[[], bytes]  # raises Refused


Seen = File | NotOpened


def shown(text: str, most: int = 300) -> str:
    """A text that others wrote, on one line and with nothing that a terminal would obey.

    >>> shown("two\\nlines")
    'two\\\\nlines'
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text[:most])


def why(error: Exception) -> str:
    """Why something that raised is not taken, as the end of a sentence."""
    if isinstance(error, Refused):
        return str(error)
    told = error.strerror if isinstance(error, OSError) else ""
    return f"it cannot be taken: {told or f'{type(error).__name__}: {error}'[:200]}"


def search(source: Path | str, zone: tzinfo | None = None) -> Iterator[Seen]:
    """Every file in a folder or a zip, those in zips within it too; a single file is also taken.

    zone  that of the times in a zip, which name none; None: this machine's

    Raises CourseError if ``source`` cannot be opened at all.
    """
    source = Path(source)
    if source.is_dir():
        found: Iterable[Seen] = _folder(source, ())
    elif zipfile.is_zipfile(source):
        _archive.cache_clear()  # another file may have been at this path
        try:
            members = _archive(source).infolist()
        except Exception as error:
            raise CourseError(f"{source} is no zip, or damaged: {error}") from None
        files = (one for one in members if not one.is_dir())
        found = (_member(source, one, (), _moment(one, zone)) for one in files)
    elif source.is_file():
        found = [_file(source, (source.name,))]
    else:
        raise CourseError(f"{source}: there is no such folder or zip")
    for one in found:
        yield from _of_zip(one) if _is_zip(one) else [one]


def is_junk(parts: tuple[str, ...]) -> bool:
    """Whether a file is the system's or Jupyter's own, of which nobody is told."""
    inside = bool(JUNK_FOLDERS.intersection(parts))
    return inside or parts[-1] in JUNK_FILES or parts[-1].startswith("._")


def _folder(folder: Path, above: tuple[str, ...]) -> Iterator[Seen]:
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError as error:
        yield NotOpened(above or (folder.name,), why(error))
        return
    for entry in entries:
        parts = (*above, entry.name)
        if problem := _problem_of_name(parts):
            yield NotOpened(parts, problem)
        elif os.path.isdir(entry.path) and not os.path.islink(entry.path):
            yield from _folder(Path(entry.path), parts)
        else:
            yield _file(Path(entry.path), parts)


def _file(path: Path, parts: tuple[str, ...]) -> Seen:
    try:
        about = path.lstat()
        moment = datetime.fromtimestamp(about.st_mtime, UTC).replace(tzinfo=None)
    except (OSError, ValueError, OverflowError) as error:
        return NotOpened(parts, why(error))
    if stat.S_ISLNK(about.st_mode):
        return NotOpened(parts, LINK)
    if not stat.S_ISREG(about.st_mode):
        return NotOpened(parts, "it is not a plain file")
    if about.st_size > MAX_BYTES:
        return NotOpened(parts, TOO_LARGE)
    return _unless_archive(File(parts, moment, functools.partial(_read, path)))


def _read(path: Path) -> bytes:
    data = read_bytes(path, MAX_BYTES)
    if data is None:
        raise Refused("it cannot be read")
    return data


def _of_zip(whole: File) -> list[Seen]:
    """What is in one sender's zip, and in the zips in it: all of it, or why nothing is opened."""
    waiting, found = [whole], list[Seen]()
    files, opened, size = 0, 0, 0
    for one in waiting:  # it grows
        try:
            members = [member for member in _archive(one).infolist() if not member.is_dir()]
        except Exception:  # zipfile raises a dozen classes
            found.append(NotOpened(one.parts, "it is no zip, or damaged"))
            continue
        read = [member for member in members if _is_opened(member.filename)]
        files, opened = files + len(members), opened + len(read)
        size += sum(member.file_size for member in read)
        counts = {
            "files": (files, MAX_FILES),
            "notebooks and zips": (opened, MAX_OPENED),
            "MiB of notebooks and zips": (size >> 20, MAX_OPENED_MIB),
        }
        for what, (count, most) in counts.items():
            if count > most:
                told = f"{count:,} {what} or more are in it; at most {most:,} are opened"
                return [NotOpened(whole.parts, told)]
        inside = [_member(one, member, one.parts, whole.moment) for member in members]
        waiting += filter(_is_zip, inside)
        found += [seen for seen in inside if not _is_zip(seen)]
    return found


def _member(
    source: Path | File, member: zipfile.ZipInfo, above: tuple[str, ...], moment: datetime
) -> Seen:
    """One file in a zip; ``moment`` is when it came."""
    try:
        parts = (*above, *PurePosixPath(_name(member).replace("\\", "/")).parts)
        if problem := _problem_of_name(parts) or _problem_of(member):
            return NotOpened(parts, problem)
        read = functools.partial(_read_member, source, member)
        return _unless_archive(File(parts, moment, read))
    except Exception as error:
        return NotOpened((*above, member.filename), why(error))


@functools.lru_cache(maxsize=4)  # a zip's members are read one after the other
def _archive(source: File | Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(BytesIO(source.read()) if isinstance(source, File) else source)


def _read_member(source: File | Path, member: zipfile.ZipInfo) -> bytes:
    try:
        with _archive(source).open(member) as stream:
            data = stream.read(MAX_BYTES + 1)
    except Exception:  # zipfile raises a dozen classes
        raise Refused(DAMAGED) from None
    if len(data) > MAX_BYTES:
        raise Refused(TOO_LARGE)
    return data


def _is_opened(name: str) -> bool:
    return is_notebook(name) or name.lower().endswith(".zip")


def _is_zip(one: Seen) -> TypeGuard[File]:
    return isinstance(one, File) and one.parts[-1].lower().endswith(".zip")


def _unless_archive(file: File) -> Seen:
    if file.parts[-1].lower().endswith(ARCHIVES):
        told = "archives of this kind are not opened: unpack it, give a folder"
        return NotOpened(file.parts, told)
    return file


def _problem_of_name(parts: tuple[str, ...]) -> str:
    if ".." in parts or any("/" in part for part in parts):
        return "its name leads out of the folder"
    if not all(part.isprintable() for part in parts):
        return "there are control characters in its name"
    if len(parts) > MAX_DEPTH:
        return f"it lies in more than {MAX_DEPTH - 1} folders and zips"
    return "its name is too long" if sum(map(len, parts)) > 1000 else ""


def _problem_of(member: zipfile.ZipInfo) -> str:
    if stat.S_ISLNK(member.external_attr >> 16):
        return LINK
    if member.flag_bits & 1:
        return "it is protected by a password"
    return TOO_LARGE if member.file_size > MAX_BYTES else ""


def _name(member: zipfile.ZipInfo) -> str:
    """The member's name; macOS and Moodle write UTF-8 without saying so."""
    if not member.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            return member.orig_filename.encode("cp437").decode()
    return member.orig_filename


def _moment(member: zipfile.ZipInfo, zone: tzinfo | None) -> datetime:
    """When a zip says that a file in it was written; of an hour that comes twice, the first."""
    try:
        moment = datetime(*member.date_time, tzinfo=zone)
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return datetime(1980, 1, 1)
