"""The same notebook, asked in four ways: the first line about each exercise is the same.

The ways: its cells run in a kernel, nbgrader's Validate, `autograder check`, the grading (whose
reasons are those of the feedback page and of the report).
"""

import copy

import nbclient
import nbformat
import pytest
from nbgrader.validator import Validator
from traitlets.config import Config

from autograder import cell_metadata, validation
from autograder.grading.classroom import sample_class
from autograder.grading.notebook.submission import parse
from autograder.inside.limits import Limits
from autograder.sandbox.sandbox import Sandbox
from autograder.self_study.check import check_notebook
from tests.autograder.one import grade_submission

pytestmark = pytest.mark.serial
SLUG = "06_masked_attention"


def cell_of(notebook, name):
    return next(cell for cell in notebook.cells if cell_metadata.grade_id(cell) == name)


def stub(notebook, name):
    cell_of(notebook, name).source = cell_of(sample_class.blank(SLUG), name).source


def wrong_syntax(notebook, name):
    cell_of(notebook, name).source += "\n    return (0"


def stops(notebook, name):
    cell_of(notebook, name).source = "import no_such_module\n" + cell_of(notebook, name).source


def deleted(notebook, name):
    notebook.cells.remove(cell_of(notebook, name))


def turned_into_markdown(notebook, name):
    answer = cell_of(notebook, name)
    text = nbformat.v4.new_markdown_cell(answer.source, metadata=answer.metadata)
    notebook.cells[notebook.cells.index(answer)] = text


def twice_the_second_wrong(notebook, name):
    one = copy.deepcopy(cell_of(notebook, name))
    one.id, one.source = "copy", f"def {name}(*arguments, **named):\n    return 1"
    notebook.cells.insert(notebook.cells.index(cell_of(notebook, name)) + 1, one)


def below_its_check(notebook, name):
    answer, check = cell_of(notebook, name), cell_of(notebook, f"check_{name}")
    notebook.cells.remove(answer)
    notebook.cells.insert(notebook.cells.index(check) + 1, answer)


def renamed(notebook, name):
    cell_of(notebook, name).source = cell_of(notebook, name).source.replace(name, "mine")


def imported(notebook, name):
    cell_of(notebook, name).source = f"from math import isnan as {name}"


def in_a_cell_of_its_own(notebook, name):
    one = nbformat.v4.new_code_cell(cell_of(notebook, name).source)
    stub(notebook, name)
    notebook.cells.insert(notebook.cells.index(cell_of(notebook, name)) + 1, one)


STATES = {
    "padding_mask": (stub, "padding_mask: nothing here yet: write about"),
    "causal_mask": (wrong_syntax, "causal_mask: it is not defined."),
    "local_mask": (stops, "local_mask: it is not defined."),
    "longformer_mask": (deleted, "longformer_mask: it is not defined."),
    "bigbird_mask": (twice_the_second_wrong, "bigbird_mask: "),
    "combine_masks": (renamed, "combine_masks: it is not defined."),
    "masked_attention": (in_a_cell_of_its_own, ""),
    "leaks": (imported, "leaks: this answer was not written in the notebook."),
    "sliding_window_attention": (below_its_check, ""),  # graded in its place
}

# Where cells run one after the other, an answer below its check is not there yet.
BELOW = {"sliding_window_attention": "sliding_window_attention: it is not defined."}


@pytest.fixture(scope="module")
def notebook():
    made = sample_class.solved(SLUG)
    for name, (change, _) in STATES.items():
        change(made, name)
    made.cells = [cell for cell in made.cells if not cell_metadata.is_demo(cell)]
    return made


@pytest.fixture(scope="module")
def graded(notebook):
    with Sandbox(SLUG, "auto", Limits()) as box:
        result = grade_submission(sample_class.solved(SLUG), parse(copy.deepcopy(notebook)), box)[1]
    return {one.name: one.reason for one in result.exercises}


def first_lines(told):
    return {name: told.get(name, "").split("\n")[0] for name in STATES}


def test_what_is_said_is_true_of_each_state(graded):
    for name, (_, begins) in STATES.items():
        assert graded[name].startswith(begins) and (begins or not graded[name]), graded[name]
    assert "SyntaxError: '(' was never closed" in graded["causal_mask"]
    assert "its cell stops with ModuleNotFoundError" in graded["local_mask"]
    assert "its cell is missing" in graded["longformer_mask"]


def test_autograder_check_says_what_the_grading_says(notebook, graded, tmp_path):
    path = tmp_path / f"{SLUG}.ipynb"
    nbformat.write(notebook, path)
    said = {line.name: line.message for line in check_notebook(path)}
    assert first_lines(said) == first_lines(graded)
    for name in ("causal_mask", "local_mask", "longformer_mask", "combine_masks"):
        assert said[name] == graded[name]


def test_a_kernel_says_what_the_grading_says(notebook, graded, tmp_path):
    ran = copy.deepcopy(notebook)
    nbclient.NotebookClient(ran, timeout=None, allow_errors=True).execute(cwd=str(tmp_path))
    assert first_lines(_checks_of(ran)) == first_lines(graded | BELOW)


@pytest.mark.long
def test_validate_says_what_the_grading_says(notebook, graded, tmp_path):
    path = tmp_path / f"{SLUG}.ipynb"
    nbformat.write(notebook, path)
    c = Config()
    validation.configure(c)
    failed = Validator(config=c).validate(str(path))["failed"]
    said = {one["raw_error"].split(":")[0]: one["raw_error"] for one in failed}
    assert first_lines(said) == first_lines(graded)


def test_a_retyped_cell_is_told(tmp_path):
    made = sample_class.solved(SLUG)
    turned_into_markdown(made, "leaks")
    path = tmp_path / f"{SLUG}.ipynb"
    nbformat.write(made, path)
    c = Config()
    validation.configure(c)
    assert len(Validator(config=c).validate(str(path))["type_changed"]) == 1
    said = {line.name: line.message for line in check_notebook(path)}
    assert "its cell is not a code cell: select it and press Y" in said["leaks"]


def _checks_of(ran):
    """{exercise: what its check says in a notebook that was run}; '' where it is right."""
    said = {}
    for cell in ran.cells:
        if cell_metadata.is_check(cell):
            errors = [
                "\n".join(one.traceback) for one in cell.outputs if one.output_type == "error"
            ]
            said[cell_metadata.exercise(cell)] = errors[0] if errors else ""
    return said
