"""A new lesson goes the whole way, in a clone of the course."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from autograder import ROOT, CourseError, cell_metadata
from autograder.building.new_lesson import begin
from autograder.lessons import notebook
from tests.needs import needs

FOLDERS = ("attention", "autograder", "source", "lessons", "solutions", "data", "book")
FILES = (
    *("nbgrader_config.py", "pyproject.toml", "autograder.toml", "constraints.txt"),
    *("LICENSE", "LICENSE-TEXT", ".gitignore"),
)
OWN = "50_running_average"
SUM = "def running_average(values):\n    return values.cumsum(dim=0)\n"


def solved(course, slug, **answers):
    """The notebook of a student who is right, but for these exercises."""
    made, right = (
        nbformat.read(notebook(course, kind, slug), as_version=4)
        for kind in ("lessons", "solutions")
    )
    texts = {cell.id: cell.source for cell in right.cells}
    for cell in filter(cell_metadata.is_solution, made.cells):
        cell.source = answers.get(cell_metadata.exercise(cell), texts[cell.id])
    return made


def git(folder, *words):
    who = ("-c", "user.name=us", "-c", "user.email=us@example.org", "-c", "gc.auto=0")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(folder, *words, status=0):
    """Run ``autograder`` of the copy in this folder; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "autograder", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """An instructor's clone of the course."""
    ours = tmp_path_factory.mktemp("ours") / "clone"
    leave = shutil.ignore_patterns("__pycache__", "_build")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, ours / name, ignore=leave)
    for name in FILES:
        shutil.copy(ROOT / name, ours / name)
    git(ours, "init", "--quiet")
    git(ours, "add", "--all")
    git(ours, "commit", "--quiet", "-m", "one")
    return ours


@pytest.mark.long
@needs("sphinx")
def test_a_new_lesson_goes_the_whole_way(course):
    assert "autograder build 50" in run(course, "new-lesson", "running_average")
    run(course, "build", "50")
    said = run(course, "verify", "50")
    assert f"{OWN}: done" in said
    assert "solved 1 of 1 points, blank 0" in said
    assert "mistakes 3: 3 rejected, 3 named; alternatives 2: 2 accepted" in said
    assert run(course, "verify", "50", "--changed").startswith("All lessons are as they were")
    # Nothing of ours is changed: an update of the course meets new files only.
    assert {line[:2] for line in git(course, "status", "--porcelain").splitlines()} == {"??"}
    _is_released_without_its_solution(course)
    _is_graded(course)
    _is_in_the_book_after_the_others(course)


def _is_released_without_its_solution(course):
    said = run(course, "release", "50", "--to", "../released")
    assert f"{OWN} comes after all lessons of the course" in said
    released = course.parent / "released"
    found = released.rglob("*running_average*.*")
    names = {path.relative_to(released).as_posix() for path in found}
    assert names == {
        f"lessons/{OWN}/{OWN}.ipynb",
        f"autograder/released/{OWN}/{OWN}.ipynb",
        "autograder/checks/running_average.py",
        "autograder/mistakes/running_average.py",
        "autograder/recorded/running_average.zip",
    }
    path = notebook(released, "lessons", OWN)
    nbformat.write(solved(course, OWN, running_average=SUM), path)
    assert "This is the running sum." in run(released, "check", str(path), status=1)


def _is_graded(course):
    for student, answers in (("ada", {}), ("ben", {"running_average": SUM})):
        path = notebook(course / "class" / "submitted", student, OWN)
        path.parent.mkdir(parents=True)
        nbformat.write(solved(course, OWN, **answers), path)
    said = run(course, "grade")
    assert re.search(rf"{OWN} +ada +1/1", said)
    assert re.search(rf"{OWN} +ben +0/1 +lost: running_average", said)
    reasons = course / "class" / "autograded" / "ben" / OWN / "reasons.json"
    assert "This is the running sum." in reasons.read_text(encoding="utf-8")


def _is_in_the_book_after_the_others(course):
    run(course, "book", "--to", "../book")  # Sphinx accepts it without a warning
    text = (course.parent / "book" / "source" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"^(\d\d · .*): ", text, re.MULTILINE)[-2:] == [
        "21 · Answers",
        "50 · Running average",
    ]
    assert (course.parent / "book" / "html" / OWN / f"{OWN}.html").is_file()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Fourier", "is no name for a lesson"),
        ("softmax", "'softmax', by an exercise or by Python, is taken"),
        ("class", "'class', by an exercise or by Python, is taken"),
        ("kernel_regression", "kernel_regression.py"),
    ],
)
def test_a_name_that_cannot_be(name, sentence):
    with pytest.raises(CourseError, match=sentence):
        begin(name)
