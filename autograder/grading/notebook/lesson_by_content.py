"""Whose lesson a notebook is, by what it holds: a lesson's cells, and its exercises' functions.

What a file is called may say anything, and what it says of itself may be left from a copy.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from autograder import cell_metadata
from autograder.grading.notebook.submission import Submission

FOREIGN = "this notebook has none of the lesson's cells or functions"


@dataclass(frozen=True)
class Known:
    """What a lesson's own notebook consists of, by name."""

    cells: frozenset[str]  # those that nbgrader knows
    functions: frozenset[str]  # what its exercises ask for

    @classmethod
    def of(cls, master: Mapping[str, Any]) -> Self:
        """That of the solved notebook."""
        known = [cell for cell in master["cells"] if cell_metadata.is_known(cell)]
        asked = {cell_metadata.exercise(cell) for cell in known if cell_metadata.is_solution(cell)}
        return cls(frozenset(cell_metadata.grade_id(cell) for cell in known), frozenset(asked))

    def cells_in(self, submission: Submission) -> int:
        """How many of the lesson's cells a submission has."""
        return len(self.cells.intersection(cell.grade_id for cell in submission.cells))

    def is_in(self, submission: Submission) -> bool:
        """Whether a submission has any of the lesson's cells or functions."""
        return bool(self.cells_in(submission) or self.functions & defined(submission))


class Contents:
    """What lessons consist of, read when it is first asked for.

    master  gives the solved notebook of a lesson
    """

    def __init__(self, slugs: Collection[str], master: Callable[[str], Mapping[str, Any]]) -> None:
        self._slugs = slugs
        self.of = functools.cache(lambda slug: Known.of(master(slug)))

    def lesson(self, submission: Submission, named: Iterable[str]) -> str:
        """The lesson that a submission is of, or ''.

        That is the one with most of its cells in it; among equals, and where there are functions
        alone, the first of those that are ``named``.
        """
        named = [slug for slug in named if slug in self._slugs]
        shared = {slug: self.of(slug).cells_in(submission) for slug in self._slugs}
        most = max(shared.values(), default=0)
        best = [slug for slug, count in shared.items() if count == most]
        if most and (len(best) == 1 or not set(named) & set(best)):
            return best[0] if len(best) == 1 else ""
        return next((slug for slug in named if self.of(slug).is_in(submission)), "")


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
    if submission.problem or Known.of(master).is_in(submission):
        return ""
    if not any(cell.source.strip() for cell in submission.cells):
        return "the notebook is empty"
    own = master["metadata"].get("autograder", {}).get("lesson")
    other = submission.lesson if submission.lesson != own else ""
    return f"{FOREIGN}{f': it says that it is of {other}' if other else ''}"
