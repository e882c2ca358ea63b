"""Who of the roster handed in nothing, and whose folder names nobody of it."""

import difflib
from collections.abc import Collection, Iterator, Mapping

from autograder.grading.classroom.folders import Handed
from autograder.grading.notebook.filenames import plain
from autograder.grading.notebook.result import clean

ALIKE = 0.7  # of 1, by difflib


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
