"""The database of nbgrader's gradebook: opened, copied, and what it refuses in one sentence."""

import contextlib
import logging
import os
from collections.abc import Iterator

from nbgrader.api import Base, Gradebook, InvalidEntry, Student
from sqlalchemy import create_engine, insert, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from autograder import CourseError
from autograder.grading.classroom.deadline_extensions import from_file
from autograder.grading.classroom.folders import Course
from autograder.term import groups


class GradebookError(CourseError):
    """The gradebook cannot be read, or take the scores of a lesson; str() says why."""


REMEDIES = {
    "unable to open": "SQLite writes beside it: its folder must be there, and be writable",
    "locked": "something else is writing to it: try again",
    "is full": "make room, and run the same command again",
    "readonly": "make the file and its folder writable, and run the same command again",
    "no such column": "another version of nbgrader made it: keep a copy, run `nbgrader db upgrade`",
}
NBGRADER_LOGS = ("traitlets", "tornado.application")  # its applications', and its gradebook's
LOG = logging.getLogger("autograder.gradebook")
LOG.addHandler(logging.NullHandler())  # nbgrader logs names


@contextlib.contextmanager
def opened(course: Course, agreed: bool = True) -> Iterator[Gradebook]:
    """nbgrader's gradebook; unless told not to, it is made to ``agree`` with class/course.toml.

    Raises GradebookError where the database cannot be used.
    """
    with usable(course), Gradebook(course.db_url, course.id) as book:
        if agreed:
            agree(book, course)
        yield book


def agree(book: Gradebook, course: Course) -> None:
    """Give the gradebook the dates that class/course.toml names, so that all commands have them.

    Raises CourseError where a section or group names somebody who is not in the roster: a slip in
    an id would make a student whom nobody knows, and take the work from one who is there.
    """
    from_file(book, course.choices, course.choices.lessons)
    if said := groups.unknown(course.choices, roster(book)):
        raise CourseError(said)


def roster(book: Gradebook) -> dict[str, bool]:
    """Ids of all students, and whether more is known of them than the id: a name, an address.

    Grading adds who is not there, by the id alone.
    """
    columns = (Student.id, Student.first_name, Student.last_name, Student.email)
    return {student: any(told) for student, *told in book.db.query(*columns).all()}


def refuse_strangers(course: Course) -> None:
    """Raise CourseError as ``agree`` does, for a command that does not open the gradebook."""
    if (course.choices.sections or course.choices.groups) and exists(course):
        with opened(course):
            pass


@contextlib.contextmanager
def usable(course: Course) -> Iterator[None]:
    """Turn what the database refuses into a GradebookError; nbgrader logs the whole traceback."""
    before = {log: log.disabled for log in map(logging.getLogger, NBGRADER_LOGS)}
    try:
        for log in before:
            log.disabled = True
        yield
    except (SQLAlchemyError, InvalidEntry) as error:
        raise _unusable(course, error) from error
    finally:
        for log, disabled in before.items():
            log.disabled = disabled


def _unusable(course: Course, error: Exception) -> GradebookError:
    """What the database said, without SQLAlchemy's query and link, and what helps."""
    said = str(getattr(error, "orig", None) or error).splitlines()
    cause = said[0] if said else type(error).__name__
    url = make_url(course.db_url)
    remedy = "".join(f"; {what}" for words, what in REMEDIES.items() if words in cause)
    return GradebookError(f"the gradebook {url!r} cannot be used: {cause}{remedy}")


def raise_faults(course: Course, error: BaseException | None) -> None:
    """Raise what is behind an error of nbgrader's, if it is the database or a disk."""
    while error is not None:
        if isinstance(error, SQLAlchemyError | InvalidEntry):
            raise _unusable(course, error) from error
        if isinstance(error, OSError):
            raise error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def exists(course: Course) -> bool:
    """Whether the course has a gradebook; opening one that is not there would make it."""
    url = make_url(course.db_url)
    if not url.drivername.startswith("sqlite"):
        return True
    return os.path.lexists(url.database or "")


def copy_gradebook(course: Course, into: Course) -> None:
    """Make the gradebook of ``into``, with all rows of that of ``course``, which is only read.

    Raises GradebookError where the one cannot be read, or the other not be written.
    """
    target = create_engine(into.db_url, poolclass=NullPool)
    with usable(into), target.begin() as new:
        Base.metadata.create_all(new)
        if exists(course):
            source = create_engine(course.db_url, poolclass=NullPool)
            with usable(course), source.connect() as old:
                known = inspect(old).get_table_names()
                for table in Base.metadata.sorted_tables:
                    if table.name in known and (rows := old.execute(select(table)).all()):
                        new.execute(insert(table), [row._asdict() for row in rows])
