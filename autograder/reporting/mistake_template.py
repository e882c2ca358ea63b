"""A student's wrong answer as the beginning of a stored mistake."""

import ast
import builtins
import itertools
import keyword
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from autograder import CourseError, cell_metadata, lessons
from autograder.grading.classroom.sample_class import DEFINITION, defines, used
from autograder.grading.notebook.result import clean
from autograder.reporting.student_answers import drop_docstrings

IMPORTS = ast.Import | ast.ImportFrom
# A lesson's solved cells hold up to 20,000 characters together, nested 14 levels deep.
LONGEST_NOTEBOOK, DEEPEST = 200_000, 100
READ = 50_000  # characters for IPython's syntax: in a cell of 1000, 50 lines
NOTE = """\
# Read it before you paste it into {into}:
# stored mistakes run without a sandbox. Then write the hint, give it a name that says what is
# wrong, and run autograder verify {number}
"""


class NoAnswer(CourseError):
    """The notebook holds no answer that could be stored; str() says why."""


def stub(
    notebook: Mapping[str, Any], slug: str, exercise: str, stored: str = "", into: str = ""
) -> str:
    """The text of a new stored mistake, from an assembled notebook of the lesson ``slug``.

    It holds the student's answer under a new name and the student's own definitions that it uses;
    what the notebook gave is imported. ``stored`` is the module that it will be pasted into, at
    ``into`` if not the course's: names that are taken there are changed. Nothing of it is run.
    Raises NoAnswer.
    """
    answer, needed, helpers = parts(notebook, exercise)
    lesson = lessons.name_of(slug)
    module = ast.parse(stored).body
    taken = {*dir(builtins), *keyword.kwlist, *(name for node in module for name in defines(node))}
    ending = "AsHandedIn" if isinstance(answer, ast.ClassDef) else "_as_handed_in"
    names = {exercise: _free(exercise + ending, taken)}
    for helper in helpers:
        for name in sorted(defines(helper)):
            names[name] = _free(name if name.startswith("_") else f"_{name}", taken)
    others = [node for node in needed if node not in helpers]
    lines = _imports(others, lesson, {ast.unparse(node) for node in module})
    if not stored:
        lines.insert(0, "from autograder.checking.toolbox.registry import mistake")
    for node in [*helpers, answer]:
        renamed = _Renamed(names).visit(node)
        if isinstance(renamed, DEFINITION):
            renamed.name = names[renamed.name]
        drop_docstrings(renamed)  # the lesson's own: they say what the right answer does
        mark = f'@mistake("{exercise}", hint="…")\n' if node is answer else ""
        lines.append("\n\n" + mark + ast.unparse(renamed))
    number, into = slug.partition("_")[0], into or f"autograder/mistakes/{lesson}.py"
    return printable(NOTE.format(into=into, number=number) + "\n".join(lines) + "\n")


def parts(
    notebook: Mapping[str, Any], exercise: str
) -> tuple[ast.FunctionDef | ast.ClassDef, list[ast.stmt], list[ast.stmt]]:
    """The answer to ``exercise`` in an assembled notebook, and the top statements that it needs.

    Third are those of the second that the student wrote, without imports. Raises NoAnswer.
    """
    given, own = _statements(notebook, exercise)
    named = [one for one in own if isinstance(one, DEFINITION) and one.name == exercise]
    if not named:
        raise NoAnswer(
            f"the notebook defines no function or class {exercise!r}: nothing to make a mistake of"
        )
    answer = named[-1]
    last = {name: node for node in [*given, *own] for name in defines(node)}
    available = [node for node in dict.fromkeys(last.values()) if node is not answer]
    needed = used(answer, available)
    students = set(own)
    helpers = [node for node in needed if node in students and not isinstance(node, IMPORTS)]
    return answer, needed, helpers


def _statements(
    notebook: Mapping[str, Any], exercise: str
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The top statements that ran before the exercise's check: those given, and the student's."""
    given, own, size = list[ast.stmt](), list[ast.stmt](), 0
    for cell in notebook["cells"]:
        if cell_metadata.is_check(cell) and cell_metadata.exercise(cell) == exercise:
            return given, own
        if cell_metadata.run(cell) == cell_metadata.INSIDE:
            locked = cell_metadata.is_known(cell) and not cell_metadata.is_solution(cell)
            size += 0 if locked else len(cell["source"])
            if size > LONGEST_NOTEBOOK:
                raise NoAnswer(
                    f"the student's own cells hold more than {LONGEST_NOTEBOOK:,} characters: too "
                    "long to make a mistake of"
                )
            (given if locked else own).extend(parsed(cell["source"]))
    raise NoAnswer(f"the lesson has no exercise {exercise!r}")


def parsed(source: str) -> list[ast.stmt]:
    """The statements of a cell, with IPython's own syntax; none of one that is no Python.

    Nor of one that is nested deeper, or holds more of IPython, than anybody writes.
    """
    for transform in (str, _Python().transform_cell):  # the second takes time, and few need it
        try:
            with warnings.catch_warnings(action="ignore"):  # of a student's text, to nobody
                tree = ast.parse(transform(source))
        except (SyntaxError, ValueError, RecursionError, MemoryError, TooMuch):
            continue
        return tree.body if _depth(tree) <= DEEPEST else []
    return []


class TooMuch(Exception):
    """A cell holds too many lines that only IPython reads."""


class _Python(TransformerManager):
    """Makes Python of a cell, which IPython reads anew for each line of its own: READ in all."""

    def do_token_transforms(self, lines: list[str]) -> list[str]:
        """``lines`` as Python; raises TooMuch."""
        for _ in range(READ // (1 + sum(map(len, lines)))):
            changed, lines = self.do_one_token_transform(lines)
            if not changed:
                return lines
        raise TooMuch


def _depth(tree: ast.AST) -> int:
    """How deep a tree is nested: what reads or writes it again calls itself as often."""
    level, depth = [tree], 0
    while level:
        level, depth = [part for node in level for part in ast.iter_child_nodes(node)], depth + 1
    return depth


def _free(name: str, taken: set[str]) -> str:
    """``name``, with a number where it is taken; taken from now on."""
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    found = next(one for one in names if one not in taken)
    taken.add(found)
    return found


def _imports(needed: Iterable[ast.stmt], lesson: str, there: Collection[str]) -> list[str]:
    """Lines that import what the answer uses and is not ``there`` yet."""
    lines = [
        ast.unparse(node)
        if isinstance(node, IMPORTS)
        else f"from attention.{lesson} import {', '.join(sorted(defines(node)))}"
        for node in needed
    ]
    return [line for line in dict.fromkeys(lines) if line not in there]


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


def printable(text: str) -> str:
    """``text`` without what a terminal would obey or hide, such as marks of direction."""
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in clean(text))


def _bound(node: ast.AST) -> str:
    """The name that this part of a text gives to a thing of its own, or ''."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    return node.arg if isinstance(node, ast.arg) else ""
