"""Make pages of feedback as nbgrader's GenerateFeedback does, on several processes."""

import logging
import signal
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory

from autograder import CourseError
from autograder.files import write_aside
from autograder.grading.classroom.database import usable
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book
from autograder.grading.classroom.hand_in_failure import DISKS, failure
from autograder.grading.notebook import records

LOG = logging.getLogger("autograder.feedback")
LOG.addHandler(logging.NullHandler())  # nbgrader logs names; what fails is said in words
CHUNK = 20  # pages that a process makes before it says so
FEW = 40  # fewer than these are made sooner here than processes start


class Pages:
    """The pages of feedback of a course."""

    def __init__(self, course: Course, handed: Collection[Handed]) -> None:
        self._course = course
        self.waiting: list[Handed] = []  # graded: their pages are to be made
        self.made: list[Handed] = []
        self.failed: dict[Handed, str] = {}  # why no page could be made
        self.ungraded = 0  # how many are not graded
        self.unsettled = 0  # how many somebody is to look at again in the formgrader
        with Book(course) as book:
            counted = {lesson: book.counted(lesson) for lesson in {one.lesson for one in handed}}
        for one in handed:
            kept, found = course.kept(one), counted[one.lesson].get(one.student)
            if not course.autograded(one).is_file() or kept and kept.ungraded:
                self.ungraded += 1
            elif found is None:
                self.failed[one] = "it is not in the gradebook: run autograder grade"
            else:
                self.waiting.append(one)
                self.unsettled += found.unsettled

    def make(self, workers: int) -> Iterator[int]:
        """Make the pages on so many processes; yield how many are done by then.

        A page that cannot be made costs no other; an old one in its place is removed.
        """
        done = 0
        for part, failed in self._parts(workers):
            self.failed |= failed
            self.made += [one for one in part if one not in failed]
            done += len(part)
            yield done
        for one in self.failed:
            self._course.feedback(one).unlink(missing_ok=True)

    def _parts(self, workers: int) -> Iterator[tuple[list[Handed], dict[Handed, str]]]:
        """Each part of the pages as it is made, with what failed of it."""
        where = str(self._course.root), self._course.db_url
        parts = [self.waiting[at : at + CHUNK] for at in range(0, len(self.waiting), CHUNK)]
        if workers == 1 or len(self.waiting) < FEW:
            yield from ((part, make(*where, part)) for part in parts)
            return
        count, context = min(workers, len(parts)), get_context("forkserver")
        ignored = signal.SIGINT, signal.SIG_IGN  # Ctrl-C is the main process's to handle
        with ProcessPoolExecutor(count, context, signal.signal, ignored) as pool:
            running = {pool.submit(make, *where, part): part for part in parts}
            try:
                for future in as_completed(running):
                    yield running[future], future.result()
            except BrokenProcessPool:
                raise CourseError(
                    "a process that made pages of feedback was ended, perhaps for want of memory; "
                    "what is made is kept: go on with --workers 1"
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)


def make(root: str, db_url: str, chosen: Sequence[Handed]) -> dict[Handed, str]:
    """Make the pages of some submissions; returns those that failed, and why.

    Raises what is everyone's, as OSError where the disk is full; what was made is in its place.
    """
    course = Course(root, db_url)
    config = course.config
    step = GenerateFeedback(coursedir=CourseDirectory(config=config), config=config, log=LOG)
    exporter = step.exporter_class(parent=step, config=step.config)
    for preprocessor in step.preprocessors:
        exporter.register_preprocessor(preprocessor)
    failed = {}
    with usable(course):
        for one in chosen:
            try:
                _make(course, exporter, one)
            except Exception as error:
                if isinstance(error, OSError) and error.errno in DISKS:
                    top = course.feedback(one).parents[3]
                    raise OSError(error.errno, error.strerror, str(top)) from error
                failed[one] = failure("making it", error)
    return failed


def _make(course: Course, exporter: Any, one: Handed) -> None:
    """Make a page; beside it lie the two files that nbgrader needs there, and no other."""
    notebook, page = course.autograded(one), course.feedback(one)
    names = {"student": one.student, "assignment": one.lesson, "notebook": one.lesson}
    resources = {"unique_key": one.lesson, "nbgrader": {**names, "db_url": course.db_url}}
    html, _ = exporter.from_filename(str(notebook), resources)
    beside = [(notebook.parent / name).read_bytes() for name in records.NAMES]
    page.parent.mkdir(parents=True, exist_ok=True)
    for name, content in zip(records.NAMES, beside, strict=True):
        write_aside(page.parent / name, content)
    write_aside(page, html.encode())
