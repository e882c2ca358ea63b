"""Make submissions: notebooks as students hand them in, right, wrong or broken.

The demonstration, the tests and the benchmark of the grading all take their class from here.
"""

import ast
import copy
import inspect
import textwrap
from pathlib import Path

import nbformat

from autograder import ROOT, exercise


def solved(slug, root=ROOT):
    """The solved notebook of a lesson, without outputs."""
    notebook = nbformat.read(_path(root, "solutions", slug), as_version=4)
    return without_outputs(notebook)


def blank(slug, root=ROOT):
    """The notebook as it is released to students."""
    return nbformat.read(_path(root, "lessons", slug), as_version=4)


def without_outputs(notebook):
    """A copy of ``notebook`` with the outputs of its code cells removed."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def handed_in(slug, answers=None, root=ROOT):
    """The released notebook with solved exercises, except those whose cells ``answers`` gives.

    answers   exercise name → the text of its cell, or a stored answer of autograder/mistakes
    """
    notebook, given = blank(slug, root), answers or {}
    right = {_grade_id(cell): cell.source for cell in solved(slug, root).cells}
    unknown = given.keys() - right.keys()
    if unknown:
        raise KeyError(f"{slug} has no exercise {', '.join(sorted(unknown))}")
    for cell in notebook.cells:
        name = _grade_id(cell)
        if cell.metadata.get("nbgrader", {}).get("solution"):
            answer = given.get(name, right[name])
            cell.source = answer if isinstance(answer, str) else cell_of(answer)
    return notebook


def cell_of(answer):
    """The text of a stored answer as a student would have written it: imports and definition."""
    module = inspect.getmodule(answer.target)
    imports = [
        ast.unparse(node)
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not (getattr(node, "module", "") or "").startswith("autograder")
    ]
    definition = ast.parse(textwrap.dedent(inspect.getsource(answer.target))).body[0]
    definition.decorator_list = []
    definition.name = answer.exercise
    return "\n".join([*imports, "", ast.unparse(definition)])


def stored(slug, exercise_name, name):
    """The stored answer ``name`` to an exercise of the lesson ``slug``."""
    item = exercise.of_lesson(slug.partition("_")[2])[exercise_name]
    return next(known for known in exercise.stored_answers(item) if known.name == name)


def submit(notebook, course, student, slug):
    """Write ``notebook`` where nbgrader looks for the submission of ``student``."""
    path = Path(course) / "autograder" / "submitted" / student / slug / f"{slug}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def _path(root, kind, slug):
    return Path(root) / kind / slug / f"{slug}.ipynb"


def _grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")
