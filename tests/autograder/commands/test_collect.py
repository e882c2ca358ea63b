"""`autograder collect`: what a student has passed, in modules of their own."""

import nbformat
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from attention.train.pieces import collected
from autograder import CourseError
from autograder import pieces as stored
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.self_study import collect as collecting

SLUG, LESSON = "00_getting_started", "getting_started"

HELPED = """\
%precision 3
import math as maths, random


# what makes it a mean
SHARE = maths.pow(2, 0)


def added_up(values):
    return values.sum(dim=0) * SHARE


def unused(values):
    return random.random()
"""
UNIFORM = "def uniform_average(values):\n    return added_up(values) / values.shape[0]\n"
WRONG = "def softmax(scores, dim):\n    return scores.exp() / scores.exp().sum()\n"
RIGHT = "def softmax(scores, dim):\n    return torch.softmax(scores, dim)\n"


def notebook(**answers):
    """The blank notebook of lesson 00 with these answers; "above" is a cell before the first."""
    made = sample_class.blank(SLUG)
    for cell in made.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name in answers:
            cell.source = answers[name]
    place = next(i for i, cell in enumerate(made.cells) if "def uniform_average" in cell.source)
    made.cells.insert(place, nbformat.v4.new_code_cell(answers.get("above", "")))
    made.cells.insert(place, nbformat.v4.new_code_cell("this is no Python"))
    return made


@pytest.fixture
def collect(tmp_path):
    """Collects from a notebook with these answers; returns {name: why} and the module's text."""

    def run(**answers):
        path = tmp_path / f"{SLUG}.ipynb"
        nbformat.write(notebook(**answers), path)
        found = collecting.collect(path)
        return {piece.name: piece.why for piece in found.pieces}, found.text

    yield run
    InteractiveShell.clear_instance()


def test_a_partly_done_notebook_is_collected_as_far_as_it_passes(tmp_path, capsys):
    lessons, folder = tmp_path / "lessons", tmp_path / "my pieces"
    path = lessons / SLUG / f"{SLUG}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook(above=HELPED, uniform_average=UNIFORM, softmax=WRONG), path)
    assert cli.main(["collect", str(lessons), "--to", str(folder)]) == 0
    InteractiveShell.clear_instance()
    said = capsys.readouterr().out
    rows = {line.split()[1]: line.strip().split(maxsplit=3)[2:] for line in said.splitlines()[2:5]}
    assert rows == {
        "uniform_average": ["yours"],
        "softmax": ["library", "the weights do not sum to 1 along dim=1"],
        "weighted_average": ["library", "not written yet"],
    }
    assert said.endswith(f"1 of 3 pieces are yours, in {folder}.\n")
    text = (folder / f"{LESSON}.py").read_text()
    assert text.startswith(f'"""Your pieces of lesson 00, collected from {SLUG}.ipynb.\n')
    # All that the piece needs, in the student's own words, and no more.
    kept = text.partition('"""\n\n')[2].splitlines()
    assert [line for line in kept if line and not line.startswith(" ")] == [
        "import math as maths",
        "# what makes it a mean",
        "SHARE = maths.pow(2, 0)",
        "def added_up(values):",
        "def uniform_average(values):",
    ]
    pieces = collected.load(folder)
    assert list(pieces.own) == ["uniform_average"]
    values = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert pieces.own["uniform_average"](values).tolist() == [2.0, 4.0]


def test_what_lives_on_something_else_in_the_notebook_is_left_out(collect):
    hidden = "exec('def added_up(values):\\n    return values.sum(dim=0)')"
    why, text = collect(above=hidden, uniform_average=UNIFORM, softmax=RIGHT)
    assert why["uniform_average"].startswith(
        "passes in the notebook, but not without its other cells: "
    )
    assert why["softmax"] == ""
    assert "uniform_average" not in text and "def softmax" in text


UNIFORM_BY_WEIGHTS = (
    "def uniform_average(values):\n"
    "    weights = torch.full((1, len(values)), 1 / len(values)).to(values)\n"
    "    return weighted_average(weights, values)[0]\n"
)
WEIGHTED_WRONG = "def weighted_average(weights, values):\n    return (weights @ values)[:99]\n"


def test_a_piece_that_uses_one_that_fails_has_the_librarys_or_is_left_out(collect, monkeypatch):
    answers = {
        "above": WEIGHTED_WRONG.replace("[:99]", ""),
        "uniform_average": UNIFORM_BY_WEIGHTS,
        "weighted_average": "def weighted_average(weights, values):\n    return 0 * values[0]\n",
    }
    why, text = collect(**answers)
    assert why["uniform_average"] == "" and why["weighted_average"] != ""
    assert f"from attention.{LESSON} import weighted_average\n" in text
    # In a student's copy, the library of the lesson is not there.
    monkeypatch.setattr(collecting, "_from_library", lambda *_: None)
    why, text = collect(**answers)
    assert why["uniform_average"] == "it uses weighted_average, which does not pass"
    assert text == ""


def test_a_blank_notebook_is_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "check_notebook", None)
    path = tmp_path / f"{SLUG}.ipynb"
    nbformat.write(sample_class.blank(SLUG), path)
    found = collecting.collect(path)
    assert {piece.why for piece in found.pieces} == {collecting.NOT_WRITTEN}
    assert len(found.pieces) == 3 and found.text == ""


def test_a_lesson_is_collected_anew_and_the_others_stay(tmp_path):
    def found(lesson, notebook, text, why=""):
        pieces = [stored.Piece("one", lesson, notebook, why)]
        return collecting.Collected(lesson, pieces, text)

    folder = tmp_path / "mine"
    collecting.write(folder, [found("b", "02_b.ipynb", "two = 2\n")])
    collecting.write(folder, [found("a", "01_a.ipynb", "one = 1\n")])
    every = collecting.write(folder, [found("b", "02_b.ipynb", "", "not written yet")])
    assert [(one.lesson, one.yours) for one in every] == [("a", True), ("b", False)]
    assert stored.read(folder) == every
    assert [path.name for path in folder.glob("*.py")] == ["a.py"]


def test_a_folder_of_something_else_and_no_notebook_are_one_sentence(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CourseError, match="holds something else: name another folder with --to"):
        collecting.refuse_other(tmp_path)
    assert cli.main(["collect", "--to", str(tmp_path)]) == 1
    assert cli.main(["collect", str(tmp_path / "x.ipynb"), "--to", str(tmp_path / "new")]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "holds something else" in first
    assert second.endswith("x.ipynb: there is no such file")
    assert not (tmp_path / "new").exists()
