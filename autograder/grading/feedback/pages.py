"""Make the pages of feedback that are not there or stale, with nbgrader's own GenerateFeedback."""

import contextlib
import logging
import os
import shutil
import signal
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SQLAlchemyError

from autograder import CourseError
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, Counted
from autograder.grading.feedback import page as feedback_page
from autograder.grading.notebook import nbgrader_files, records
from autograder.temporary import FULL, Temporary

LOG = logging.getLogger("autograder.feedback")
LOG.addHandler(logging.NullHandler())  # nbgrader logs names; what fails is said in words
CHUNK = 20  # pages that a process makes before it says so
FEW = 40  # fewer than these are made sooner here than processes start


class Pages:
    """The pages of feedback of a course.

    ``current``    submissions whose page says what their notebook and the gradebook say now
    ``stale``      graded submissions without such a page
    ``ungraded``   how many others there are
    ``failed``     why there is no page, for those for whom none could be made
    ``unsettled``  how many somebody is to look at again in the formgrader
    """

    def __init__(self, course: Course, handed: Collection[Handed]) -> None:
        self._course = course
        self.current: list[Handed] = []
        self.stale: list[Handed] = []
        self.failed: dict[Handed, str] = {}
        self.ungraded = self.unsettled = 0
        with Book(course) as book:
            counted = {lesson: book.counted(lesson) for lesson in {one.lesson for one in handed}}
        for one in handed:
            self._sort(one, counted[one.lesson].get(one.student))

    def make(self, workers: int) -> Iterator[int]:
        """Make the stale pages on so many processes; yield how many are done by then.

        A page that cannot be made costs no other; a stale one in its place is removed.
        """
        done = 0
        for part, failed in self._parts(workers):
            self.failed |= failed
            self.current += [one for one in part if one not in failed]
            done += len(part)
            yield done
        self.stale = []
        for one in self.failed:
            self._course.feedback(one).unlink(missing_ok=True)

    def _sort(self, one: Handed, counted: Counted | None) -> None:
        notebook = self._course.autograded(one)
        kept = records.load(notebook.parent)
        if not notebook.is_file() or kept and kept.ungraded:
            self.ungraded += 1
        elif counted is None:
            self.failed[one] = "it is not in the gradebook: run autograder grade"
        elif self._is_current(one, notebook, counted):
            self.current.append(one)
        else:
            self.stale.append(one)
        self.unsettled += counted is not None and counted.unsettled

    def _is_current(self, one: Handed, notebook: Path, counted: Counted) -> bool:
        page, beside = self._course.feedback(one), feedback_page.beside
        said = feedback_page.made_of(page)
        if not said or beside(page.parent) != beside(notebook.parent):
            return False
        scores = {name: (score, most) for name, (score, most, _) in counted.scores.items()}
        files = feedback_page.files(notebook)
        return said == feedback_page.fingerprint(files, scores, counted.comments, counted.penalty)

    def _parts(self, workers: int) -> Iterator[tuple[list[Handed], dict[Handed, str]]]:
        """Each part of the stale pages as it is made, with what failed of it."""
        where = str(self._course.root), self._course.db_url
        parts = [self.stale[at : at + CHUNK] for at in range(0, len(self.stale), CHUNK)]
        if workers == 1 or len(self.stale) < FEW:
            yield from ((part, make(*where, part)) for part in parts)
            return
        with ProcessPoolExecutor(
            min(workers, len(parts)), get_context("forkserver"), _quiet
        ) as pool:
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


def _quiet() -> None:
    """Ctrl-C is the main process's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def make(root: str, db_url: str, chosen: Sequence[Handed]) -> dict[Handed, str]:
    """Make the pages of some submissions anew; returns those that failed, and why.

    Raises OSError where the disk is full; what was made by then is in its place.
    """
    course = Course(root, db_url)
    top = course.feedback(chosen[0]).parents[3]  # on the same disk, and not where nbgrader looks
    top.mkdir(parents=True, exist_ok=True)
    with Temporary(top, ".feedback-") as aside:
        step = _Generate(course, chosen, aside)
        try:
            step.start()
        except Exception as error:  # nbgrader's own, after all others are made
            LOG.debug("%s", error)
        failed = {one: why for one in chosen if (why := step.move(one))}
    if step.full:
        raise OSError(step.full.errno, step.full.strerror, str(top))
    return failed


class _Generate(GenerateFeedback):
    """nbgrader's step, for given submissions and into a folder aside.

    Their paths are not searched for with patterns, which a name may be mistaken for. Beside a page
    lie the two files that nbgrader needs there, and nothing that a student handed in.
    """

    def __init__(self, course: Course, chosen: Sequence[Handed], aside: Path) -> None:
        config: Any = course.config.copy()
        config.CourseDirectory.feedback_directory = str(aside)
        config.CourseDirectory.db_url = course.db_url
        super().__init__(coursedir=CourseDirectory(config=config), config=config, log=LOG)
        self._course, self._chosen = course, chosen
        self._errors: dict[str, str] = {}
        self.full: OSError | None = None  # what a disk without room said

    def init_notebooks(self) -> None:
        """The notebooks of those who were chosen."""
        paths = [str(self._course.autograded(one)) for one in self._chosen]
        self.assignments = {os.path.dirname(path): [path] for path in paths}

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Copy the companions of the graded notebook."""
        folder = self._course.autograded(Handed(assignment_id, student_id)).parent
        aside = Path(self._format_dest(assignment_id, student_id))
        with self._minding_room():
            aside.mkdir(parents=True)
            for name in (nbgrader_files.SECRET, nbgrader_files.TIMESTAMP):
                shutil.copyfile(folder / name, aside / name, follow_symlinks=False)

    def convert_single_notebook(self, notebook_filename: str) -> None:
        """Make one page; keep in words why it fails, if it does."""
        try:
            with self._minding_room():
                super().convert_single_notebook(notebook_filename)
        except Exception as error:
            self._errors[notebook_filename] = f"{type(error).__name__}: {error}"
            if isinstance(error, SQLAlchemyError):  # nbgrader would stop for all the others
                raise RuntimeError(str(error)) from error
            raise

    @contextlib.contextmanager
    def _minding_room(self) -> Iterator[None]:
        """Keep what a full disk says: nbgrader says it in its log alone, and goes on."""
        try:
            yield
        except OSError as error:
            self.full = error if error.errno in FULL else self.full
            raise

    def move(self, one: Handed) -> str:
        """Put a page into its place in one step; returns why there is none, or ''."""
        page = self._course.feedback(one)
        aside = Path(self._format_dest(one.lesson, one.student))
        if not (aside / page.name).is_file():
            path = str(self._course.autograded(one))
            return self._errors.get(path, "nbgrader left it out")[:300]
        page.parent.mkdir(parents=True, exist_ok=True)
        for name in (nbgrader_files.SECRET, nbgrader_files.TIMESTAMP, page.name):
            os.replace(aside / name, page.parent / name)
        return ""
