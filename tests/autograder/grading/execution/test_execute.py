"""Grading one submission: reading anything, assembling it, running it, saying why."""

import copy
import json

import nbformat
import pytest

from autograder.checking.toolbox.expect import CheckFailed
from autograder.grading.classroom import sample_class
from autograder.grading.execution import execute
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook.result import Result, clean
from autograder.grading.notebook.submission import parse
from autograder.inside.limits import Limits
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.one import grade_submission

SLUG = "00_getting_started"
EXERCISES = ["uniform_average", "softmax", "weighted_average"]
WRONG = "def softmax(scores, dim):\n    return scores"
POINTS = {"uniform_average": 1, "softmax": 2, "weighted_average": 2}


@pytest.fixture(scope="module")
def master():
    return sample_class.solved(SLUG)


@pytest.fixture(scope="module")
def box():
    with Sandbox(SLUG, "auto", Limits(cell_seconds=2, check_seconds=1.5, patience=200)) as made:
        yield made


@pytest.fixture
def grade(master, box):
    """Grade a notebook; returns the Result."""
    return lambda notebook: grade_submission(master, parse(notebook), box)[1]


def scores(result):
    return {one.name: one.score for one in result.exercises}


def reason(result, name):
    return next(one.reason for one in result.exercises if one.name == name)


def cell_of(notebook, grade_id):
    graded = (cell for cell in notebook.cells if "nbgrader" in cell.metadata)
    return next(cell for cell in graded if cell.metadata.nbgrader.grade_id == grade_id)


def assembled(master, notebook):
    return nbformat.from_dict(assemble(master, parse(notebook)))


def run_of(cell):
    return cell.metadata.get("autograder", {}).get("run")


class TestAssembling:
    def test_the_order_and_the_checks_are_the_masters(self, master):
        notebook = sample_class.handed_in(SLUG)
        notebook.cells.reverse()
        made = assembled(master, notebook)
        found = [
            cell.metadata.nbgrader.grade_id for cell in made.cells if "nbgrader" in cell.metadata
        ]
        assert found == [
            cell.metadata.nbgrader.grade_id for cell in master.cells if "nbgrader" in cell.metadata
        ]

    def test_no_solution_of_the_masters_slips_in(self, master):
        notebook = sample_class.blank(SLUG)
        notebook.cells = []
        made = assembled(master, notebook)
        assert cell_of(made, "softmax").source == ""
        assert not any("def softmax" in cell.source for cell in made.cells)

    def test_of_a_students_cell_only_the_text_is_kept(self, master):
        notebook = sample_class.handed_in(SLUG)
        cell = nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["skip-execution"], "a": 1})
        cell.outputs = [nbformat.v4.new_output("stream", text="forged")]
        notebook.cells.insert(0, cell)
        made = assembled(master, notebook).cells[0]
        assert (made.source, made.outputs) == ("x = 1", [])
        assert made.metadata == {"autograder": {"run": "inside"}}

    def test_of_two_cells_for_an_answer_the_first_counts(self, master):
        notebook = sample_class.handed_in(SLUG, {"softmax": WRONG})
        notebook.cells.append(copy.deepcopy(cell_of(notebook, "softmax")))
        notebook.cells[-1].source = cell_of(master, "softmax").source
        assert cell_of(assembled(master, notebook), "softmax").source == WRONG

    def test_an_unchanged_demonstration_is_skipped(self, master):
        notebook = sample_class.handed_in(SLUG)
        made = assembled(master, notebook)
        demos = [
            cell.source for cell in master.cells if cell.metadata.get("autograder", {}).get("demo")
        ]
        assert [cell.source for cell in made.cells if run_of(cell) == "skip"] == demos
        for cell in notebook.cells:
            cell.source += "\n# changed" if cell.source in demos else ""
        made = assembled(master, notebook)
        assert "skip" not in map(run_of, made.cells)

    def test_the_graded_notebook_is_valid(self, master):
        nbformat.validate(assembled(master, sample_class.handed_in(SLUG)))


