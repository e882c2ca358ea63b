"""`autograder check`: a student's own check in a terminal, also of notebooks that are damaged."""

import re
import subprocess
import sys

import nbformat
import pytest

from autograder import ROOT
from autograder.commands import cli

SLUG = "00_getting_started"
EXERCISES = ("uniform_average", "softmax", "weighted_average")


def read(kind):
    return nbformat.read(ROOT / kind / SLUG / f"{SLUG}.ipynb", as_version=4)


def index(notebook, identity):
    return next(
        number
        for number, cell in enumerate(notebook.cells)
        if cell.metadata.get("nbgrader", {}).get("grade_id") == identity
    )


def answer(notebook, source):
    notebook.cells[index(notebook, "softmax")].source = source


WRONG = "def softmax(scores, dim):\n    return scores.exp() / scores.exp().sum()"
PROCESS = """
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:
    assert pool.map(abs, [-1]) == [1]
"""
CHANGES = {
    "solved": lambda notebook: None,
    "wrong": lambda notebook: answer(notebook, WRONG),
    "starts_processes": lambda notebook: answer(
        notebook, PROCESS + notebook.cells[index(notebook, "softmax")].source
    ),
    "syntax": lambda notebook: answer(notebook, "def softmax(scores, dim:\n    return 1"),
    "exits": lambda notebook: answer(notebook, "raise SystemExit"),
    "imported": lambda notebook: answer(notebook, "from attention.getting_started import softmax"),
    "no_answer": lambda notebook: notebook.cells.pop(index(notebook, "softmax")),
    "no_check": lambda notebook: notebook.cells.pop(index(notebook, "check_softmax")),
    "edited_check": lambda notebook: notebook.cells[index(notebook, "check_softmax")].update(
        source="1 / 0"
    ),
    "check_twice": lambda notebook: notebook.cells.insert(
        0, notebook.cells[index(notebook, "check_softmax")].copy()
    ),
    "check_first": lambda notebook: notebook.cells.insert(
        0, notebook.cells.pop(index(notebook, "check_softmax"))
    ),
    "more_points": lambda notebook: notebook.cells[
        index(notebook, "check_softmax")
    ].metadata.nbgrader.update(points=100),
    "no_cells": lambda notebook: notebook.cells.clear(),
    "julia": lambda notebook: notebook.metadata.kernelspec.update(
        name="julia-1.9", language="julia", display_name="Julia 1.9"
    ),
    "nameless": lambda notebook: notebook.metadata.pop("autograder"),
}
RIGHT = (
    *("solved", "no_check", "edited_check", "check_twice", "check_first", "more_points"),
    "starts_processes",
)
DAMAGED = {"empty": b"", "text": b"not json", "list": b"[]", "bytes": b"\xff\xfe", "object": b"{}"}


def checked(folder, changed, others=()):
    """What one command said of all notebooks: (exit status, table or sentence by name)."""
    paths = list(others)
    for name in changed:
        notebook = read("solutions")
        CHANGES[name](notebook)
        nbformat.write(notebook, folder / f"{name}.ipynb")
        paths.append(folder / f"{name}.ipynb")
    done = subprocess.run(
        [sys.executable, "-m", "autograder.commands.cli", "check", *paths],
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr + done.stdout
    parts = re.split(r"^(\w+)\.ipynb\s*$", done.stdout, flags=re.MULTILINE)
    tables = dict(zip(parts[1::2], parts[2::2], strict=True))
    sentences = {
        line.partition(".ipynb: ")[0].rpartition("/")[2]: line.partition(".ipynb: ")[2]
        for line in done.stderr.splitlines()
    }
    return done.returncode, {**tables, **sentences}


@pytest.fixture(scope="module")
def said_of_right_answers(tmp_path_factory):
    """The same of notebooks whose answers are right, whatever else was done to them."""
    return checked(tmp_path_factory.mktemp("right"), RIGHT)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the command said of the others, and of files that are none."""
    folder = tmp_path_factory.mktemp("handed")
    paths = [folder / "missing.ipynb"]
    nbformat.write(read("lessons"), folder / "blank.ipynb")
    paths.append(folder / "blank.ipynb")
    for name, content in DAMAGED.items():
        (folder / f"{name}.ipynb").write_bytes(content)
        paths.append(folder / f"{name}.ipynb")
    return checked(folder, [name for name in CHANGES if name not in RIGHT], paths)


def points(table):
    """Points earned by exercise."""
    return {
        name: int(re.search(rf"{name} .*?(\d+) of \d", table)[1])
        for name in (*EXERCISES, "together")
    }


FULL = {"uniform_average": 1, "softmax": 2, "weighted_average": 2, "together": 5}
LOST = {**FULL, "softmax": 0, "together": 3}


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_earn_everything(said_of_right_answers, name):
    said = said_of_right_answers[1][name]
    assert points(said) == FULL
    assert "softmax:" not in said


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("wrong", "softmax: the weights do not sum to 1 along dim=1."),
        ("syntax", "softmax: it is not defined.\n  got       its cell stops with SyntaxError: "),
        ("exits", "softmax: it is not defined.\n  got       its cell stops with SystemExit"),
        ("no_answer", "softmax: it is not defined.\n  got       its cell is missing"),
        ("imported", "softmax: this answer was not written in the notebook."),
    ],
)
def test_one_bad_answer_costs_one_exercise(said, name, sentence):
    assert points(said[1][name]) == LOST
    assert f"\n{sentence}" in said[1][name]


@pytest.mark.parametrize("name", ["blank", "no_cells"])
def test_nothing_earns_nothing(said, name):
    assert set(points(said[1][name]).values()) == {0}
    sentence = "nothing here yet" if name == "blank" else "its cell is missing"
    assert said[1][name].count(sentence) == len(EXERCISES)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing", "there is no such file"),
        ("empty", "the file is empty; take a new copy from lessons/"),
        ("text", "this is not a notebook ("),
        ("bytes", "this is not a notebook ("),
        ("list", "this is not a notebook ("),
        ("object", "this is no"),
        ("julia", "its kernel is 'Julia 1.9'; choose Python 3 in JupyterLab and save it"),
        ("nameless", "this is no lesson of the course; its file name or metadata should say which"),
    ],
)
def test_what_is_no_notebook_is_refused_in_one_sentence(said, name, sentence):
    assert said[1][name].startswith(sentence)


def test_the_exit_status_is_one_unless_all_pass(said):
    assert said[0] == 1
    solved = ROOT / "solutions" / SLUG / f"{SLUG}.ipynb"
    assert cli.main(["check", str(solved)]) == 0


def test_a_lesson_of_the_folder_is_named_by_its_number(tmp_path, monkeypatch, capsys):
    path = tmp_path / "lessons" / SLUG / f"{SLUG}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(read("lessons"), path)
    monkeypatch.chdir(tmp_path)
    cli.main(["check", "0"])
    done = capsys.readouterr()
    assert "0 of 5" in done.out and done.err == ""
    cli.main(["check", "07"])
    assert f"no lesson is called '07'; there are: {SLUG}" in capsys.readouterr().err
