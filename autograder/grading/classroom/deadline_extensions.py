"""When lessons are due by class/course.toml, and more time for single students.

Both stand where nbgrader keeps them. Until a student hands in, the gradebook holds an empty
submission for the sake of its extension. It is nobody's work: what reads scores leaves it out.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

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
from autograder.grading.classroom.misplaced import nearest
from autograder.term.course_file import Choices


def handed_in() -> ColumnElement[bool]:
    """The condition, of a SubmittedAssignment, that something was handed in or scored."""
    scored = or_(Grade.auto_score.isnot(None), Grade.manual_score.isnot(None))
    of_it = SubmittedNotebook.assignment_id == SubmittedAssignment.id
    score = select(Grade.id).join(SubmittedNotebook).where(and_(of_it, scored)).exists()
    one = SubmittedAssignment
    return or_(one.extension.is_(None), one.timestamp.isnot(None), score)


def due_for(usual: datetime | None, extension: timedelta | None) -> datetime | None:
    """When a lesson is due for a student, by when it is for everyone; None where it never is."""
    return None if usual is None else usual + (extension or timedelta())


def dates(book: Gradebook) -> dict[tuple[str, str], datetime | None]:
    """When lessons are due: by (lesson, ''), and by (lesson, student) for who has more time."""
    one, usual = SubmittedAssignment, {each.name: each.duedate for each in book.assignments}
    rows = book.db.query(Assignment.name, one.student_id, one.extension)
    rows = rows.join(Assignment, Assignment.id == one.assignment_id)
    more = rows.filter(one.extension.isnot(None)).all()
    later = {(lesson, who): due_for(usual[lesson], by) for lesson, who, by in more}
    return {(lesson, ""): due for lesson, due in usual.items()} | later


def who_handed_in(book: Gradebook, lesson: str | None = None) -> set[str]:
    """Ids of the students of whom the gradebook holds something handed in, in one lesson or any."""
    rows = book.db.query(SubmittedAssignment.student_id).filter(handed_in())
    if lesson is not None:
        rows = rows.join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        rows = rows.filter(Assignment.name == lesson)
    return {student for (student,) in rows}


def from_file(book: Gradebook, choices: Choices, slugs: Iterable[str]) -> None:
    """Set the due dates that class/course.toml names for some lessons."""
    for slug in slugs:
        choice = choices.lessons.get(slug)
        if choice is None or choice.due is None:
            continue
        with contextlib.suppress(MissingEntry):
            if book.find_assignment(slug).duedate == choice.due:
                continue
        book.update_or_create_assignment(slug, duedate=choice.due)


def grant(
    book: Gradebook,
    lesson: str,
    students: Collection[str],
    due: datetime | None,
    shown: Callable[[datetime], str],
) -> None:
    """Let a lesson be due later for some students; with None, as for everyone.

    lesson  one that the gradebook knows with its exercises
    due     in UTC without a zone, or None
    shown   writes a time for people

    Raises CourseError, and changes nothing, for a student who is not in the gradebook, a lesson
    without a due date, and a time that is not after it.
    """
    rows = book.db.query(Student.id, Student.first_name, Student.last_name, Student.email).all()
    known = {one for one, *_ in rows}
    called = {email: one for one, *_, email in rows if email}
    called |= {f"{first or ''} {last or ''}".strip(): one for one, first, last, _ in rows}
    called |= {one: one for one in known}
    for student in students:
        if student not in known:
            close = called.get(nearest(student, called))
            meant = f"probably {close!r} is meant" if close else "enrol with autograder roster"
            raise CourseError(f"no student of the gradebook is called {student!r}: {meant}")
    usual = book.find_assignment(lesson).duedate
    if due is not None and usual is None:
        raise CourseError(f"{lesson} has no due date to extend: set it first, without --student")
    if due is not None and due <= usual:
        raise CourseError(
            f"{shown(due)} is not after {shown(usual)}, when {lesson} is due for everyone: an "
            "extension gives more time"
        )
    stay = who_handed_in(book, lesson)
    for student in students:
        if due is not None:
            book.update_or_create_submission(lesson, student, extension=due - usual)
        elif student in stay:
            book.update_or_create_submission(lesson, student, extension=None)
        else:
            with contextlib.suppress(MissingEntry):
                book.remove_submission(lesson, student)
