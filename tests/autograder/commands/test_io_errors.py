"""What a disk, a database or a reader may do: one sentence, nothing lost, the next run goes on."""

import csv
import errno
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError

from autograder import files
from autograder.commands import cli
from autograder.commands.support import io_errors
from autograder.commands.support.lock import alone
from autograder.grading.classroom.folders import Course, Handed
from tests.autograder.small_class import SLUG, grade, hand_in, kept, make_course, scores

NAMES = ["Müller", "Mu\u0308ller", "田中\u3000太郎", "\u05d3\u05d5\u05d3", "👩\u200d🎓", "-rf"]
NAMES += ["100%", "#1", "a\u00a0b", "[a-z]*", "\u0645\u06cc\u200c\u062e", "x" * 128, " lead"]
NAMES += ["=1+1", "o'neil"]


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory):
    """A course in which ada is graded."""
    course = make_course(tmp_path_factory.mktemp("course"))
    hand_in(course, "ada")
    grade(course)
    return course


@pytest.fixture
def course(graded_once, tmp_path):
    """The same, with ben's work that is not graded yet."""
    made = shutil.copytree(graded_once, tmp_path / "course", symlinks=True)
    hand_in(made, "ben")
    return made


@pytest.fixture
def run(course, capsys):
    """Run a command in the course; returns (exit status, what it said on stderr)."""

    def call(command, *words):
        capsys.readouterr()
        if command == "grade":
            _, said, status = grade(course, *words, check=False)
            return status, said
        status = cli.main([command, *words, "--course", str(course)])
        return status, capsys.readouterr().err

    return call


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a file")


ALL = {
    "grade": [],
    "feedback": [],
    "report": [],
    "due": ["00", "2030-01-01T00:00Z"],
    "roster": ["roster.csv"],
    "receive": ["came"],
    "grades": ["--to", "grades.csv"],
}
ODD_BOOKS = {
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "no database": lambda path: path.write_text("not a database" * 99),
    "of another version": lambda path: sqlite3.connect(path).executescript(
        "ALTER TABLE student RENAME COLUMN first_name TO given_name"
    ),
}


@pytest.mark.parametrize(
    "odd",
    [pytest.param(odd, marks=[pytest.mark.long] * (odd == "no database")) for odd in ODD_BOOKS],
)
@pytest.mark.parametrize("command", ALL)
def test_a_gradebook_that_is_none_is_a_sentence(course, run, monkeypatch, command, odd):
    monkeypatch.chdir(course)
    (course / "roster.csv").write_text("id,first_name\ncleo,Cleo\n")
    (course / "came").mkdir()
    ODD_BOOKS[odd](course / "class" / "gradebook.db")
    status, said = run(command, *ALL[command])
    if odd == "of another version" and not said:
        return  # what it needs of the gradebook is there
    assert status == 1 and len(said.splitlines()) == 1, said
    assert "gradebook.db cannot be used: " in said
    assert odd != "of another version" or "`nbgrader db upgrade`" in said


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ("database is locked", "something else is writing to it: try again"),
        ("database or disk is full", "make room, and run the same command again"),
    ],
)
def test_a_gradebook_that_refuses_a_score_stops_the_run_and_the_next_goes_on(
    course, run, monkeypatch, fault, remedy
):
    def refuse(self, student, **_):
        raise OperationalError("INSERT", {}, sqlite3.OperationalError(fault))

    with monkeypatch.context() as patch:
        patch.setattr(Gradebook, "update_or_create_student", refuse)
        status, said = run("grade")
    assert status == 1 and len(said.splitlines()) == 1 and f"{fault}; {remedy}" in said
    assert run("grade") == (0, "")
    assert scores(course) == {"ada": 5, "ben": 5}


