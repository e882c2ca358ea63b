"""A small class on disk, graded by the command: for the tests of a batch."""

import re
import subprocess
import sys
from pathlib import Path

from nbgrader.api import Gradebook

from autograder import ROOT
from autograder.grading import classroom, records
from autograder.grading.folders import Course, Handed

SLUG = "00_getting_started"
PROGRAM = [str(Path(sys.executable).parent / "autograder"), "grade"]
WRONG = {"softmax": "def softmax(scores, dim):\n    return scores"}
LINE = re.compile(r"^ *\d+/\d+  \S+  (\S+) ", re.MULTILINE)


def make_course(folder):
    """An empty course with the solved notebook of one lesson."""
    (folder / "solutions").mkdir()
    (folder / "solutions" / SLUG).symlink_to(ROOT / "solutions" / SLUG)
    return folder


def hand_in(course, *students, answers=None):
    for student in students:
        classroom.submit(classroom.handed_in(SLUG, answers), course, student, SLUG)


def grade(course, *options, check=True):
    """Run the command; return (standard output, standard error, exit status)."""
    command = [*PROGRAM, "--course", str(course), "--workers", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr, done.returncode


def scores(course):
    """Total score by student, from nbgrader's gradebook."""
    with Gradebook(Course(course).db_url, "attention") as book:
        return {one.student.id: one.score for one in book.assignment_submissions(SLUG)}


def kept(course, student):
    return records.load(Course(course).autograded(Handed(SLUG, student)).parent)
