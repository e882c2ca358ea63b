"""Find the files that came back, in folders and zips, and open nothing that could do harm."""

import functools
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath

from autograder import CourseError
from autograder.grading.notebook.submission import MAX_BYTES, read_bytes

MAX_DEPTH = 12  # folders in folders, and zips in zips
MAX_FILES = 100_000
# Of one zip that a student made.
MAX_OWN_FILES, MAX_OWN_BYTES = 5000, 500 * 2**20
JUNK_FOLDERS = {"__MACOSX", ".ipynb_checkpoints", "__pycache__"}
JUNK_FILES = {".DS_Store", "Thumbs.db", "desktop.ini", "timestamp.txt", "submission_secret.txt"}
ARCHIVES = (".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz")
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
TOO_LARGE = f"it is larger than {MAX_BYTES >> 20} MiB"


class Refused(Exception):
    """A file is not opened; str() says why."""


@dataclass(frozen=True)
class File:
    """A plain file: where it lies below what was searched, when it was written, how to read it.

    ``moment`` is UTC, without a zone. Of what lies in a zip of a student's it is the zip's own,
    for the times in there are the student's to choose.
    """

    parts: tuple[str, ...]
    moment: datetime
    read: Callable[[], bytes]  # raises Refused

    @property
    def name(self) -> str:
        """The path as it is shown."""
        return "/".join(self.parts)


@dataclass(frozen=True)
class NotOpened:
    """What is not opened, and why."""

    parts: tuple[str, ...]
    why: str


Seen = File | NotOpened


def search(source: Path | str) -> Iterator[Seen]:
    """Every file in a folder or a zip, those in zips within it too; a single file is also taken.

    Raises CourseError if ``source`` cannot be opened at all.
    """
    source = Path(source)
    if source.is_dir():
        found = _folder(source, (), 0)
    elif zipfile.is_zipfile(source):
        found = _zip(source, (), 0)
    elif source.is_file():
        found = iter([_file(source, (source.name,))])
    else:
        raise CourseError(f"{source}: there is no such folder or zip")
    for number, one in enumerate(found):
        if number == MAX_FILES:
            raise CourseError(f"{source} holds more than {MAX_FILES:,} files: give a part of it")
        yield one


def is_junk(parts: tuple[str, ...]) -> bool:
    """Whether a file is the system's or Jupyter's own, of which nobody is told."""
    inside = bool(JUNK_FOLDERS.intersection(parts))
    return inside or parts[-1] in JUNK_FILES or parts[-1].startswith("._")


def _folder(folder: Path, above: tuple[str, ...], depth: int) -> Iterator[Seen]:
    if depth > MAX_DEPTH:
        yield NotOpened(above, "too many folders lie in one another")
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError as error:
        yield NotOpened(above or (folder.name,), f"it cannot be read: {error.strerror}")
        return
    for entry in entries:
        parts = (*above, entry.name)
        if problem := _problem_of_name(parts):
            yield NotOpened(parts, problem)
        elif entry.is_symlink():
            yield NotOpened(parts, "it is a link, which is not followed")
        elif entry.is_dir():
            yield from _folder(Path(entry.path), parts, depth + 1)
        else:
            one = _file(Path(entry.path), parts)
            yield from _unpacked(one, depth) if isinstance(one, File) else [one]


def _file(path: Path, parts: tuple[str, ...]) -> Seen:
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode):
        return NotOpened(parts, "it is not a plain file")
    if about.st_size > MAX_BYTES:
        return NotOpened(parts, TOO_LARGE)

    def read() -> bytes:
        data = read_bytes(path, MAX_BYTES)
        if data is None:
            raise Refused("it cannot be read")
        return data

    return File(parts, datetime.fromtimestamp(about.st_mtime, UTC).replace(tzinfo=None), read)


def _unpacked(file: File, depth: int) -> Iterator[Seen]:
    """The file, or what is in it if it is a zip."""
    name = file.parts[-1].lower()
    if name.endswith(ARCHIVES):
        why = "archives of this kind are not opened: unpack it, give a folder"
        yield NotOpened(file.parts, why)
    elif not name.endswith(".zip"):
        yield file
    else:
        try:
            yield from _zip(file, file.parts, depth + 1)
        except Refused as reason:
            yield NotOpened(file.parts, str(reason))


def _zip(source: Path | File, above: tuple[str, ...], depth: int) -> Iterator[Seen]:
    """What is in a zip: the outer one, or a File that lies in something else."""
    own = source if isinstance(source, File) else None
    try:
        with zipfile.ZipFile(_opened(source)) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
    except BROKEN:
        yield NotOpened(above or (str(source),), "it is no zip, or damaged")
        return
    size = sum(one.file_size for one in members)
    if depth > MAX_DEPTH or own and (len(members) > MAX_OWN_FILES or size > MAX_OWN_BYTES):
        holds = f"{len(members):,} files of {size >> 20:,} MiB together"
        yield NotOpened(above, f"it would unpack to {holds}, which is too much")
        return
    for member in members:
        parts = (*above, *PurePosixPath(_name(member).replace("\\", "/")).parts)
        if problem := _problem_of_name(parts) or _problem_of(member):
            yield NotOpened(parts, problem)
            continue
        read = functools.partial(_read_member, source, member.filename)
        yield from _unpacked(File(parts, own.moment if own else _moment(member), read), depth)


@functools.lru_cache(maxsize=2)  # a zip's members are read one after the other
def _kept(file: File) -> bytes:
    return file.read()


def _opened(source: File | Path) -> Path | BytesIO:
    return BytesIO(_kept(source)) if isinstance(source, File) else source


def _read_member(source: File | Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(_opened(source)) as archive, archive.open(name) as stream:
            data = stream.read(MAX_BYTES + 1)
    except BROKEN:
        raise Refused("it is damaged, or packed in a way that is unknown here") from None
    if len(data) > MAX_BYTES:
        raise Refused(TOO_LARGE)
    return data


def _problem_of_name(parts: tuple[str, ...]) -> str:
    if ".." in parts or any("/" in part for part in parts):
        return "its name leads out of the folder"
    if not all(part.isprintable() for part in parts):
        return "there are control characters in its name"
    return "its name is too long" if sum(map(len, parts)) > 1000 else ""


def _problem_of(member: zipfile.ZipInfo) -> str:
    if stat.S_ISLNK(member.external_attr >> 16):
        return "it is a link, which is not followed"
    if member.flag_bits & 1:
        return "it is protected by a password"
    return TOO_LARGE if member.file_size > MAX_BYTES else ""


def _name(member: zipfile.ZipInfo) -> str:
    """The member's name; macOS and Moodle write UTF-8 without saying so."""
    if not member.flag_bits & 0x800:
        try:
            return member.orig_filename.encode("cp437").decode()
        except UnicodeError:
            pass
    return member.orig_filename


def _moment(member: zipfile.ZipInfo) -> datetime:
    """A zip's times have no zone: they are taken for this machine's."""
    try:
        return datetime(*member.date_time).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return datetime(1980, 1, 1)
