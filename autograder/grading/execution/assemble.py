"""Put together the notebook that is graded: the master's cells, the student's answers.

From the submission come only the texts of cells. Where graded cells stand, what they say and what
they are worth comes from the master (the solved notebook); so deleting, copying, editing or
retyping a cell changes nothing but, at worst, the student's own answer.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from autograder import cell_metadata
from autograder.grading.notebook.student_text import prose_cell
from autograder.grading.notebook.submission import Cell, Submission, foreign

HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def assemble(master: dict[str, Any], submission: Submission) -> dict[str, Any]:
    """The notebook to grade, from the ``master`` notebook and a Submission.

    ``cell_metadata.run`` says of each code cell whether it runs INSIDE (a cell of the student's, or
    one given to all) or OUTSIDE (a check), or is one to SKIP (an unchanged demonstration).
    """
    known = {_grade_id(cell) for cell in master["cells"] if _grade_id(cell)}
    answers, own = _sort(submission.cells, known)
    released = {digest(cell["source"]): cell for cell in master["cells"] if not _grade_id(cell)}
    cells = [_own_cell(cell, released) for cell in own.get("", ())]
    titles = _titles(master["cells"])
    kinds = [(cell.grade_id, cell.kind) for cell in submission.cells]
    for cell in master["cells"]:
        name = _grade_id(cell)
        if name:
            missing = "" if name in answers else cell_metadata.why_missing(name, kinds)
            cells.append(_known_cell(cell, answers.get(name, ""), missing, titles.get(name, "")))
            cells += [_own_cell(one, released) for one in own.get(name, ())]
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    problem = submission.problem or foreign(submission, master)
    about = {
        **master["metadata"].get("autograder", {}),
        "problem": problem,
        "python": submission.python,
    }
    metadata = {**master["metadata"], "autograder": about}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def digest(source: str) -> str:
    """A short name for a text, the same for the same text without outer blank lines."""
    return hashlib.sha256(source.strip().encode("utf-8", "replace")).hexdigest()[:16]


def _sort(cells: list[Cell], known: set[str]) -> tuple[dict[str, str], dict[str, list[Cell]]]:
    """Pair (answers by grade_id, the student's own cells by the graded cell they follow)."""
    answers: dict[str, str] = {}
    own: dict[str, list[Cell]] = {}
    names = [one.grade_id if one.kind == "code" and one.grade_id in known else "" for one in cells]
    blank = cell_metadata.blank_copies(names, [one.source for one in cells])
    names = [name for place, name in enumerate(names) if place not in blank]
    cells = [cell for place, cell in enumerate(cells) if place not in blank]
    # A check above its answer says nothing of where the cells below it belong.
    early = cell_metadata.early_checks(names)
    after = ""
    for place, (name, cell) in enumerate(zip(names, cells, strict=True)):
        if name and name not in answers and place not in early:
            answers[name], after = cell.source, name
        else:
            own.setdefault(after, []).append(cell)
    return answers, own


def _titles(cells: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The last heading before each check and after the one before, by the check's grade_id."""
    titles, heading = {}, ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            heading = [heading, *HEADING.findall(cell["source"])][-1]
        elif cell_metadata.is_check(cell):
            titles[_grade_id(cell)], heading = heading, ""
    return titles


def _known_cell(master: dict[str, Any], answer: str, missing: str, title: str) -> dict[str, Any]:
    """A graded or locked cell: the master's, or for a solution the student's text in it.

    missing  why there is none, or ''
    """
    nbgrader = {"nbgrader": {**master["metadata"]["nbgrader"]}}
    if master["cell_type"] != "code":
        return {**master, "metadata": nbgrader}
    if cell_metadata.is_check(master):
        made = _code_cell(
            master["source"], nbgrader | cell_metadata.to_run(cell_metadata.OUTSIDE, title=title)
        )
        made["outputs"] = [error_output("NotGraded", ["This check has not been run."])]
        return made
    if cell_metadata.is_solution(master):
        how = cell_metadata.to_run(cell_metadata.INSIDE, missing=missing)
        return _code_cell(answer, nbgrader | how)
    return _code_cell(master["source"], nbgrader | cell_metadata.to_run(cell_metadata.INSIDE))


def _own_cell(cell: Cell, released: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A cell of the student's own: its text, and nothing else of it.

    Prose that is not the lesson's is shown as plain text.
    """
    original = released.get(digest(cell.source))
    if cell.kind != "code":
        if original is not None and original["cell_type"] == "markdown":
            return {**original}
        return prose_cell(cell.source)
    demo = original is not None and cell_metadata.is_demo(original)
    return _code_cell(
        cell.source, cell_metadata.to_run(cell_metadata.SKIP if demo else cell_metadata.INSIDE)
    )


def _code_cell(source: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": [],
        "source": source,
    }


def error_output(name: str, lines: Sequence[str]) -> dict[str, Any]:
    """An output that nbgrader scores as 0 and shows as ``lines``."""
    return {"output_type": "error", "ename": name, "evalue": lines[0], "traceback": list(lines)}


def _grade_id(cell: dict[str, Any]) -> str:
    return cell_metadata.grade_id(cell) if cell_metadata.is_known(cell) else ""
