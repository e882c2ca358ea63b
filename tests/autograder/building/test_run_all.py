"""A student skips an exercise and presses Run All: the cells below run all the same."""

import nbclient
import nbformat
import pytest

from tests.browser.lab import solve
from tests.waiting import LONG


@pytest.fixture
def skipped(built):
    """The small lesson with its second exercise solved and its first one skipped."""
    solve(built.lesson, built.solution, leave_blank={"doubled"})
    return built.lesson


@pytest.mark.long
def test_run_all_goes_on_below_a_skipped_exercise(skipped):
    notebook = nbformat.read(skipped, as_version=4)
    nbclient.NotebookClient(
        notebook,
        resources={"metadata": {"path": skipped.parent}},
        startup_timeout=LONG,
        iopub_timeout=LONG,
    ).execute()
    code = {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}
    assert [cell.execution_count for cell in code.values()] == list(range(1, len(code) + 1))
    assert code["check-doubled"].outputs[0].ename == "CheckFailed"
    assert code["check-Scale"].outputs[0].text == "Scale: correct.\n"


@pytest.mark.long
def test_validate_reports_the_skipped_exercise_and_no_other(skipped, nbgrader):
    said = nbgrader("validate", skipped)
    assert "VALIDATION FAILED ON 1 CELL(S)" in said
    assert "doubled: nothing here yet: write about 2 lines." in said
    assert "Scale" not in said
