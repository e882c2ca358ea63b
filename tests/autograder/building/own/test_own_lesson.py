"""An own lesson goes the whole way, in a clone of the course, and a clean-up leaves it as it is."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from autograder import ROOT, cell_metadata
from autograder.lessons import notebook
from tests.needs import needs

FOLDERS = ("attention", "autograder", "source", "lessons", "solutions", "data", "book")
FILES = (
    *("nbgrader_config.py", "pyproject.toml", "autograder.toml", "constraints.txt"),
    *("LICENSE", "LICENSE-TEXT", ".gitignore"),
)
OURS, OWN = "00_getting_started", "50_own_running_average"
SUM = "def running_average(values):\n    return values.cumsum(dim=0)\n"
FIRST = "def softmax(scores, dim):\n    return scores[:1].softmax(dim)\n"
HINT = "Rows are missing."
MISTAKE = f'''from autograder.checking.toolbox.registry import mistake


@mistake("softmax", hint="{HINT}")
def of_the_first_row_only(scores, dim):
    return scores[:1].softmax(dim)
'''


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
    leave = shutil.ignore_patterns("__pycache__", "_build", "own_*", "??_own_*")
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
def test_an_own_lesson_goes_the_whole_way_and_a_clean_up_leaves_it_as_it_is(course):
    run(course, "new-lesson", "running_average", "--to", "../mine")
    assert "wrote" in run(course, "build", "50")
    said = run(course, "verify", "50")
    assert f"{OWN}: done" in said
    assert "solved 1 of 1 points, blank 0" in said
    assert "mistakes 3: 3 rejected, 3 named; alternatives 2: 2 accepted" in said
    assert run(course, "verify", "50", "--changed").startswith("All lessons are as they were")
    assert git(course, "status", "--porcelain") == ""

    mine = course.parent / "mine"
    (mine / "mistakes" / "own_for_getting_started.py").write_text(MISTAKE)
    _is_released_without_its_solution(course)
    _is_graded(course)
    _is_in_the_book_after_the_others(course)
    assert git(course, "status", "--porcelain") == ""
    before = {path: path.read_bytes() for path in mine.rglob("*.py")}
    git(course, "clean", "-fdxq")  # takes all that git ignores: the class, the settings, the links
    assert not (course / "attention" / "own_running_average.py").exists()
    assert {path: path.read_bytes() for path in mine.rglob("*.py")} == before


def _is_released_without_its_solution(course):
    said = run(course, "release", "50", "--to", "../released")
    assert f"{OWN} comes after all lessons of the course" in said
    released = course.parent / "released"
    names = {path.relative_to(released).as_posix() for path in released.rglob("*own_*.*")}
    assert names == {
        f"lessons/{OWN}/{OWN}.ipynb",
        f"autograder/released/{OWN}/{OWN}.ipynb",
        "autograder/checks/own_running_average.py",
        "autograder/mistakes/own_running_average.py",
        "autograder/mistakes/own_for_getting_started.py",  # of a lesson that is over
        "autograder/recorded/own_running_average.zip",
    }
    assert not [path for path in released.rglob("*") if path.is_symlink()]
    path = notebook(released, "lessons", OWN)
    nbformat.write(solved(course, OWN, running_average=SUM), path)
    assert "This is the running sum." in run(released, "check", str(path), status=1)


def _is_graded(course):
    for slug, student, answers in (
        (OWN, "ada", {}),
        (OWN, "ben", {"running_average": SUM}),
        (OURS, "ben", {"softmax": FIRST}),
    ):
        path = notebook(course / "class" / "submitted", student, slug)
        path.parent.mkdir(parents=True)
        nbformat.write(solved(course, slug, **answers), path)
    said = run(course, "grade")
    assert re.search(rf"{OWN} +ada +1/1", said)
    assert re.search(rf"{OWN} +ben +0/1 +lost: running_average", said)
    assert "This is the running sum." in reasons(course, OWN)
    assert HINT in reasons(course, OURS)
    path = course.parent / "mine" / "mistakes" / "own_for_getting_started.py"
    path.write_text(MISTAKE.replace(HINT, "Another hint."))
    assert "the named mistakes" in run(course, "grade")
    assert "Another hint." in reasons(course, OURS)


def _is_in_the_book_after_the_others(course):
    run(course, "book", "--to", "../book")  # Sphinx accepts it without a warning
    text = (course.parent / "book" / "source" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"^(\d\d · .*): ", text, re.MULTILINE)[-2:] == [
        "21 · Answers",
        "50 · Running average",
    ]
    assert (course.parent / "book" / "html" / OWN / f"{OWN}.html").is_file()


def reasons(course, slug):
    """What ben reads of this lesson."""
    path = course / "class" / "autograded" / "ben" / slug / "reasons.json"
    return path.read_text(encoding="utf-8")
