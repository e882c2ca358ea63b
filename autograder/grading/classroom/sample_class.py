"""Make submissions: notebooks as students hand them in, right, wrong or broken.

The demonstration, the tests and the benchmark of the grading all take their class from here.
"""

import ast
import copy
import functools
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import ROOT, cell_metadata, lessons
from autograder.checking.toolbox import registry
from autograder.settings import COURSE

DEFINITION = ast.FunctionDef | ast.ClassDef


def solved(slug: str) -> NotebookNode:
    """The solved notebook of a lesson, without outputs."""
    notebook = copy.deepcopy(_read("solutions", slug))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def blank(slug: str) -> NotebookNode:
    """The notebook as it is released to students."""
    return copy.deepcopy(_read("lessons", slug))


@functools.lru_cache(maxsize=64)
def _read(kind: str, slug: str) -> NotebookNode:
    """To be copied before anything in it is changed."""
    return nbformat.read(lessons.notebook(ROOT, kind, slug), as_version=4)


def handed_in(
    slug: str, answers: Mapping[str, str | registry.Answer] | None = None
) -> NotebookNode:
    """The released notebook with solved exercises, except those whose cells ``answers`` gives.

    answers   exercise name → the text of its cell, or a stored answer of autograder/mistakes
    """
    notebook, given = blank(slug), answers or {}
    right = {cell_metadata.grade_id(cell): cell.source for cell in solved(slug).cells}
    unknown = given.keys() - right.keys()
    if unknown:
        raise KeyError(f"{slug} has no exercise {', '.join(sorted(unknown))}")
    for cell in notebook.cells:
        if cell_metadata.is_solution(cell):
            name = cell_metadata.exercise(cell)
            answer = given.get(name, right[name])
            cell.source = answer if isinstance(answer, str) else cell_of(answer)
    return notebook


def wrong(exercise: str) -> registry.Answer:
    """The first stored mistake of an exercise that earns nothing: none of its stages either."""
    stored = registry.mistakes(registry.find(exercise))
    return next(one for one in stored if not one.earns)


@functools.lru_cache(maxsize=2000)
def cell_of(answer: registry.Answer) -> str:
    """The text of a stored answer as a student would have written it, with all that it uses.

    What it imports from the lesson's own module is given in the notebook.
    """
    if answer.text:
        return answer.text
    module = ast.parse(inspect.getsource(importlib.import_module(answer.target.__module__)))
    stored_in = answer.target.__module__.rpartition(".")[2]
    given = f"{COURSE.library}.{stored_in}"
    module.body = [node for node in module.body if getattr(node, "module", None) != given]
    for node in module.body:
        if hasattr(node, "decorator_list"):
            node.decorator_list = [one for one in node.decorator_list if not _registers(one)]
    name = answer.target.__name__
    definitions = [node for node in module.body if isinstance(node, DEFINITION)]
    definition = next(node for node in definitions if node.name == name)
    module.body.remove(definition)
    helpers = used(definition, module.body)
    definition.name = answer.exercise
    for part in ast.walk(definition):  # one that calls itself does so by its new name
        if isinstance(part, ast.Name) and part.id == name:
            part.id = answer.exercise
    return "\n".join(ast.unparse(node) for node in [*helpers, definition])


def used(definition: ast.stmt, body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a module that ``definition`` needs: imports, constants, helpers."""
    by_name: dict[str, list[ast.stmt]] = {}
    for node in body:
        for name in defines(node):
            by_name.setdefault(name, []).append(node)
    found, waiting = set[ast.stmt](), [definition]
    while waiting:  # a helper may need another one
        parts = ast.walk(waiting.pop())
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        new = {node for name in names for node in by_name.get(name, ())} - found
        found |= new
        waiting += new
    return [node for node in body if node in found]


def _registers(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in ("mistake", "alternative", "careless")


def defines(node: ast.stmt) -> set[str]:
    """The names that a top statement defines: of a function, a class, imports, constants."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, DEFINITION):
        return {node.name}
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    parts = [part for target in targets if target for part in ast.walk(target)]
    return {one.id for one in parts if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def submit(notebook: NotebookNode, course: Path, student: str, slug: str) -> Path:
    """Write ``notebook`` where nbgrader looks for the submission of ``student``."""
    path = lessons.notebook(course, f"class/submitted/{student}", slug)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path
