"""Put together the notebook that is graded: the master's cells, the student's answers.

From the submission come only the texts of cells. Where graded cells stand, what they say and what
they are worth comes from the master (the solved notebook); so deleting, copying, editing or
retyping a cell changes nothing but, at worst, the student's own answer.
"""

import hashlib

from autograder.grading.prose import prose_cell

RUN = "run"  # in cell.metadata.autograder: how the grader treats a cell
INSIDE, OUTSIDE, SKIP = "inside", "outside", "skip"


def assemble(master, submission):
    """The notebook to grade, from the ``master`` notebook and a Submission.

    Every code cell's ``metadata.autograder.run`` says 'inside' (a cell of the student's, or one
    given to all), 'outside' (a check) or 'skip' (an unchanged demonstration).
    """
    known = {_grade_id(cell) for cell in master["cells"] if _grade_id(cell)}
    answers, own = _sort(submission.cells, known)
    released = {digest(cell["source"]): cell for cell in master["cells"] if not _grade_id(cell)}
    cells = [_own_cell(cell, released) for cell in own.get("", ())]
    for cell in master["cells"]:
        name = _grade_id(cell)
        if name:
            cells.append(_known_cell(cell, answers))
            cells += [_own_cell(one, released) for one in own.get(name, ())]
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    about = {**master["metadata"].get("autograder", {}), "problem": submission.problem}
    metadata = {**master["metadata"], "autograder": about}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def exercise_of(cell):
    """Pair (name, points) of the exercise that a check cell grades."""
    nbgrader = cell["metadata"]["nbgrader"]
    return nbgrader["grade_id"].removeprefix("check_"), float(nbgrader["points"])


def digest(source):
    """A short name for a text, the same for the same text without outer blank lines."""
    return hashlib.sha256(source.strip().encode("utf-8", "replace")).hexdigest()[:16]


def _sort(cells, known):
    """Pair (answers by grade_id, the student's own cells by the graded cell they follow)."""
    answers, own, after = {}, {}, ""
    for cell in cells:
        if cell.grade_id in known and cell.grade_id not in answers and cell.kind == "code":
            answers[cell.grade_id] = cell.source
            after = cell.grade_id
        else:
            own.setdefault(after, []).append(cell)
    return answers, own


def _known_cell(master, answers):
    """A graded or locked cell: the master's, or for a solution the student's text in it."""
    nbgrader, name = master["metadata"]["nbgrader"], _grade_id(master)
    if master["cell_type"] != "code":
        return {**master, "metadata": {"nbgrader": {**nbgrader}}}
    made = _code_cell(master["source"])
    made["metadata"] = {"nbgrader": {**nbgrader}, "autograder": {RUN: INSIDE}}
    if nbgrader.get("grade"):
        made["metadata"]["autograder"][RUN] = OUTSIDE
        made["outputs"] = [error_output("NotGraded", ["This check has not been run."])]
    elif nbgrader.get("solution"):
        made["source"] = answers.get(name, "")
        made["metadata"]["autograder"]["missing"] = name not in answers
    return made


def _own_cell(cell, released):
    """A cell of the student's own: its text, and nothing else of it.

    Prose that is not the lesson's is shown as plain text.
    """
    original = released.get(digest(cell.source))
    if cell.kind != "code":
        if original is not None and original["cell_type"] == "markdown":
            return {**original}
        return prose_cell(cell.source)
    made = _code_cell(cell.source)
    demo = original is not None and original["metadata"].get("autograder", {}).get("demo")
    made["metadata"]["autograder"] = {RUN: SKIP if demo else INSIDE}
    return made


def _code_cell(source):
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def error_output(name, lines):
    """An output that nbgrader scores as 0 and shows as ``lines``."""
    return {"output_type": "error", "ename": name, "evalue": lines[0], "traceback": list(lines)}


def _grade_id(cell):
    nbgrader = cell["metadata"].get("nbgrader", {})
    marked = any(nbgrader.get(mark) for mark in ("grade", "solution", "locked"))
    return nbgrader.get("grade_id", "") if marked else ""
