"""What the Validate button does with cells that JupyterLab's Duplicate made twice."""

import copy

from autograder import cell_metadata
from autograder.grading.classroom import sample_class
from autograder.validation import KeepFirst

SLUG = "00_getting_started"


def notebook_with_copies(*names):
    """The solved lesson with a copy of each of these cells behind it."""
    notebook, cells = sample_class.solved(SLUG), []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.metadata.get("nbgrader", {}).get("grade_id") in names:
            cells.append(copy.deepcopy(cell))
            cells[-1].id = "a-copy"
    notebook.cells = cells
    return notebook


def grade_ids(notebook):
    found = (cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells)
    return [name for name in found if name]


def test_a_second_answer_and_a_second_check_are_cells_of_the_student_s_own():
    notebook = notebook_with_copies("softmax", "check_softmax")
    count = len(notebook.cells)
    kept, _ = KeepFirst().preprocess(notebook, {})
    assert grade_ids(kept) == grade_ids(sample_class.solved(SLUG))
    assert len(kept.cells) == count and all(
        "nbgrader" not in c.metadata for c in kept.cells if c.id == "a-copy"
    )


def test_a_blank_answer_above_the_written_one_is_the_one_that_goes():
    notebook = notebook_with_copies("softmax")
    (written,) = (cell for cell in notebook.cells if cell.id == "a-copy")
    place = notebook.cells.index(written) - 1
    stubs = {cell_metadata.grade_id(cell): cell for cell in sample_class.blank(SLUG).cells}
    notebook.cells[place].source = stubs["softmax"].source
    kept, _ = KeepFirst().preprocess(notebook, {})
    assert "nbgrader" in written.metadata and "nbgrader" not in kept.cells[place].metadata


def test_a_check_above_its_answer_is_the_one_that_goes():
    notebook = sample_class.solved(SLUG)
    (check,) = (
        c
        for c in notebook.cells
        if c.metadata.get("nbgrader", {}).get("grade_id") == "check_softmax"
    )
    early = copy.deepcopy(check)
    early.id = "early"
    notebook.cells.insert(0, early)
    kept, _ = KeepFirst().preprocess(notebook, {})
    assert "nbgrader" not in kept.cells[0].metadata and "nbgrader" in check.metadata
