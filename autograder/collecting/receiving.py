"""Put what came back where the grading looks for it, and lose nothing on the way."""

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from autograder import lessons
from autograder.collecting.hand_in import HandIn, Judge, pattern
from autograder.collecting.roster import Roster, cannot_name_a_folder
from autograder.collecting.search import NotOpened, Refused, is_junk, search, why
from autograder.files import write_aside
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.feedback.return_format import RECEIVED
from autograder.grading.notebook import records
from autograder.grading.notebook.submission import (
    MAX_BYTES,
    is_linked,
    is_of,
    parse,
    place,
    read_bytes,
)
from autograder.temporary import Temporary

Dates = Mapping[tuple[str, str], datetime | None]  # as ``deadline_extensions.dates`` gives them


@dataclass(frozen=True)
class How:
    """What ``receive`` is asked for."""

    names: Collection[str] = ()  # lessons; none: all
    at: datetime | None = None  # when all was handed in, in UTC without a zone; None: as files say
    pattern: str | None = None  # a regular expression that says whose a file is
    dry: bool = False  # change nothing


@dataclass
class Received:
    """What came of it. Of each student and lesson one is in ``new``, ``replacing`` or ``same``."""

    new: list[HandIn] = field(default_factory=list)
    replacing: list[HandIn] = field(default_factory=list)  # an earlier one, now in class/replaced/
    same: list[HandIn] = field(default_factory=list)
    several: list[tuple[HandIn, list[HandIn]]] = field(default_factory=list)  # and the earlier ones
    refused: list[NotOpened] = field(default_factory=list)
    times: dict[tuple[str, str], datetime] = field(default_factory=dict)  # by lesson and student

    @property
    def all(self) -> list[HandIn]:
        """The hand-ins that are in place now."""
        return [*self.new, *self.replacing, *self.same]


def due_of(dates: Dates, lesson: str, student: str = "") -> datetime | None:
    """When a lesson is due for a student, or for everyone, in UTC without a zone."""
    return dates.get((lesson, student), dates.get((lesson, "")))


def receive(course: Course, source: Path | str, roster: Roster, dates: Dates, how: How) -> Received:
    """Take the notebooks in a folder or zip; return what came of each file.

    Raises CourseError for an unknown lesson, a bad pattern, or a source that cannot be opened.
    """
    slugs = course.lessons()
    chosen = lessons.choose(how.names, slugs)
    solved = functools.cache(lambda slug: records.read_notebook(course.master(slug)))
    judge = Judge(slugs, chosen, solved, roster, pattern(how.pattern), course.choices)
    done, groups = Received(), dict[tuple[str, str], list[HandIn]]()
    files = search(source, course.choices.timezone)
    for one in (one for one in files if not is_junk(one.parts)):
        if isinstance(one, NotOpened):
            done.refused.append(one)
        else:
            try:
                found = judge.hand_in(one)
            except Exception as error:  # one file, one failure: the others are received
                done.refused.append(NotOpened(one.parts, why(error)))
            else:
                groups.setdefault((found.lesson, found.student), []).append(found)
    every = itertools.chain.from_iterable(groups.values())
    from_canvas = all(one.clues.late is not None for one in every)
    for attempts in groups.values():
        _take(course, attempts if from_canvas else _timed(attempts), dates, how, done)
    return done


def _timed(attempts: list[HandIn]) -> list[HandIn]:
    """The same at the times of their files: a student's own name for one may look like Canvas'."""
    return [replace(one, clues=replace(one.clues, late=None)) for one in attempts]


def _take(course: Course, attempts: list[HandIn], dates: Dates, how: How, done: Received) -> None:
    """Put the latest of a student's hand-ins of a lesson in its place."""
    if _are_several(attempts):
        told = (
            "two students, by their numbers, are called so: give a roster with lms_user_id, or, "
            "from Moodle, its grading worksheet with --like"
        )
        done.refused += [NotOpened(one.file.parts, told) for one in attempts]
        return
    last, *earlier = _latest_first(attempts)
    due = due_of(dates, last.lesson, last.student)
    try:
        when = last.when(due_of(dates, last.lesson), due, how.at)
        kind = _put(course, last, when, due, how)
    except Exception as error:
        done.refused.append(NotOpened(last.file.parts, why(error)))
        return
    getattr(done, kind).append(last)
    different = [one for one in earlier if one.digest != last.digest]
    done.refused += [NotOpened(one.file.parts, one.damage) for one in different if one.damage]
    if whole := [one for one in different if not one.damage]:
        done.several.append((last, whole))
    done.times[last.lesson, last.student] = when


