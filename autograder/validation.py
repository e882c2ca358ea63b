"""How `nbgrader validate` and the Validate button run a notebook, here and in a release."""

from collections.abc import MutableMapping
from typing import Any

from nbformat import NotebookNode
from nbgrader import preprocessors as steps
from nbgrader.validator import Validator
from traitlets.config import Config

from autograder import cell_metadata


class KeepFirst(steps.NbGraderPreprocessor):
    """Let a cell count once, as the grading does, where JupyterLab's Duplicate made a second one.

    Of two cells with one grade_id the one with less of an answer becomes a cell of the student's
    own, which runs like any other, or else the second; of two checks it is the one above the
    answer. nbgrader itself would stop here.
    """

    def preprocess(
        self, nb: NotebookNode, resources: MutableMapping[str, Any]
    ) -> tuple[NotebookNode, MutableMapping[str, Any]]:
        """Take nbgrader's metadata from the copies."""
        names = [cell_metadata.grade_id(cell) for cell in nb.cells]
        dropped = cell_metadata.blank_copies(names, [cell.source for cell in nb.cells])
        kept = ["" if place in dropped else name for place, name in enumerate(names)]
        dropped, seen = dropped | cell_metadata.early_checks(kept), set[str]()
        for place, (name, cell) in enumerate(zip(names, nb.cells, strict=True)):
            if name and (name in seen or place in dropped):
                del cell.metadata["nbgrader"]
            elif name:
                seen.add(name)
        return nb, resources


def configure(c: Config) -> None:
    """Set up validation in nbgrader's configuration ``c``."""
    # It waits where the machine has much else to do: 30 s and 4 s are nbgrader's own.
    c.Execute.timeout = c.Execute.iopub_timeout = 300  # for a cell, and for what it prints
    c.Execute.startup_timeout = 600
    Validator.preprocessors.tag(config=True)  # as the steps of nbgrader's other commands are
    usual = [steps.CheckCellMetadata, steps.ClearOutput, steps.Execute]
    c.Validator.preprocessors = [KeepFirst, *usual]
