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


def cell_of(notebook, name):
    return next(cell for cell in notebook.cells if cell_metadata.grade_id(cell) == name)


def stub(notebook, name):
    slug = next(slug for slug, states in STATES.items() if name in states)
    cell_of(notebook, name).source = cell_of(sample_class.blank(slug), name).source


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
    "06_masked_attention": {
        "packed_mask": (stub, "packed_mask: nothing here yet: write about"),
        "companions_that_matter": (wrong_syntax, "companions_that_matter: it is not defined."),
        "break_leaks": (stops, "break_leaks: it is not defined."),
        "longformer_mask": (deleted, "longformer_mask: it is not defined."),
        "masked_attention": (in_a_cell_of_its_own, ""),
        "leaks": (imported, "leaks: this answer was not written in the notebook."),
        "sliding_window_attention": (below_its_check, ""),  # graded in its place
    },
    "04_score_functions": {
        "as_bilinear": (twice_the_second_wrong, "as_bilinear: "),
        "gaussian_scores": (renamed, "gaussian_scores: it is not defined."),
    },
}

# Where cells run one after the other, an answer below its check is not there yet.
BELOW = {"sliding_window_attention": "sliding_window_attention: it is not defined."}


@pytest.fixture(scope="module", params=STATES)
def slug(request):
    return request.param


@pytest.fixture(scope="module")
def notebook(slug):
    made = sample_class.solved(slug)
    for name, (change, _) in STATES[slug].items():
        change(made, name)
    made.cells = [cell for cell in made.cells if not cell_metadata.is_demo(cell)]
    return made


@pytest.fixture(scope="module")
def graded(slug, notebook):
    with Sandbox(slug, "auto", Limits()) as box:
        result = grade_submission(sample_class.solved(slug), parse(copy.deepcopy(notebook)), box)[1]
    return {one.name: one.reason for one in result.exercises}


def first_lines(told, slug):
    return {name: told.get(name, "").split("\n")[0] for name in STATES[slug]}


def test_what_is_said_is_true_of_each_state(slug, graded):
    for name, (_, begins) in STATES[slug].items():
        assert graded[name].startswith(begins) and (begins or not graded[name]), graded[name]
    if slug.startswith("06"):
        assert "SyntaxError: '(' was never closed" in graded["companions_that_matter"]
        assert "its cell stops with ModuleNotFoundError" in graded["break_leaks"]
        assert "its cell is missing" in graded["longformer_mask"]


def test_autograder_check_says_what_the_grading_says(slug, notebook, graded, tmp_path):
    path = tmp_path / f"{slug}.ipynb"
    nbformat.write(notebook, path)
    said = {line.name: line.message for line in check_notebook(path)}
    assert first_lines(said, slug) == first_lines(graded, slug)
    for name in said.keys() & {"companions_that_matter", "break_leaks", "longformer_mask"}:
        assert said[name] == graded[name]


def test_a_kernel_says_what_the_grading_says(slug, notebook, graded, tmp_path):
    ran = copy.deepcopy(notebook)
    nbclient.NotebookClient(ran, timeout=None, allow_errors=True).execute(cwd=str(tmp_path))
    assert first_lines(_checks_of(ran), slug) == first_lines(graded | BELOW, slug)


@pytest.mark.long
def test_validate_says_what_the_grading_says(slug, notebook, graded, tmp_path):
    path = tmp_path / f"{slug}.ipynb"
    nbformat.write(notebook, path)
    c = Config()
    validation.configure(c)
    failed = Validator(config=c).validate(str(path))["failed"]
    said = {one["raw_error"].split(":")[0]: one["raw_error"] for one in failed}
    assert first_lines(said, slug) == first_lines(graded, slug)


def test_a_retyped_cell_is_told(tmp_path):
    made = sample_class.solved("06_masked_attention")
    turned_into_markdown(made, "leaks")
    path = tmp_path / "06_masked_attention.ipynb"
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
