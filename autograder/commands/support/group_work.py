"""The work of a group in the folders of all its members, before anything is graded."""

from collections.abc import Collection

from autograder import CourseError
from autograder.grading.classroom import database
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book
from autograder.term import groups


def share(course: Course, chosen: Collection[str] | None = None) -> list[str]:
    """Copy what members of groups handed in to the others; returns what is to be told.

    chosen  lessons of which is told; None: all

    Raises CourseError where class/course.toml names somebody who is not in the roster: a slip in an
    id would make a student whom nobody knows, and take the work from one who is there.
    """
    if course.choices.groups:
        roster = roster_of(course)
        if roster and (said := groups.unknown(course.choices, roster)):
            raise CourseError(said)
    told = groups.share(course.choices, course.handed_in, chosen)
    copied = [slug for slug, _ in groups.copies(course.choices)]
    if count := sum(chosen is None or slug in chosen for slug in copied):
        told.append(f"Handed in by another member of the student's group: {count}.")
    return told


def roster_of(course: Course) -> list[str]:
    """Ids of the students who are enrolled; [] where nobody is."""
    if not database.exists(course):
        return []
    with Book(course) as book:
        known = book.roster()
    return list(known) if any(known.values()) else []
