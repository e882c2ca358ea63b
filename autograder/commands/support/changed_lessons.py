"""Lessons whose exercises came or went since a class handed them in: they stay as they are."""

import sys
from collections.abc import Collection

from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, ChangedExercises

HINT = "grade new ones in a copy of the course, of the version that handed it out"


def set_apart(course: Course, book: Book, handed: Collection[Handed]) -> tuple[list[Handed], int]:
    """Register the lessons; returns what can be graded, and exit status 1 if work is left out."""
    found, status = {}, 0
    for lesson in sorted({one.lesson for one in handed}):
        try:
            book.register(lesson)
        except ChangedExercises as error:
            found[lesson] = error
    for lesson, why in found.items():
        theirs = [one for one in handed if one.lesson == lesson]
        left = sum(course.kept(one) is None for one in theirs)
        print(f"{why}. Of its submissions {len(theirs) - left} were graded and stay so; {HINT}")
        if left:
            print(f"not graded: new submissions of {lesson}: {left}", file=sys.stderr)
            status = 1
    return [one for one in handed if one.lesson not in found], status
