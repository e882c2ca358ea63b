"""Another course is graded by the same commands: tests/second_course, where no `attention` is.

The grader is copied beside it without this course's checks and answers, and is taken from there.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from autograder import cell_metadata
from tests.needs import needs
from tests.test_rooms import FLAT, ROOT
from tests.waiting import LONG

SLUG = "00_correlation"
RIGHT = """\
def correlate(x, kernel):
    return x.unfold(0, len(kernel), 1) @ kernel
"""
ANSWERS = {
    "ada": {"correlate": RIGHT},
    "ben": {"correlate": RIGHT.replace("@ kernel", "@ kernel.flip(0)")},
}
HINT = "The kernel is turned round: that is a convolution."
# Folders that hold the course are left out: an editable install names one.
START = """\
import os, sys
sys.path[:] = [one for one in sys.path if not os.path.isdir(os.path.join(one, "attention"))]
"""

pytestmark = [pytest.mark.long, needs("sphinx")]


class Course:
    """The second course in a folder of its own, and what its commands said."""

    def __init__(self, folder):
        self.root, self.said = folder / "course", ""
        shutil.copytree(ROOT / "tests" / "second_course", self.root)
        rooms = [ROOT.joinpath(*name.split(".")) for name in FLAT]

        def left_out(place, names):
            kept = [name for name in names if os.path.join(place, name) not in map(str, rooms)]
            return {*names} - {*kept} | {"__pycache__", "recorded", "released", "verified.json"}

        shutil.copytree(
            ROOT / "autograder", self.root / "autograder", ignore=left_out, dirs_exist_ok=True
        )
        (folder / "start").mkdir()
        (folder / "start" / "sitecustomize.py").write_text(START)

    def run(self, *words, status=0, program=("-m", "autograder"), at=None):
        """Run a command of the course, or of the release ``at``; returns what it prints."""
        root = at or self.root
        paths = os.pathsep.join(map(str, (root, self.root.parent / "start")))
        done = subprocess.run(
            [sys.executable, *program, *map(str, words)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG,
        )
        self.said += done.stdout + done.stderr
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course, built."""
    course = Course(tmp_path_factory.mktemp("second"))
    assert "correlation.ipynb" in course.run("build")
    return course


@pytest.fixture(scope="module")
def released(course):
    """A release of its lesson."""
    folder = course.root.parent / "released"
    course.run("release", SLUG, "--to", folder)
    return folder


@pytest.fixture(scope="module")
def graded(course, released):
    """Two students' work, received and graded."""
    blank = nbformat.read(released / "lessons" / SLUG / f"{SLUG}.ipynb", 4)
    mailed = course.root.parent / "mailed"
    for student, answers in ANSWERS.items():
        (mailed / student).mkdir(parents=True)
        for cell in blank.cells:
            if cell_metadata.is_solution(cell):
                cell.source = answers.get(cell_metadata.exercise(cell), cell.source)
        nbformat.write(blank, mailed / student / f"{SLUG}.ipynb")
    (course.root / "class.csv").write_text("id\n" + "\n".join(ANSWERS))
    course.run("roster", "class.csv")
    course.run("receive", mailed, "--lesson", "00")
    course.run("grade")
    return course


def test_attention_is_not_there(course):
    look = (
        "import importlib.util as u, autograder; print(u.find_spec('attention'), autograder.ROOT)"
    )
    assert course.run("-c", look, program=()).split() == ["None", str(course.root)]


def test_it_passes_all_gates(course):
    assert "solved 6 of 6 points, blank 0" in course.run("verify")
    assert course.run("build", "--check").strip() == "Everything is up to date."


def test_its_release_solves_nothing_and_checks_answers(course, released):
    text = (released / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Convolution in three functions: your copy\n\nYou write what")
    files = [path for path in released.rglob("*") if path.is_file()]
    assert not [path for path in files if b"windows @ kernel" in path.read_bytes()]
    notebook = f"lessons/{SLUG}/{SLUG}.ipynb"
    said = course.run("check", "--json", notebook, status=1, at=released)
    assert [one["earned"] for one in json.loads(said)["exercises"]] == [0, 0, 0]


def test_a_right_answer_earns_its_points_and_a_wrong_one_is_named(graded):
    graded.run("report", "--to", "results")
    with open(graded.root / "results" / "scores.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["exercise"] == "correlate"]
    assert {row["student"]: float(row["score"]) for row in rows} == {"ada": 2, "ben": 0}
    assert HINT in (graded.root / "results" / "class.html").read_text(encoding="utf-8")


def test_feedback_shows_it(graded):
    graded.run("feedback")
    (page,) = (graded.root / "class" / "feedback" / "ben").rglob("*.html")
    assert HINT in page.read_text(encoding="utf-8")


def test_a_complaint_is_explained(graded):
    assert HINT in graded.run("explain", "--student", "ben", "00", "correlate")


def test_it_becomes_a_book(course):
    course.run("book")
    page = course.root / "book" / "_build" / "html" / SLUG / f"{SLUG}.html"
    assert "How does a kernel find an edge?" in page.read_text(encoding="utf-8")


def test_no_command_speaks_of_another_course(graded, released):
    said = [graded.said, graded.run("--help")]
    said += [graded.run(name, "--help") for name in ("release", "collect")]
    said += [path.read_text("utf-8") for path in released.glob("*") if path.is_file()]
    assert not re.search(r"attention|transformer", "\n".join(said), re.IGNORECASE)
