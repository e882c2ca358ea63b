"""The grading as steps of ``nbgrader autograde``, for nbgrader_config.py.

Stock nbgrader cleans a submission, runs it in a kernel with the instructor's rights and scores what
it printed. Here its cells go into the master's notebook, and run in the sandbox.
"""

import atexit
import fnmatch
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum

from autograder import CourseError
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book
from autograder.grading.execution.assemble import assemble
from autograder.grading.execution.task import Graded, Task, WorkFailed
from autograder.grading.notebook import records
from autograder.grading.notebook.submission import MAX_BYTES, read_bytes
from autograder.grading.running.pool import Pool
from autograder.sandbox.bubblewrap import walls
from autograder.settings import care

_find_notebooks, _convert_notebooks = Autograde.init_notebooks, Autograde.convert_notebooks


def find_notebooks(step: Autograde) -> None:
    """Let nbgrader's converter grade everyone who has a folder of the lesson, and first of all.

    nbgrader passes over who has no notebook of the right name, stops where a timestamp.txt says no
    time, and knows no lesson that generate_assignment has not seen. Raises NbGraderException where
    there is nobody, or where the gradebook cannot take the lesson.
    """
    course = _course(step)
    if course is None:
        _find_notebooks(step)
        return
    folders, lesson = step.coursedir, step.coursedir.assignment_id
    folders.get_existing_timestamp = lambda path: records.moment(Path(path))
    chosen = [
        one
        for one in course.submissions([lesson])
        if fnmatch.fnmatchcase(one.student, folders.student_id) or one.student == folders.student_id
    ]
    if not chosen:
        where = course.shown(course.handed_in)
        _refuse(step, f"{where} holds no submission of {lesson} that can be graded")
    try:
        with Book(course) as book:
            book.register(lesson)
    except CourseError as error:
        _refuse(step, str(error))
    step.notebooks = []
    step.assignments = {
        str(course.submitted(one).parent): [str(course.submitted(one))] for one in chosen
    }


def convert_notebooks(step: Autograde) -> None:
    """Grade; nbgrader leaves a variable set where that fails: formgrader's notebooks inherit it."""
    try:
        _convert_notebooks(step)
    finally:
        os.environ.pop("NBGRADER_EXECUTION", None)


def _course(step: Autograde) -> Course | None:
    """The course of a converter that this module has configured, if it is to grade a lesson of it.

    It is as the command line and every configuration say.
    """
    folders = step.coursedir
    if not issubclass(step.exporter_class, TolerantExporter) or folders.notebook_id != "*":
        return None
    course = Course(folders=folders, config=step.config)
    return course if folders.assignment_id in course.lessons() else None


def _refuse(step: Autograde, sentence: str) -> NoReturn:
    step.log.error("%s", sentence)  # whoever catches what is raised here does not print it
    raise NbGraderException(sentence)


class TolerantExporter(NotebookExporter):
    """Reads any file: what is no notebook becomes an empty one, which then earns nothing."""

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> Any:
        """Convert the file; of a pipe, a flood or anything damaged, an empty notebook."""
        try:
            text = (read_bytes(filename, MAX_BYTES) or b"").decode()
            notebook = nbformat.reads(text, as_version=4)
        except Exception:  # any damage: the step Assemble finds the words for it
            notebook = nbformat.v4.new_notebook()
        return self.from_notebook_node(notebook, resources=resources, **kw)


def _about(step: NbGraderPreprocessor, resources: dict[str, Any]) -> tuple[Course, Handed]:
    """The course, and whose work a step has."""
    names = resources["nbgrader"]
    course = Course(folders=step.parent.parent.coursedir, config=step.config)
    return course, Handed(names["assignment"], names["student"])


class Assemble(NbGraderPreprocessor):
    """Put the student's answers into the master's notebook."""

    def preprocess(
        self, nb: nbformat.NotebookNode, resources: dict[str, Any]
    ) -> tuple[nbformat.NotebookNode, dict[str, Any]]:
        """The notebook to grade; of ``nb`` itself, which was read leniently, nothing is used."""
        course, one = _about(self, resources)
        # nbgrader has copied what lies beside the notebook, and may be killed before it has graded.
        records.forget(course.autograded(one).parent)
        master = records.read_notebook(course.master(one.lesson))
        made = assemble(master, course.read(one))
        return nbformat.from_dict(made), resources


class RunInSandbox(NbGraderPreprocessor):
    """Run the student's cells in the sandbox, the checks outside; takes the place of Execute.

    The checks run in a worker process, as those of `autograder grade` do: whatever happens to it,
    nbgrader goes on with the next student.
    """

    sandbox = Enum(
        ["required", "auto", "off"],
        "auto",
        help="Whether students' code must run in a sandbox, may run without one, or does.",
    ).tag(config=True)

    _pools: list[Pool] = []  # at most one, of one worker, kept for the whole batch

    def preprocess(
        self, nb: nbformat.NotebookNode, resources: dict[str, Any]
    ) -> tuple[nbformat.NotebookNode, dict[str, Any]]:
        """Fill in the outputs of ``nb``; write the reasons and the companions beside it."""
        course, one = _about(self, resources)
        rule, text = care(course.root), json.dumps(nb)
        task = Task(one.lesson, text, self.sandbox, secrets=course.secrets, care=rule)
        graded = self._graded(task)
        graded.result.student = one.student
        course.write_companions(one)
        records.save_reasons(course.autograded(one).parent, graded.result)
        return nbformat.from_dict(json.loads(graded.notebook)), resources  # as nbgrader reads them

    def _graded(self, task: Task) -> Graded:
        """What a worker made of the task; raises CourseError where it cannot be graded."""
        if not self._pools:
            walls(self.sandbox)  # refuses, or warns once
            self._pools.append(Pool(1).__enter__())
            atexit.register(self._end_pools)
        try:
            ((_, outcome),) = self._pools[0].map([(None, task)])
        except BaseException:  # interrupted: the worker still has this task
            self._end_pools()
            raise
        if isinstance(outcome, WorkFailed):
            raise CourseError(f"this could not be graded: {outcome}")
        return outcome

    @classmethod
    def _end_pools(cls) -> None:
        while cls._pools:
            cls._pools.pop().__exit__()


# nbgrader imports this module for its settings' sake as soon as it is to autograde. No setting does
# what these two do here.
setattr(Autograde, "init_notebooks", find_notebooks)  # noqa: B010  (mypy forbids the other way)
setattr(Autograde, "convert_notebooks", convert_notebooks)  # noqa: B010
