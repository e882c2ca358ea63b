"""One hand-in for several: the work of a group's member stands in the folders of the others, too.

So every step of the grading, nbgrader's among them, gives each of them points and feedback.
class/shared.json says which notebooks are such copies: whatever else lies in a student's folder is
their own work, and stays.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from autograder import CourseError
from autograder.files import write_aside
from autograder.grading.notebook import records
from autograder.grading.notebook.submission import MAX_BYTES, is_linked, place, read_bytes
from autograder.term.course_file import Choices

RECORD = "shared.json"
Shared = dict[str, dict[str, dict[str, str]]]  # lesson → student → whose it is, and its digest


def share(choices: Choices, submitted: Path, chosen: Collection[str] | None = None) -> list[str]:
    """Copy what members of groups handed in to the others; returns what is to be told.

    submitted  the folder that holds one for each student
    chosen     lessons of which is told; None: all

    The latest work of a group counts for those who handed in nothing. Who handed in their own is
    graded by it.
    """
    before, found, told = _read(choices), Shared(), list[str]()
    for slug in choices.lessons:
        for name, members in choices.together(slug).items():
            own = {
                who: content
                for who in members
                if (content := _work(submitted / who / slug, slug)) is not None
                and _digest(content) != before.get(slug, {}).get(who, {}).get("digest")
            }
            if not own:
                continue
            source = max(own, key=lambda who: _time(submitted / who / slug))
            others = [who for who in members if who not in own]
            for who in others:
                _copy(submitted / source / slug, submitted / who / slug, slug, own[source])
                entry = {"from": source, "digest": _digest(own[source])}
                found.setdefault(slug, {})[who] = entry
            asked = chosen is None or slug in chosen
            if asked and len({*map(_digest, own.values())}) > 1:
                told.append(_several(slug, name, sorted(own), source, others))
    _take_back(submitted, before, found)
    if found != before:
        write_aside(choices.path.parent / RECORD, json.dumps(found, indent=1).encode())
    return told


def copies(choices: Choices) -> dict[tuple[str, str], str]:
    """By (lesson, student) of each notebook that is a copy: who handed it in."""
    return {
        (slug, student): said["from"]
        for slug, students in _read(choices).items()
        for student, said in students.items()
    }


def unknown(choices: Choices, roster: Mapping[str, bool]) -> str:
    """A sentence on the first student of a section or group who is not in the roster, or ''.

    roster  ids, and whether more is known of the student; where it is of nobody, nobody is enrolled
    """
    if not any(roster.values()):
        return ""
    for what in ("sections", "groups"):
        for name, members in getattr(choices, what).items():
            for student in members:
                if student not in roster:
                    near = get_close_matches(student, roster, 1)
                    hint = f"did you mean {near[0]}?" if near else "see autograder roster"
                    return (
                        f"{choices.path}: {what}.{name} names {student}, who is not in the roster; "
                        f"{hint}"
                    )
    return ""


def _several(slug: str, group: str, own: list[str], source: str, others: list[str]) -> str:
    rest = f"; {', '.join(others)} are graded by the latest, that of {source}" if others else ""
    names = f"{', '.join(own[:-1])} and {own[-1]}"
    return f"{slug}: {names} of group {group} handed in different work, and keep their own{rest}"


def _work(folder: Path, slug: str) -> bytes | None:
    path = place(folder / f"{slug}.ipynb")
    return None if is_linked(folder) else read_bytes(path, MAX_BYTES)


def _time(folder: Path) -> tuple[str, str]:
    """When a folder's work was handed in, and, of the same time, its student, to choose one."""
    moment = records.moment(folder)
    return (moment.isoformat() if moment else "", folder.parent.name)


def _copy(source: Path, target: Path, slug: str, content: bytes) -> None:
    target.mkdir(parents=True, exist_ok=True)
    write_aside(target / f"{slug}.ipynb", content)
    if said := records.timestamp(source):
        write_aside(target / records.TIMESTAMP, said.encode())


def _take_back(submitted: Path, before: Shared, found: Shared) -> None:
    """Remove copies that are shared no longer: their source is gone, or the group is another."""
    for slug, students in before.items():
        for who in students.keys() - found.get(slug, {}).keys():
            folder = submitted / who / slug
            content = _work(folder, slug)
            if content is None or _digest(content) != students[who]["digest"]:
                continue
            for name in (f"{slug}.ipynb", records.TIMESTAMP):
                (folder / name).unlink(missing_ok=True)
            for empty in (folder, folder.parent):
                if not any(empty.iterdir()):
                    empty.rmdir()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(choices: Choices) -> Shared:
    path = choices.path.parent / RECORD
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CourseError(
            f"{path} cannot be read ({error}); it says which notebooks are copies of a group's: "
            "take it from a copy of class/"
        ) from None
    return found if isinstance(found, dict) else {}
