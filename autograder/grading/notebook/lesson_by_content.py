"""Whether a notebook is of a lesson, by what it holds: its cells, or its exercises' functions."""

from collections.abc import Iterable, Mapping
from typing import Any

from autograder import cell_metadata
from autograder.grading.notebook.submission import Submission

FOREIGN = "this notebook has none of the lesson's cells or functions"


def is_of(submission: Submission, master: Mapping[str, Any]) -> bool:
    """Whether a submission has any cell or function of the lesson with the solved notebook."""
    known = [cell for cell in master["cells"] if cell_metadata.is_known(cell)]
    cells = {cell_metadata.grade_id(cell) for cell in known}
    asked = {cell_metadata.exercise(cell) for cell in known if cell_metadata.is_solution(cell)}
    return bool(asked & defined(submission)) or any(
        cell.grade_id in cells for cell in submission.cells
    )


def defined(submission: Submission) -> set[str]:
    """The names of all functions and classes that a submission's code defines."""
    code = (cell.source for cell in submission.cells if cell.kind == "code")
    return {name for source in code for name in cell_metadata.DEFINED.findall(source)}


def below(name: str, cells: Iterable[Mapping[str, Any]]) -> str:
    """What is said of an answer that stands in one of the ``cells`` below its check, or ''."""
    found = (cell["source"] for cell in cells if cell["cell_type"] == "code")
    if any(name in cell_metadata.DEFINED.findall(source) for source in found):
        return "a definition below the check: cells are run from top to bottom, so move it up"
    return ""


def foreign(submission: Submission, master: Mapping[str, Any]) -> str:
    """Why a submission is no notebook of the lesson, a sentence for its author, or ''."""
    if submission.problem or is_of(submission, master):
        return ""
    if not any(cell.source.strip() for cell in submission.cells):
        return "the notebook is empty"
    own = master["metadata"].get("autograder", {}).get("lesson")
    other = submission.lesson if submission.lesson != own else ""
    return f"{FOREIGN}{f': it says that it is of {other}' if other else ''}"
