"""One grading of a class at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from autograder import CourseError


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a class's folder, which another run of the same command would write into as well.

    The lock ends with this process, however that ends. Raises CourseError where another has it;
    where a disk knows no locks, nothing is locked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(
                f"another autograder grade works on {folder}: wait until it has ended. It grades "
                "what was handed in before it began; the next run grades the rest"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(lock)
