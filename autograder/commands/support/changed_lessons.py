"""Lessons whose exercises came or went since a class handed them in: they stay, or are adopted."""

import sys
from collections.abc import Collection
from datetime import UTC, datetime

from autograder.grading.classroom.database import copy_gradebook
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, ChangedExercises

HINT = "see what it would bring with: autograder grade --preview --adopt"


def set_apart(
    course: Course, book: Book, handed: Collection[Handed], adopt: bool
) -> tuple[list[Handed], int]:
    """Register the lessons; returns what can be graded, and exit status 1 if work is left out.

    adopt  take the exercises as they are now; a copy of the gradebook is kept
    """
    found = changed(book, handed)
    if found and adopt:
        print(f"A copy of the gradebook is kept in {_keep_copy(course)}.")
        for error in found.values():
            book.register(error.lesson, adopt=True)
            print(f"{error}. This is so in the gradebook now.")
        return list(handed), 0
    status = 0
    for lesson, error in found.items():
        theirs = [one for one in handed if one.lesson == lesson]
        left = sum(course.kept(one) is None for one in theirs)
        print(f"{error}. Of its submissions {len(theirs) - left} were graded and stay so; {HINT}")
        if left:
            print(f"not graded: new submissions of {lesson}: {left}", file=sys.stderr)
            status = 1
    return [one for one in handed if one.lesson not in found], status


def changed(book: Book, handed: Collection[Handed]) -> dict[str, ChangedExercises]:
    """The lessons that are others than when they were handed in; all else is registered."""
    found = {}
    for lesson in sorted({one.lesson for one in handed}):
        try:
            book.register(lesson)
        except ChangedExercises as error:
            found[lesson] = error
    return found


def _keep_copy(course: Course) -> str:
    folder = course.root / "class" / "replaced"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"gradebook-{datetime.now(UTC):%Y-%m-%dT%H%M%S.%f}.db"
    copy_gradebook(course, Course(course.root, f"sqlite:///{path}"))
    return course.shown(path)