FULL_AT = {
    "the notebook": ("autograder.grading.notebook.records.write_aside", ["grade"]),
    "a temporary folder": ("tempfile.mkdtemp", ["feedback", "--to", "back.zip"]),
    "a page of feedback": ("autograder.grading.feedback.exporter.write_aside", ["feedback"]),
    "a page that nbconvert makes": (
        "autograder.grading.feedback.exporter.FeedbackExporter.from_filename",
        ["feedback"],
    ),
    "the report": ("autograder.reporting.page.write_aside", ["report"]),
    "the table": ("csv.writer", ["report"]),
    "a zip": ("zipfile.ZipFile", ["feedback", "--to", "back.zip"]),
    "grades": ("os.replace", ["grades", "--to", "grades.csv"]),
}


@pytest.mark.parametrize("where", FULL_AT)
def test_a_full_disk_is_a_sentence_and_the_next_run_goes_on(course, run, monkeypatch, where):
    monkeypatch.chdir(course)
    name, words = FULL_AT[where]
    with monkeypatch.context() as patch:
        patch.setattr(name, full)
        status, said = run(*words)
    assert status == 1 and "Traceback" not in said
    assert len(said.splitlines()) == 1, said
    assert "isk is full" in said or "o space left" in said
    assert "not graded" not in said  # as where it is one student's folder that cannot be written
    assert run(*words)[0] == 0
    assert kept(course, "ada").complete
    assert not [*course.glob("class/.*"), *course.glob(".autograder-*"), *course.glob("**/*.tmp")]


def test_a_folder_that_cannot_be_written_costs_one_student_only(course, run):
    hand_in(course, "cleo")
    (course / "class" / "autograded" / "ben").write_text("in the way")
    status, said = run("grade")
    assert status == 1 and said.startswith(f"not graded: ben, {SLUG}; ")
    assert "class/autograded/ben" in said and len(said.splitlines()) == 1
    assert scores(course) == {"ada": 5, "cleo": 5}
    (course / "class" / "autograded" / "ben").unlink()
    assert run("grade") == (0, "")
    assert scores(course)["ben"] == 5


@pytest.mark.parametrize(("step", "where"), [("replace", "folder"), ("fsync", "file")])
def test_a_file_that_no_longer_fits_is_named_and_its_old_one_stays(
    tmp_path, monkeypatch, step, where
):
    def fail(source, *target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *[source] * bool(target))

    path = tmp_path / "x"
    files.write_aside(path, b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError) as caught:
        files.write_aside(path, b"new", sync=True)
    named = {"folder": tmp_path, "file": path}[where]
    assert io_errors.sentence(caught.value).startswith(f"{named}: the disk is full")
    assert path.read_bytes() == b"old" and [*tmp_path.iterdir()] == [path]


def test_two_gradings_at_once_are_refused(course, run):
    with alone(course / "class"):
        program = [sys.executable, "-c", TRY, str(course / "class")]
        done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout.startswith("another autograder grade works on")
    assert run("grade") == (0, "")


TRY = """
import sys
from pathlib import Path
from autograder import CourseError
from autograder.commands.support.lock import alone
try:
    with alone(Path(sys.argv[1])):
        pass
except CourseError as error:
    print(error)
"""


def test_a_closed_output_is_no_traceback(course):
    shell = f"{sys.executable} -m autograder due > >(exec true); echo $?"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=course)
    assert done.stdout.split() == [str(cli.NOBODY_READS)], done.stderr
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


@pytest.mark.long
def test_names_of_any_script_go_through_every_command(course, run, monkeypatch):
    monkeypatch.chdir(course)
    for name in NAMES:
        folder = course / "class" / "submitted" / name / SLUG
        folder.mkdir(parents=True)
        (folder / f"{SLUG}.ipynb").write_text("{}")
    assert run("grade") == (0, "")
    assert scores(course) == {**dict.fromkeys(NAMES, 0), "ada": 5, "ben": 5}
    for words in (["feedback", "--to", "back.zip"], ["report"], ["grades", "--to", "grades.csv"]):
        assert run(*words) == (0, "")
    one = Course(course)
    assert all(one.feedback(Handed(SLUG, name)).is_file() for name in NAMES)
    with open("grades.csv", newline="", encoding="utf-8") as stream:
        ids = {row[0] for row in csv.reader(stream)}
    assert {name for name in NAMES if name[0] not in "-="} <= ids and "'=1+1" in ids
