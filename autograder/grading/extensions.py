"""More time for single students, where nbgrader keeps it: with their submission.

Until a student hands in, the gradebook holds an empty submission for the sake of its extension. It
is nobody's work: what reads scores leaves it out.
"""

import contextlib
from collections.abc import Collection
from datetime import datetime

from nbgrader.api import (
    Assignment,
    Grade,
    Gradebook,
    MissingEntry,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import ColumnElement, and_, or_, select

from autograder import CourseError
from autograder.grading.whose import nearest


def handed_in() -> ColumnElement[bool]:
    """The condition, of a SubmittedAssignment, that something was handed in or scored."""
    scored = or_(Grade.auto_score.isnot(None), Grade.manual_score.isnot(None))
    of_it = SubmittedNotebook.assignment_id == SubmittedAssignment.id
    score = select(Grade.id).join(SubmittedNotebook).where(and_(of_it, scored)).exists()
    one = SubmittedAssignment
    return or_(one.extension.is_(None), one.timestamp.isnot(None), score)


def given(book: Gradebook, lesson: str) -> dict[str, datetime]:
    """By student with an extension: when the lesson is due, in UTC without a zone."""
    rows = (
        book.db.query(
            SubmittedAssignment.student_id, Assignment.duedate, SubmittedAssignment.extension
        )
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .filter(Assignment.name == lesson, SubmittedAssignment.extension.isnot(None))
    )
    return {student: due + more for student, due, more in sorted(rows) if due}


def count_handed_in(book: Gradebook, lesson: str, student: str | None = None) -> int:
    """How many submissions of a lesson the gradebook holds, of all or of one student."""
    rows = (
        book.db.query(SubmittedAssignment.id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .filter(Assignment.name == lesson, handed_in())
    )
    if student is not None:
        rows = rows.filter(SubmittedAssignment.student_id == student)
    return int(rows.count())


def grant(book: Gradebook, lesson: str, students: Collection[str], due: datetime | None) -> None:
    """Let a lesson be due later for some students; with None, as for everyone.

    lesson  one that the gradebook knows with its exercises
    due     in UTC without a zone, or None

    Raises CourseError, and changes nothing, for a student who is not in the gradebook, a lesson
    without a due date, and a time that is not after it.
    """
    known = [one for (one,) in book.db.query(Student.id)]
    for student in students:
        if student not in known:
            close = nearest(student, known)
            meant = f"probably {close!r} is meant" if close else "enrol with autograder roster"
            raise CourseError(f"no student of the gradebook is called {student!r}: {meant}")
    usual = book.find_assignment(lesson).duedate
    if due is not None and usual is None:
        raise CourseError(f"{lesson} has no due date to extend: set it first, without --student")
    if due is not None and due <= usual:
        raise CourseError(
            f"{due:%Y-%m-%d %H:%M} UTC is not after {usual:%Y-%m-%d %H:%M} UTC, when {lesson} is "
            "due for everyone: an extension gives more time"
        )
    for student in students:
        if due is None:
            _take_back(book, lesson, student)
        else:
            book.update_or_create_submission(lesson, student, extension=due - usual)


def _take_back(book: Gradebook, lesson: str, student: str) -> None:
    if count_handed_in(book, lesson, student):
        book.update_or_create_submission(lesson, student, extension=None)
        return
    with contextlib.suppress(MissingEntry):
        book.remove_submission(lesson, student)
