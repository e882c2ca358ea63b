"""Write a release into a folder or a zip, after a search for solutions."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from autograder import ROOT
from autograder.building.lesson import find
from autograder.files import write_aside
from autograder.grading.classroom import database, deadline_extensions
from autograder.grading.classroom.folders import Course
from autograder.lessons import RELEASED
from autograder.releasing import solution_leaks as secrets
from autograder.releasing.release_files import ReleaseError, contents
from autograder.settings import COURSE

INSIDE = f"{COURSE.name}-course"  # the folder within a zip
WORK = "lessons/"  # where students write


@dataclass
class Released:
    """What was written: lessons, number of files, their bytes, notebooks left as they were."""

    lessons: list[str]
    count: int
    size: int
    secrets: int
    kept: list[str]


def release(names: Sequence[str], target: Path | str, early: bool = False) -> Released:
    """Write a release of the lessons ``names`` to ``target``, a folder or a path that ends in .zip.

    early  also where it holds solutions of lessons that are not due yet

    Raises ReleaseError if a line of a solution stands in it, or ``target`` cannot be used; nothing
    is written then.
    """
    target = Path(target)
    _refuse_place(target)
    slugs = [path.stem for path in find(list(names))]
    if not early:
        _refuse_open(slugs[0])
    files = contents(names)
    found = secrets.leaks(files, slugs)
    if found:
        raise ReleaseError("not written, for it would give solutions away:\n" + "\n".join(found))
    kept: list[str] = []
    if target.suffix == ".zip":
        _write_zip(files, target)
    else:
        kept = _worked_in(files, target)
        _write_folder({path: files[path] for path in files if path not in kept}, target)
    size = sum(map(len, files.values()))
    return Released(slugs, len(files), size, len(secrets.secrets(slugs)), kept)


def _refuse_open(first: str) -> None:
    """A lesson before ``first`` that is not due yet: its solutions would be handed out."""
    course, now = Course(ROOT), datetime.now(UTC).replace(tzinfo=None)
    dates = {(slug, ""): choice.due for slug, choice in course.choices.lessons.items()}
    if database.exists(course):
        with database.opened(course) as book:
            dates |= deadline_extensions.dates(book)
    done = {(one.lesson, one.student) for one in course.submissions()}
    for (slug, student), due in dates.items():
        if slug < first and due and due > now and (slug, student) not in done:
            whom = f" for {student}" if student else ""
            raise ReleaseError(
                f"{slug} is due {course.choices.shown(due)}{whom}, and its solutions are part of "
                "this release: wait until then, or add --early"
            )


def _refuse_place(target: Path) -> None:
    place = target.resolve()
    if place == ROOT or ROOT in place.parents and (ROOT / "lessons") in (place, *place.parents):
        raise ReleaseError(f"{target} is this repository's own; name a place outside of it")
    if target.suffix == ".zip":
        if not place.parent.is_dir():
            raise ReleaseError(f"{target}: there is no folder {place.parent}")
    elif target.exists() and not target.is_dir():
        raise ReleaseError(f"{target} is a file; name a folder, or a path that ends in .zip")
    elif target.is_dir() and any(target.iterdir()) and not (target / RELEASED).is_dir():
        raise ReleaseError(f"{target} is not empty and holds no release; name another folder")


def _worked_in(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Notebooks that are neither as they were handed out nor as they are now."""
    kept = []
    for path, content in files.items():
        there, before = folder / path, folder / RELEASED / path.removeprefix(WORK)
        known = [content, before.read_bytes() if before.is_file() else content]
        if path.startswith(WORK) and there.is_file() and there.read_bytes() not in known:
            kept.append(path)
    return kept


def _write_folder(files: Mapping[str, bytes], target: Path) -> None:
    """Wherever it stops, as on a full disk, the same command goes on.

    By RELEASED it knows the folder, and whose notebooks nobody has touched: its files come last.
    """
    (target / RELEASED).mkdir(parents=True, exist_ok=True)
    for path in sorted(files, key=lambda path: path.startswith(f"{RELEASED}/")):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        write_aside(target / path, files[path])


def _write_zip(files: Mapping[str, bytes], target: Path) -> None:
    """The same bytes for the same files: no dates."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(f"{INSIDE}/{path}")
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    write_aside(target, stream.getvalue())
