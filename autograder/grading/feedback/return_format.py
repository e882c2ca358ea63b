"""Put pages of feedback into the form in which they go back to students."""

import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from autograder import CourseError
from autograder.files import write_aside
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook.result import clean
from autograder.grading.notebook.submission import is_linked, read_bytes
from autograder.temporary import Temporary

RECEIVED = "received.json"  # beside a submission: {"from": the path under which it was collected}
MAX_BYTES = 100_000
PAGES, CANVAS, MOODLE, MAIL = "pages", "canvas", "moodle", "mail"
ONE_LESSON = (CANVAS, MOODLE)  # an LMS takes the feedback of one assignment at a time
# Canvas finds student and file by the first two numbers between underscores.
CANVAS_NAME = re.compile(r"[^_]+(?:_LATE)?_\d+_\d+_.+")
# Moodle finds the student by the name of the folder; a download without folders begins like it.
MOODLE_NAME = re.compile(r"(.+_\d+_assignsubmission_file)(?:_.*)?")
UNSAFE = re.compile(r'[\\/:*?"<>|\n\t]')  # not on every machine the part of a file's name


def refuse(form: str, target: Path | None, lessons: Collection[str]) -> None:
    """Raise CourseError, before any work, where pages cannot be handed back like this."""
    if target is None:
        if form != PAGES:
            raise CourseError(f"--form {form} needs --to: the folder or the zip to write")
        return
    if form in ONE_LESSON and len(lessons) > 1:
        raise CourseError(
            f"{form.capitalize()} takes the feedback of one assignment at a time, and here are "
            f"{len(lessons)} lessons: choose one with --lesson"
        )
    if not target.resolve().parent.is_dir():
        raise CourseError(f"{target}: there is no folder {target.resolve().parent}")
    if _is_zip(target) and target.is_dir():
        raise CourseError(f"{target} is a folder; name a file that ends in .zip, or another folder")
    if not _is_zip(target) and target.exists() and not target.is_dir():
        raise CourseError(f"{target} is a file; name a folder, or a path that ends in .zip")


def hand_back(
    course: Course, form: str, target: Path, pages: Collection[Handed], gone: Collection[Handed]
) -> list[str]:
    """Write the pages of some submissions to a folder or zip; returns whose have no LMS name.

    gone   those without a page: what an earlier run wrote for them into the folder is removed
    """
    names, unknown = _names(course, form, sorted([*pages, *gone]))
    files = {names[one]: course.feedback(one) for one in pages}
    if _is_zip(target):
        _write_zip(files, target)
    else:
        for one in gone:
            (target / names[one]).unlink(missing_ok=True)
        for name, page in files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            write_aside(target / name, page.read_bytes())
    return sorted(one.student for one in pages if one in unknown)


def _names(
    course: Course, form: str, handed: Collection[Handed]
) -> tuple[dict[Handed, str], set[Handed]]:
    """What each page is called, and for whom the LMS's own name is not known.

    What two claim is neither's: a student may have written what is read here. The name under which
    another lesson came is no help: its numbers are those of that assignment alone.
    """
    names = {one: _name(form, one, _received(course, one)) for one in handed}
    unknown = _unclear(names)
    names |= {one: _plain(one) for one in unknown}
    for one in _unclear(names):
        digest = hashlib.sha256(one.student.encode("utf-8", "replace")).hexdigest()
        names[one] = _plain(one, f"_{digest[:12]}")
    return names, unknown if form in ONE_LESSON else set()


def _unclear(names: Mapping[Handed, str]) -> set[Handed]:
    """Who has no name, or one that is another's too where upper and lower case are the same."""
    claims = Counter(name.lower() for name in names.values())
    return {one for one, name in names.items() if not name or claims[name.lower()] > 1}


def _plain(one: Handed, more: str = "") -> str:
    return f"{_safe(one.student)}_{_safe(one.lesson)}{more}.html"


def _name(form: str, one: Handed, received: str) -> str:
    """The path of a page in this form, or '' where the LMS's own name is not known."""
    if form == PAGES:
        return f"{_safe(one.student)}/{_safe(one.lesson)}.html"
    if form == MAIL:
        return _plain(one)
    for part in reversed(re.split(r"[\\/]", received)):
        part = _safe(part)
        if form == CANVAS and CANVAS_NAME.fullmatch(part):
            return f"{Path(part).stem}.html"
        if form == MOODLE and (found := MOODLE_NAME.fullmatch(part)):
            return f"{found[1]}_/{_safe(one.lesson)}.html"
    return ""


def _received(course: Course, one: Handed) -> str:
    """The path under which a submission was collected, as was noted then, or ''."""
    path = course.submitted(one).parent / RECEIVED
    if is_linked(path.parent):
        return ""
    try:
        told = json.loads(read_bytes(path, MAX_BYTES) or b"")
    except (ValueError, RecursionError):
        return ""
    name = told.get("from") if isinstance(told, dict) else None
    return name if isinstance(name, str) else ""


def _safe(name: str) -> str:
    """A part of a path that is one part everywhere, and never '..' or hidden."""
    return UNSAFE.sub("_", clean(name)).lstrip(".")[:150] or "_"


def _write_zip(files: Mapping[str, Path], target: Path) -> None:
    """In one step: whoever reads it finds all of the old or all of the new."""
    with Temporary(target.resolve().parent, ".autograder-") as folder:
        aside = folder / target.name
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, page in files.items():
                archive.write(page, name)
        aside.replace(target)


def _is_zip(target: Path) -> bool:
    return target.suffix.lower() == ".zip"
