"""How far a learner is, as their notebooks say."""

import copy
import json

import nbformat
import pytest

from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.self_study import status

SLUG = "00_getting_started"


def execute(notebook, correct=(), wrong=()):
    """Give the cells numbers as if run from top to bottom, and the checks these outcomes."""
    for number, cell in enumerate(one for one in notebook.cells if one.cell_type == "code"):
        cell.execution_count, cell.outputs = number + 1, []
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "").removeprefix("check_")
        if cell.source.startswith("check.") and name in correct:
            cell.outputs = [nbformat.v4.new_output("stream", text=f"{name}: correct.\n")]
        elif cell.source.startswith("check.") and name in wrong:
            cell.outputs = [nbformat.v4.new_output("error", ename="CheckFailed", evalue="no")]
    return notebook


def states(folder):
    (lesson,) = status.read(folder)
    return [one.state for one in lesson.exercises]


@pytest.fixture
def save(tmp_path):
    """Writes a notebook where a student's lies; returns the folder of the lessons."""

    def write(content):
        (tmp_path / SLUG).mkdir(exist_ok=True)
        text = content if isinstance(content, str) else nbformat.writes(content)
        (tmp_path / SLUG / f"{SLUG}.ipynb").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def answer(notebook, name):
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


WRONG = "softmax: wrong."
COSTS = "  costs     1.25 of 2 points: rows (1)"


@pytest.mark.parametrize(
    ("traceback", "earned"),
    [([WRONG, COSTS, " " * 12 + "¼ of the rest"], 0.75), ([WRONG], 0), (5, 0), (None, 0)],
)
def test_the_stages_that_are_earned_count(save, traceback, earned):
    notebook = execute(sample_class.solved(SLUG), ["uniform_average"], ["softmax"])
    check = answer(notebook, "check_softmax")
    check.outputs[0]["traceback"] = traceback
    (lesson,) = status.read(save(json.dumps(notebook)))
    one = lesson.exercises[1]
    assert (one.name, one.state, one.earned) == ("softmax", status.BEGUN, earned)


def test_what_passed_is_done_what_failed_is_begun_and_a_stub_is_open(save):
    notebook = execute(sample_class.solved(SLUG), ["uniform_average"], ["softmax"])
    stub = answer(sample_class.blank(SLUG), "weighted_average").source
    answer(notebook, "weighted_average").source = stub
    folder = save(notebook)
    assert states(folder) == ["done", "begun", "open"]
    (lesson,) = status.read(folder)
    every = sum(one.minutes for one in lesson.exercises)
    left = every - lesson.exercises[0].minutes
    assert lesson.minutes == 30
    assert lesson.minutes_left == pytest.approx(30 * left / every)
    assert " softmax in 00_getting_started, " in status.table([lesson]).splitlines()[-1]


def test_a_check_that_ran_before_its_answer_says_nothing(save):
    notebook = execute(sample_class.solved(SLUG), ["softmax"])
    answer(notebook, "softmax").execution_count = 999
    assert states(save(notebook)) == ["begun", "begun", "begun"]


def test_a_stub_below_an_old_success_is_open_unless_it_is_a_comment(save):
    notebook = execute(sample_class.blank(SLUG), ["softmax"])
    assert states(save(notebook)) == ["open", "open", "open"]
    notebook = execute(sample_class.solved(SLUG), ["softmax"])
    comment = "\n    # raise NotImplementedError('softmax: write about 3 lines')"
    answer(notebook, "softmax").source += comment
    twin = copy.deepcopy(answer(notebook, "check_softmax"))
    twin.id = "twin"
    notebook.cells.append(twin)  # a second copy of a check counts once
    assert states(save(notebook)) == ["begun", "done", "begun"]


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 3}', '{"cells": [3, {"source": {}}]}'])
def test_what_is_no_notebook_takes_nothing_with_it(save, text):
    (lesson,) = status.read(save(text))
    assert lesson.exercises in ([], ())
    assert "0 of 0" in status.table([lesson])


def test_the_course_s_own_notebooks_are_blank_and_solved():
    """The lessons as they are handed out are open; a solved one saved its checks."""
    table = status.table(status.read())
    assert "● done" in table
    assert "0 of " in table.splitlines()[-2]
    assert "Next: 0.1 uniform_average" in table
    solved = status.read(sample_class.ROOT / "solutions")
    assert {one.state for lesson in solved for one in lesson.exercises} == {"done"}
    assert "Next:" not in status.table(solved)
    assert all(one.number and one.minutes for lesson in solved for one in lesson.exercises)


def test_the_cell_shows_what_lies_beside_it_and_nothing_of_solved_ones(
    save, monkeypatch, capsys, tmp_path
):
    folder = save(execute(sample_class.solved(SLUG), ["softmax"]))
    monkeypatch.chdir(folder / SLUG)
    status.show()
    assert "1 of 3 exercises, 2 of 5 points" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path.parent)
    status.show()
    assert capsys.readouterr().out == "In lessons/, this cell says how far you are.\n"


def test_the_command(save, capsys):
    folder = save(execute(sample_class.solved(SLUG), ["softmax"]))
    assert cli.main(["status", str(folder)]) == 0
    assert "◐●◐" in capsys.readouterr().out
    assert cli.main(["status", str(folder / SLUG)]) == 1
    assert "holds no lesson" in capsys.readouterr().err


def test_a_renamed_notebook_counts_where_it_is_alone_and_is_named_where_it_is_not(save, capsys):
    folder = save(execute(sample_class.solved(SLUG), ["softmax"]))
    right = folder / SLUG / "right – Kopie.ipynb"
    (folder / SLUG / f"{SLUG}.ipynb").rename(right)
    (lesson,) = status.read(folder)
    assert lesson.slug == SLUG and len(lesson.done) == 1
    save(execute(sample_class.solved(SLUG)))
    assert not status.read(folder)[0].done
    assert cli.main(["status", str(folder)]) == 0
    assert f"Not counted: {SLUG}/right – Kopie.ipynb. To count" in capsys.readouterr().out


def test_stages_that_are_earned_take_minutes_away():
    half = status.Exercise("one", "1.1", status.BEGUN, 2, 10, earned=1)
    other = status.Exercise("two", "1.2", status.OPEN, 1, 10)
    assert status.Lesson("00_x", 40, [half, other]).minutes_left == 30