class TestRunning:
    def test_right_answers_earn_everything(self, grade):
        result = grade(sample_class.handed_in(SLUG))
        assert scores(result) == POINTS
        assert result.complete

    def test_a_blank_notebook_earns_nothing_and_says_so(self, grade):
        result = grade(sample_class.blank(SLUG))
        assert result.score == 0
        assert all("nothing here yet" in one.reason for one in result.exercises)
        assert result.complete

    @pytest.mark.parametrize("name", EXERCISES)
    def test_a_named_mistake_costs_only_its_exercise_and_is_named(self, grade, name):
        known = sample_class.wrong(name)
        result = grade(sample_class.handed_in(SLUG, {name: known}))
        assert scores(result) == {**POINTS, name: 0}
        assert known.hint in " ".join(reason(result, name).split())  # it is wrapped
        assert "seed" in reason(result, name)

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            (
                "def softmax(:",
                "SyntaxError: invalid syntax, line 1: def softmax(:",
            ),
            ("1 / 0", "its cell stops with ZeroDivisionError: division by zero, line 1"),
            ("import os; os._exit(0)", "had to be stopped: it ended itself with status 0"),
            ("while True: pass", "had to be stopped: it took more than 2 s"),
            ("def softmax(scores, dim):\n    while True: pass", "it took more than 1.5 s"),
            ("def softmax(scores, dim):\n    import os; os._exit(3)", "status 3"),
            ("def softmax(scores, dim):\n    import sys; sys.exit()", "SystemExit"),
            ("from torch import softmax", "not written in the notebook"),
            ("softmax = 3", "raised TypeError"),
            ("def softmax(scores, dim): pass", "None"),
            ("def softmax(scores, dim): return scores.numpy()", "numpy"),
            ("def softmax(scores, dim): return (scores * float('nan'))", "not finite"),
            ("def softmax(scores, dim):\n    raise KeyboardInterrupt", "KeyboardInterrupt"),
        ],
    )
    def test_whatever_goes_wrong_costs_only_its_own_exercise(self, grade, source, words):
        result = grade(sample_class.handed_in(SLUG, {"softmax": source}))
        assert scores(result) == {**POINTS, "softmax": 0}
        assert words in reason(result, "softmax")
        assert reason(result, "softmax").startswith("softmax: ")
        assert reason(result, "softmax").partition("\n")[0].count("softmax: ") == 1
        assert "ipython" not in reason(result, "softmax")

    def test_a_compiled_answer_is_graded_as_it_was_written(self, grade, master):
        compiled = f"@torch.compile(mode='max-autotune')\n{cell_of(master, 'softmax').source}"
        assert scores(grade(sample_class.handed_in(SLUG, {"softmax": compiled}))) == POINTS

    @pytest.mark.parametrize("order", [1, -1])
    def test_of_a_notebook_and_its_blank_copy_the_answers_count(self, grade, order):
        notebook = sample_class.handed_in(SLUG)
        both = [sample_class.blank(SLUG).cells, notebook.cells][::order]
        notebook.cells = [copy.deepcopy(cell) for cells in both for cell in cells]
        assert scores(grade(notebook)) == POINTS

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("%%writefile s.py", "its cell defines nothing below %%writefile: remove that line"),
            ("# note\n%%time", "%%time must be the first line of its cell, or go"),
        ],
    )
    def test_a_magic_that_keeps_an_answer_from_being_defined_is_named(
        self, grade, master, line, said
    ):
        text = f"{line}\n{cell_of(master, 'softmax').source}"
        result = grade(sample_class.handed_in(SLUG, {"softmax": text}))
        assert scores(result) == {**POINTS, "softmax": 0}
        assert said in reason(result, "softmax")

    @pytest.mark.parametrize(("version", "is_said"), [("3.99.4", True), ("x", False), (3, False)])
    def test_both_versions_of_python_stand_beside_an_error_of_syntax(
        self, grade, master, version, is_said
    ):
        text = cell_of(master, "softmax").source.replace("def softmax(", "def softmax[T](")
        notebook = sample_class.handed_in(SLUG, {"softmax": text + "\ndef ("})
        notebook.metadata.language_info["version"] = version
        said = reason(grade(notebook), "softmax")
        assert ("the notebook was run with Python 3.99; here it is Python" in said) == is_said

    def test_a_missing_cell_is_named(self, grade):
        notebook = sample_class.handed_in(SLUG)
        notebook.cells = [
            cell for cell in notebook.cells if cell is not cell_of(notebook, "softmax")
        ]
        result = grade(notebook)
        assert scores(result) == {**POINTS, "softmax": 0}
        expected = "softmax: it is not defined.\n  got       its cell is missing"
        assert reason(result, "softmax") == expected

    def test_prints_and_warnings_cost_nothing(self, grade, master):
        noisy = (
            "import sys, warnings\nprint('x' * 10**6)\nwarnings.warn('w')\nsys.stderr.write('e')\n"
        )
        right = cell_of(master, "softmax").source
        inside = right.replace("    shifted", "    print('y'); warnings.warn('z')\n    shifted")
        assert grade(sample_class.handed_in(SLUG, {"softmax": noisy + inside})).score == 5

    def test_a_reason_is_never_long(self, master, box, monkeypatch):
        failure = CheckFailed("the parameters are wrong", "x" * 9_000)
        monkeypatch.setattr(
            "autograder.grading.execution.execute.run_check", lambda *_, **__: failure
        )
        submission = parse(sample_class.handed_in(SLUG))
        graded, result = grade_submission(master, submission, box)
        assert 100 < len(reason(result, "softmax")) <= 4000
        assert len(json.dumps(graded)) < 100_000

    @pytest.mark.parametrize(
        "lie",
        [
            "answer._modified = lambda *_: ['x' * 99] * 400",
            "from autograder.inside import server\nasked = server.Server._ask\n"
            "server.Server._ask = lambda *a, **k: asked(*a, **k) | {'modified': {'x': 1}}",
        ],
        ids=["many", "no_list"],
    )
    def test_names_of_changed_inputs_are_few_and_count_whatever_they_are(self, grade, lie):
        lie = f"from autograder.inside import answer\n{lie}"
        notebook = sample_class.handed_in(SLUG)
        notebook.cells.insert(0, nbformat.v4.new_code_cell(lie))
        result = grade(notebook)
        assert "changes its inputs" in reason(result, "softmax")
        assert len(reason(result, "softmax")) < 1500

    def test_outputs_of_all_cells_together_are_bounded(self, grade, master, box):
        notebook = sample_class.handed_in(SLUG)
        loud = [nbformat.v4.new_code_cell("print('x' * 30_000)") for _ in range(60)]
        notebook.cells[1:1] = loud
        graded, result = grade_submission(master, parse(notebook), box)
        assert result.score == 5
        assert len(json.dumps(graded)) < 800_000
        assert "prints too much" in graded["cells"][60]["outputs"][0]["text"]

    def test_a_copy_of_a_check_above_its_answer_costs_nothing(self, grade):
        notebook = sample_class.handed_in(SLUG)
        notebook.cells.insert(0, copy.deepcopy(cell_of(notebook, "check_softmax")))
        assert scores(grade(notebook)) == POINTS

    def test_a_class_shares_a_seed_and_the_next_grading_has_another(self, grade):
        wrong = sample_class.handed_in(SLUG, {"softmax": WRONG})
        seeds = []
        for _ in range(3):
            execute._seed.cache_clear()  # as a new process begins
            pair = {reason(grade(wrong), "softmax").rpartition("seed")[2] for _ in range(2)}
            assert len(pair) == 1
            seeds += pair
        assert len(set(seeds)) > 1

    def test_after_a_death_the_earlier_cells_are_run_again(self, grade, master):
        right = cell_of(master, "weighted_average").source
        imported = right.replace("weights @ values", "torch.matmul(weights, values)")
        assert imported != right  # it needs the imports of the first cells
        answers = {"softmax": "import os; os._exit(0)", "weighted_average": imported}
        result = grade(sample_class.handed_in(SLUG, answers))
        assert scores(result)["weighted_average"] == 2

    def test_time_for_the_whole_notebook_is_bounded(self, master):
        notebook = sample_class.handed_in(SLUG)
        for _ in range(20):
            notebook.cells.insert(0, nbformat.v4.new_code_cell("while True: pass"))
        with Sandbox(SLUG, "auto", Limits(cell_seconds=1, notebook_seconds=2.5)) as box:
            result = grade_submission(master, parse(notebook), box)[1]
        assert result.score == 0
        assert result.complete
        assert "used up its time" in reason(result, "softmax")

    def test_the_outputs_of_checks_are_the_verdicts(self, master, box):
        notebook = sample_class.handed_in(SLUG, {"softmax": WRONG})
        graded, result = grade_submission(master, parse(notebook), box)
        graded = nbformat.from_dict(graded)
        (right,) = cell_of(graded, "check_uniform_average").outputs
        assert right.text == "uniform_average: correct.\n"
        (wrong,) = cell_of(graded, "check_softmax").outputs
        assert wrong.output_type == "error"
        assert wrong.traceback == reason(result, "softmax").splitlines()
        nbformat.validate(graded)


def test_a_result_is_the_same_once_written_and_read(grade):
    result = grade(sample_class.handed_in(SLUG))
    assert Result.from_dict(json.loads(json.dumps(result.as_dict()))) == result


def test_control_characters_never_reach_a_terminal():
    assert clean("a\x1b[2Jb\rc\nd\te\x9b\ud800") == "a[2Jbc\nd\te?"
    assert clean("a\u202egnp.\u2066b\u2069") == "agnp.b", "it would be read in another order"
