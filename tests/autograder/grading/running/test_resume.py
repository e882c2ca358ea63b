"""Stopping a grading at any moment: nothing is lost, and nothing is graded twice."""

import contextlib
import os
import pty
import re
import signal
import tempfile
import time
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.grading import nbgrader_steps
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book
from autograder.grading.notebook import records
from autograder.grading.running import batch
from tests.autograder.small_class import (
    LINE,
    PROGRAM,
    SLUG,
    WRONG,
    grade,
    hand_in,
    make_course,
    run,
    scores,
)

STUDENTS = [f"s{number:02}" for number in range(6)]


@pytest.fixture
def course(tmp_path):
    made = make_course(tmp_path)
    hand_in(made, *STUDENTS[:-1])
    hand_in(made, STUDENTS[-1], answers=WRONG)
    return made


EXPECTED = {**dict.fromkeys(STUDENTS, 5), STUDENTS[-1]: 3}


def marks(course):
    """When each student's result was written down."""
    paths = (course / "class" / "autograded").glob("*/*/reasons.json")
    return {path.parts[-3]: path.stat().st_mtime_ns for path in paths}


def in_a_terminal(course, folder):
    """Run the command in a terminal, with Ctrl-C after the first line of a student.

    Returns (its session, exit status, all that the terminal showed).
    """
    session, terminal = pty.fork()
    if not session:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        command = [*PROGRAM, "--course", str(course), "--workers", "2"]
        os.execve(command[0], command, {**os.environ, "TMPDIR": folder})
    shown, pressed = b"", False
    with contextlib.suppress(OSError):  # the terminal is closed
        while more := os.read(terminal, 65536):
            shown += more
            if b"5/5" in shown and not pressed:
                pressed = bool(os.write(terminal, b"\x03"))
    os.close(terminal)
    return session, os.waitstatus_to_exitcode(os.waitpid(session, 0)[1]), shown.decode()


@pytest.mark.long
def test_ctrl_c_in_a_terminal_stops_and_the_next_run_goes_on(course):
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        session, status, shown = in_a_terminal(course, folder)
        _wait_until(lambda: not _left_over(session))
        assert not os.listdir(folder)
    assert status == 130
    shown = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "", shown)
    assert shown.count("are left; run the same command to go on") == 1
    assert shown.endswith("go on.\n") and "Traceback" not in shown
    first = "\n".join(re.findall(r"[0-9]+/6  0.*", shown))
    assert LINE.findall(first)
    known = marks(course)
    again, _, _ = grade(course)
    assert known.items() <= marks(course).items()
    assert not set(LINE.findall(first)) & set(LINE.findall(again))
    assert scores(course) == EXPECTED


class Killed(BaseException):
    """The process ends here."""


def _dies_before(owner, name, call):
    """A stand-in for ``owner.name`` that dies instead of its ``call``-th call."""
    real, calls = getattr(owner, name), []

    def action(*arguments, **named):
        calls.append(None)
        if len(calls) == call:
            raise Killed
        return real(*arguments, **named)

    return action


@pytest.mark.long
@pytest.mark.parametrize("kind", ["grade", "solution", "source"])
@pytest.mark.parametrize("call", [1, 2])
def test_death_while_nbgrader_takes_a_lesson_down_loses_nothing(course, monkeypatch, kind, call):
    name = f"update_or_create_{kind}_cell"
    with Book(Course(course)) as book, monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Gradebook, name, _dies_before(Gradebook, name, call))
        book.register(SLUG)
    assert grade(course)[2] == 0
    assert scores(course) == EXPECTED


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (records, "write_aside", 1),  # before the notebook is written
        (records, "write_aside", 2),  # between notebook and reasons
        (os, "replace", 1),  # with a file written aside
        *(pytest.param(os, "replace", call, marks=pytest.mark.long) for call in (2, 3, 4)),
        (Book, "store", 1),  # between files and gradebook
        pytest.param(  # after the first student's, before the second's
            *(batch.records, "save", 2), marks=pytest.mark.long
        ),
    ],
)
def test_death_between_any_two_steps_loses_nothing(course, monkeypatch, owner, name, call):
    handed = Course(course).submissions(students=STUDENTS[-2:])
    with Book(Course(course)) as book:
        made = batch.Batch(Course(course), book, handed, "auto")
        pairs = [(one, run(task)) for one, task in made.tasks()]
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(owner, name, _dies_before(owner, name, call))
            for one, graded in pairs:
                made.keep(one, graded)
    known = marks(course)
    with Book(Course(course)) as book:
        made = batch.Batch(Course(course), book, handed, "auto")
        assert {one.student for one in made.done} == set(known)
        for one, task in made.tasks():
            made.keep(one, run(task))
    assert known.items() <= marks(course).items()
    assert scores(course) == {STUDENTS[-2]: 5, STUDENTS[-1]: 3}


def _left_over(session):
    """Processes of a killed command's session, and sandboxes that lost their grader."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def _wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_death_of_nbgraders_autograde_leaves_no_record_that_a_student_handed_in(
    course, monkeypatch
):
    """It copies what lies beside the notebook; where a record is, nothing is graded again."""
    about = Course(course), Handed(SLUG, STUDENTS[0])
    record = about[0].autograded(about[1]).parent / records.REASONS
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    monkeypatch.setattr(nbgrader_steps, "_about", lambda *_: about)
    nbgrader_steps.Assemble().preprocess(None, {})
    assert not record.exists()