def _are_several(attempts: list[HandIn]) -> bool:
    """Whether an LMS numbers as two students whom it calls the same.

    Moodle numbers a student anew in each assignment, of which each is a folder or zip of its own.
    """
    numbers = dict[object, set[str]]()
    for one in attempts:
        if one.clues.number and not one.group:  # of a group, each member's may be among them
            place = one.clues.who[1:] if one.clues.late is None else ()
            numbers.setdefault(place, set()).add(one.clues.number)
    return any(len(found) > 1 for found in numbers.values())


def _latest_first(attempts: list[HandIn]) -> list[HandIn]:
    """By time, of one time by the numbers of copies and uploads; damaged ones last."""

    def order(one: HandIn) -> tuple[object, ...]:
        clues = one.clues
        return not one.damage, one.file.moment, clues.attempt, clues.upload, one.file.name

    return sorted(attempts, key=order, reverse=True)


def _put(course: Course, one: HandIn, when: datetime, due: datetime | None, how: How) -> str:
    """Put a hand-in in its place; return 'new', 'replacing' or 'same'. Raises Refused."""
    if cannot_name_a_folder(one.student):
        raise Refused(f"{one.student!r} cannot name a folder")
    path = course.submitted(Handed(one.lesson, one.student))
    folder = path.parent
    if is_linked(folder):
        raise Refused(f"{course.shown(folder)} is a link, which is not followed")
    there = read_bytes(place(path), MAX_BYTES)
    before = records.moment(folder)
    if there is not None and hashlib.sha256(there).digest() == one.digest:
        # The same file says the same time, but what Canvas says depends on the due date.
        if not how.dry and (before is None or how.at or due and one.clues.late is not None):
            records.write_time(folder, when)
        if not how.dry:
            _note(folder, one)
        return "same"
    if before and (how.at or one.file.moment) < before:
        time = course.choices.shown(before)
        raise Refused(f"a later hand-in, of {time}, is there already")
    old = folder.is_dir() and any(folder.iterdir())
    if one.damage and there is not None and _is_work(course, one.lesson, there):
        raise Refused(f"{one.damage}; what was handed in before stays")
    if not how.dry:
        _write(course, one, path, when)
    return "replacing" if old else "new"


def _is_work(course: Course, lesson: str, data: bytes) -> bool:
    return is_of(parse(data), records.read_notebook(course.master(lesson)))


def _write(course: Course, one: HandIn, path: Path, when: datetime) -> None:
    """Make the new folder aside, move an old one away, and put the new one in its place."""
    folder, top = path.parent, course.handed_in.parent
    data = one.file.read()
    if hashlib.sha256(data).digest() != one.digest:
        raise Refused("it has changed since it was looked at: try again")
    top.mkdir(parents=True, exist_ok=True)
    with Temporary(top, ".receiving-") as aside:
        made = aside / "made"
        made.mkdir()
        write_aside(made / path.name, data)
        records.write_time(made, when)
        _note(made, one)
        if folder.is_dir() and any(folder.iterdir()):
            written = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
            time = records.moment(folder) or written
            os.rename(folder, _free(top / "replaced" / one.student / one.lesson, time))
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.rename(made, folder)  # an empty folder there gives way


def _note(folder: Path, one: HandIn) -> None:
    """Keep the path under which a hand-in came: an LMS takes feedback by that name."""
    write_aside(folder / RECEIVED, json.dumps({"from": "/".join(one.file.parts)}).encode())


def _free(folder: Path, time: datetime) -> Path:
    """A path in ``folder`` that is named by the time and where nothing lies."""
    folder.mkdir(parents=True, exist_ok=True)
    first = folder / f"{time:%Y-%m-%d_%H-%M-%S}"
    later = (Path(f"{first}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], later) if not os.path.lexists(path))
