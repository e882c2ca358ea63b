"""Of a lesson's stored mistakes, the text that may be seen before the lesson is over."""

import ast

from autograder.building.lesson import Lesson
from autograder.building.source import parse, read_text
from autograder.checking.counterexamples import BREAK

NOTE = (
    '"""The stored mistakes of this lesson that its notebook shows, and inputs that break none."""'
)


def shown_mistakes(lesson: Lesson) -> str:
    """The module of the mistakes shown in the open and of wrong inputs, without all the others."""
    text = read_text(lesson.mistakes)
    shown = {cell.name for cell in lesson.cells if cell.kind == "broken"}
    tree = parse(lesson.mistakes, text)
    wanted = [node for node in tree.body if _is_open(node, shown)]
    needed = _needed(wanted, tree.body)
    lines = text.split("\n")
    parts = ["\n".join(lines[_first(node) - 1 : node.end_lineno]) for node in needed]
    return "\n\n\n".join([NOTE, *parts]) + "\n"


def _is_open(node: ast.stmt, shown: set[str]) -> bool:
    """Whether this is a mistake that is shown, or a wrong input of a “break” exercise."""
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return False
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "mistake":
            return node.name in shown or ast.literal_eval(one.args[0]).startswith(BREAK)
    return False


def _needed(wanted: list[ast.stmt], body: list[ast.stmt]) -> list[ast.stmt]:
    """These statements and those that bind names which they use, in the module's order."""
    bound = {name: node for node in body for name in _binds(node)}
    found, waiting = list[ast.stmt](), list(wanted)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.append(node)
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            waiting += [bound[name] for name in names & bound.keys()]
    return [node for node in body if node in found]


def _binds(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(one.asname or one.name).partition(".")[0] for one in node.names]
    if isinstance(node, ast.Assign):
        walked = [one for target in node.targets for one in ast.walk(target)]
        return [one.id for one in walked if isinstance(one, ast.Name)]
    return []


def _first(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])
