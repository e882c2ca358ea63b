"""A student's wrong answer as the beginning of a stored mistake."""

import ast
import builtins
import keyword
from collections.abc import Iterable, Mapping
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from autograder import CourseError, lessons, marks
from autograder.grading.classroom.sample_class import DEFINITION, defines, used
from autograder.grading.notebook.result import clean

IMPORTS = ast.Import | ast.ImportFrom
NOTE = """\
# Read it before you paste it into autograder/mistakes/{lesson}.py: stored mistakes run without a
# sandbox. Then write the hint, give it a name that says what is wrong, and run
# autograder verify {number}
"""


class NoAnswer(CourseError):
    """The notebook holds no answer that could be stored; str() says why."""


def stub(notebook: Mapping[str, Any], slug: str, exercise: str, stored: str = "") -> str:
    """The text of a new stored mistake, from an assembled notebook of the lesson ``slug``.

    It holds the student's answer under a new name and the student's own definitions that it uses;
    what the notebook gave is imported. ``stored`` is the module that it will be pasted into: names
    that are taken there are changed. Nothing of it is run. Raises NoAnswer.
    """
    given, own = _statements(notebook, exercise)
    answer = next((node for node in reversed(own) if _is_definition_of(node, exercise)), None)
    if answer is None:
        raise NoAnswer(
            f"the notebook defines no function or class {exercise!r}: nothing to make a mistake of"
        )
    lesson = lessons.name_of(slug)
    last = {name: node for node in [*given, *own] for name in defines(node)}
    available = [node for node in dict.fromkeys(last.values()) if node is not answer]
    needed = used(answer, available)
    taken = _taken(stored)
    new_name = _free(_name(answer), taken)
    names = {exercise: new_name}
    helpers = [node for node in needed if node in own and not isinstance(node, IMPORTS)]
    for helper in helpers:
        for name in sorted(defines(helper)):
            names[name] = _free(name if name.startswith("_") else f"_{name}", taken)
    lines = _imports(needed, helpers, lesson, stored)
    for node in [*helpers, answer]:
        renamed = _Renamed(names).visit(node)
        if isinstance(renamed, DEFINITION):
            renamed.name = names[renamed.name]
        _without_docstrings(renamed)
        mark = f'@mistake("{exercise}", hint="…")\n' if node is answer else ""
        lines.append("\n\n" + mark + ast.unparse(renamed))
    number = slug.partition("_")[0]
    return _printable(NOTE.format(lesson=lesson, number=number) + "\n".join(lines) + "\n")


def _statements(
    notebook: Mapping[str, Any], exercise: str
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The top statements that ran before the exercise's check: those given, and the student's."""
    given: list[ast.stmt] = []
    own: list[ast.stmt] = []
    for cell in notebook["cells"]:
        if marks.is_check(cell) and marks.exercise(cell) == exercise:
            return given, own
        if marks.run(cell) == marks.INSIDE:
            locked = marks.is_known(cell) and not marks.is_solution(cell)
            (given if locked else own).extend(_parsed(cell["source"]))
    raise NoAnswer(f"the lesson has no exercise {exercise!r}")


def _parsed(source: str) -> list[ast.stmt]:
    """The statements of a cell, with IPython's own syntax; none of one that is no Python."""
    try:
        return ast.parse(TransformerManager().transform_cell(source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _is_definition_of(node: ast.stmt, name: str) -> bool:
    return isinstance(node, DEFINITION) and node.name == name


def _name(answer: Any) -> str:
    plain = f"{answer.name}AsHandedIn"
    return plain if isinstance(answer, ast.ClassDef) else f"{answer.name}_as_handed_in"


def _taken(stored: str) -> set[str]:
    """Names that a module of stored answers defines or imports, and Python's own."""
    names = {name for node in ast.parse(stored).body for name in defines(node)}
    return names | set(dir(builtins)) | set(keyword.kwlist)


def _free(name: str, taken: set[str]) -> str:
    """``name``, with a number where it is taken; taken from now on."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def _imports(
    needed: Iterable[ast.stmt], helpers: list[ast.stmt], lesson: str, stored: str
) -> list[str]:
    """Lines that import what the answer uses and the module does not import yet."""
    there = {ast.unparse(node) for node in ast.parse(stored).body if isinstance(node, IMPORTS)}
    found = ["from autograder.checking.toolbox.registry import mistake"] if not stored else []
    for node in needed:
        if node in helpers:
            continue
        if isinstance(node, IMPORTS):
            line = ast.unparse(node)
        else:
            line = f"from attention.{lesson} import {', '.join(sorted(defines(node)))}"
        if line not in there and line not in found:
            found.append(line)
    return found


class _Renamed(ast.NodeTransformer):
    """Gives global names other names, save in functions that have their own of that name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802
        outer, self._names = self._names, dict(self._names)
        for part in ast.walk(node):
            if part is not node:
                self._names.pop(_bound(part), None)
        self.generic_visit(node)
        self._names = outer
        return node


def _bound(node: ast.AST) -> str:
    """The name that this part of a function makes the function's own, or ''."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.FunctionDef):
        return node.name
    return node.arg if isinstance(node, ast.arg) else ""


def _without_docstrings(tree: ast.AST) -> None:
    """Leave out the lesson's own docstrings: they say what the right answer does."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITION) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]


def _printable(text: str) -> str:
    """``text`` without what a terminal would obey or hide, such as marks of direction."""
    kept = (one if one.isprintable() or one == "\n" else "?" for one in clean(text))
    return "".join(kept)
