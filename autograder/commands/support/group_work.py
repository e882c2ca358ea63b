"""The work of a group in the folders of all its members, before anything is graded."""

from collections.abc import Collection

from autograder.grading.classroom.database import refuse_strangers
from autograder.grading.classroom.folders import Course
from autograder.term import groups


def share(course: Course, chosen: Collection[str]) -> list[str]:
    """Copy what members of groups handed in to the others; returns what is to be told.

    chosen  lessons of which is told

    Raises CourseError where class/course.toml names somebody who is not in the roster.
    """
    refuse_strangers(course)
    told = groups.share(course.choices, course.handed_in, chosen)
    if count := sum(slug in chosen for slug, _ in groups.copies(course.choices)):
        told.append(f"Handed in by another member of the student's group: {count}.")
    return told
