"""Make pages of feedback as nbgrader's GenerateFeedback does."""

import logging
from collections.abc import Collection, Iterator
from typing import Any

from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory

from autograder.files import write_aside
from autograder.grading.classroom.database import usable
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book
from autograder.grading.classroom.hand_in_failure import DISKS, failure
from autograder.grading.notebook import records

LOG = logging.getLogger("autograder.feedback")
LOG.addHandler(logging.NullHandler())  # nbgrader logs names; what fails is said in words


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

    def make(self) -> Iterator[int]:
        """Make the pages; yield how many are done by then.

        A page that cannot be made costs no other; an old one in its place is removed. Raises what
        is everyone's, as OSError where the disk is full; what was made is in its place.
        """
        exporter = _exporter(self._course)
        with usable(self._course):
            for done, one in enumerate(self.waiting, start=1):
                try:
                    _make(self._course, exporter, one)
                except Exception as error:
                    if isinstance(error, OSError) and error.errno in DISKS:
                        top = self._course.feedback(one).parents[3]
                        raise OSError(error.errno, error.strerror, str(top)) from error
                    self.failed[one] = failure("making it", error)
                else:
                    self.made.append(one)
                yield done
        for one in self.failed:
            self._course.feedback(one).unlink(missing_ok=True)


def _exporter(course: Course) -> Any:
    """What nbgrader's own command makes pages with."""
    config = course.config
    step = GenerateFeedback(coursedir=CourseDirectory(config=config), config=config, log=LOG)
    exporter = step.exporter_class(parent=step, config=step.config)
    for preprocessor in step.preprocessors:
        exporter.register_preprocessor(preprocessor)
    return exporter


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
