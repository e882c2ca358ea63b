"""Work that lies where nobody looks for it, and names that the roster does not know."""

import difflib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from autograder import lessons
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook.filenames import is_notebook, not_an_id, plain
from autograder.grading.notebook.result import clean
from autograder.grading.notebook.submission import place

ALIKE = 0.7  # of 1, by difflib


def misplaced(
    course: Course, names: Collection[str] = (), students: Collection[str] = ()
) -> Iterator[str]:
    """A sentence for each place below class/submitted/ that holds work which is not graded.

    names, students  but for what is of other lessons, or of other students, than these
    """
    top, known = course.handed_in, course.lessons()
    others = set(known) - set(lessons.choose(names, known))
    told = set[tuple[str, ...]]()
    for path in _work(top):
        parts = path.relative_to(top).parts
        student, lesson = parts[0], parts[1] if len(parts) > 2 else ""
        if parts[:2] in told or lesson in others or students and student not in students:
            continue
        told.add(parts[:2])
        shown = " ".join(clean(course.shown(path)).split())  # on one line, whatever it is called
        if len(parts) > 1 and (why := not_an_id(student)):
            yield f"{shown} is in no student's folder, for {why}: rename {clean(student)!r}"
        elif lesson not in known or not _is_there(course, Handed(lesson, student)):
            yield (
                f"{shown} lies where no work is looked for: put it into "
                f"{course.shown(top)}/STUDENT/LESSON/LESSON.ipynb, or give the folder to "
                "`autograder receive`"
            )


def _is_there(course: Course, one: Handed) -> bool:
    """Whether a submission has a notebook, or a link, where the grading looks for it."""
    return os.path.lexists(place(course.submitted(one)))


def _work(top: Path) -> Iterator[Path]:
    """The notebooks and zips in a folder and in those within it, without hidden ones."""
    for folder, inner, files in os.walk(top):
        depth = len(Path(folder).relative_to(top).parts)
        # A student's folder whose name begins with a dot is told of.
        inner[:] = sorted(one for one in inner if depth == 0 or not one.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            is_work = is_notebook(name) or path.suffix.lower() == ".zip"
            if is_work and not name.startswith(".") and not path.is_symlink():
                yield path


def absent(roster: Mapping[str, bool], handed: Collection[Handed], lesson: str) -> list[str]:
    """Ids of the students of the roster without a folder for a lesson.

    roster  ids, and whether more is known of the student; where that is so of some, who is known
            by the id alone was graded and is not enrolled
    """
    there = {one.student for one in handed if one.lesson == lesson}
    enrolled = {student for student, known in roster.items() if known}
    return sorted((enrolled or roster.keys()) - there)


def strangers(roster: Mapping[str, bool], handed: Collection[Handed]) -> Iterator[str]:
    """A sentence for each folder that names nobody of the roster."""
    enrolled = sorted(student for student, known in roster.items() if known)
    for student in sorted({one.student for one in handed} - set(enrolled)) if enrolled else ():
        close = nearest(student, enrolled)
        meant = f"; probably {clean(close)!r} is meant" if close else ""
        yield f"no student of the roster is called {clean(student)!r}{meant}: rename it, or enrol"


def nearest(student: str, enrolled: Collection[str]) -> str:
    """The id that is most like ``student``, or '' where none is alike."""
    known = {plain(one) or one: one for one in enrolled}
    found = difflib.get_close_matches((plain(student) or student)[:80], known, 1, ALIKE)
    return known[found[0]] if found else ""
