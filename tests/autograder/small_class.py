"""A small class on disk, graded by the command: for the tests of a batch."""

import atexit
import contextlib
import dataclasses
import io
import re
import sys
from pathlib import Path
from unittest import mock

from nbgrader.api import Gradebook

from autograder import ROOT, lessons
from autograder.checking.toolbox import registry
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.execution import execute
from autograder.grading.notebook import records
from autograder.grading.running import pool
from autograder.sandbox import bubblewrap
from tests.needs import besides

SLUG = "00_getting_started"
PROGRAM = [str(Path(sys.executable).parent / "autograder"), "grade"]
WRONG = {"softmax": "def softmax(scores, dim):\n    return scores"}
CONFIG = """
from pathlib import Path
from autograder.course import configure

c = configure(get_config(), Path(__file__).resolve().parent)
"""
LINE = re.compile(r"^ *\d+/\d+  \S+  (\S+) ", re.MULTILINE)


def make_course(folder):
    """An empty course with the solved notebook of one lesson and a gradebook.

    The first program that met no gradebook would start another program, which takes longer than
    the grading.
    """
    (folder / "solutions").mkdir()
    (folder / "solutions" / SLUG).symlink_to(ROOT / "solutions" / SLUG)
    (folder / "class").mkdir()
    Gradebook(Course(folder).db_url, "attention").close()
    return folder


def configure(course, *lines):
    """Give the course an nbgrader_config.py with these lines below what stands in ours."""
    (course / "nbgrader_config.py").write_text("\n".join((CONFIG, *lines, "")))


def hand_in(course, *students, answers=None):
    for student in students:
        sample_class.submit(sample_class.handed_in(SLUG, answers), course, student, SLUG)


def stored(slug, exercise_name, name):
    """The stored answer to an exercise of the lesson ``slug`` with this name, or such a hint."""
    item = registry.of_lesson(lessons.name_of(slug))[exercise_name]
    answers = registry.stored_answers(item)
    return next(one for one in answers if one.name == name or (one.hint or "").startswith(name))


def run(task):
    """Grade a task in this process, in the sandbox that is left from another course's, if any.

    A worker starts its sandbox anew for other secrets. Here those do not count of which nothing is
    in sight in a sandbox anyway, so that one serves the courses of all tests.
    """
    hidden = bubblewrap._hidden(task.secrets)
    seen = tuple(path for path in task.secrets if str(Path(path).resolve()) in hidden)
    return execute.run(dataclasses.replace(task, secrets=seen))


class Here:
    """Stands for the Pool: grades in this process, whose sandbox outlives the command.

    A worker of its own and its sandbox import PyTorch twice, which takes most of the time of a
    command that grades two notebooks. Tests of the workers themselves start the program.
    """

    def __init__(self, count):
        assert count == 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, tasks):
        for key, task in tasks:
            yield key, run(task)


atexit.register(execute.close)


def grade(course, *options, check=True):
    """Run the command in this process; return (standard output, standard error, exit status)."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(pool, "Pool", Here),
    ):
        status = cli.main(["grade", "--course", str(course), "--workers", "1", *options])
    assert not check or status == 0, out.getvalue() + err.getvalue()
    return out.getvalue(), besides(err.getvalue()), status


def scores(course):
    """Total score by student, from nbgrader's gradebook."""
    with Gradebook(Course(course).db_url, "attention") as book:
        return {one.student.id: one.score for one in book.assignment_submissions(SLUG)}


def kept(course, student):
    return records.load(Course(course).autograded(Handed(SLUG, student)).parent)
