"""Whatever one hand-in makes the grader raise is that hand-in's failure: all others are done."""

import contextlib
import errno
from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError

from autograder import CourseError
from autograder.checking.run_check import OutOfOwnTime
from autograder.grading.classroom.database import GradebookError
from autograder.grading.notebook.result import told
from autograder.sandbox.bubblewrap import SandboxRefused
from autograder.sandbox.process import StudentLost
from autograder.temporary import FULL

EVERYONES = MemoryError, SQLAlchemyError, GradebookError, SandboxRefused
# A disk that takes nothing from anybody, and a process that may open no more files.
DISKS = FULL | {errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def raise_if_everyones(error: Exception) -> None:
    """Raise an error that is no single hand-in's: the machine's, the gradebook's, the sandbox's."""
    if isinstance(error, EVERYONES) or isinstance(error, OSError) and error.errno in DISKS:
        raise error


def failure(step: str, error: Exception) -> str:
    """What is said of a hand-in over which ``step``, as 'reading it', raised ``error``.

    Raises the error where it is everyone's.
    """
    raise_if_everyones(error)
    if isinstance(error, CourseError):
        return str(error)
    if isinstance(error, OSError):
        return f"{step}: {told(error)}"
    return f"{step}: {told(error)}. The grader should have foreseen this: please report it"


@contextlib.contextmanager
def told_as_failure(step: str) -> Iterator[None]:
    """For a command on one hand-in alone: whatever ``step`` raises over it is a CourseError."""
    try:
        yield
    except (CourseError, OSError):  # these have their sentences
        raise
    except (StudentLost, OutOfOwnTime) as lost:
        raise CourseError(f"{step}: the student's code had to be stopped: {lost}") from lost
    except Exception as error:
        raise CourseError(failure(step, error)) from error
