"""Of a lesson's stored mistakes, the text that may be seen before the lesson is over."""

import ast

from autograder.building.excerpt import first_line
from autograder.building.lesson import Lesson
from autograder.building.source import parse, read_text
from autograder.checking.counterexamples import BREAK
from autograder.grading.classroom.sample_class import DEFINITION, used

NOTE = (
    '"""The stored mistakes of this lesson that its notebook shows, and inputs that break none."""'
)


def shown_mistakes(lesson: Lesson) -> str:
    """The module of the mistakes shown in the open and of wrong inputs, without all the others."""
    text = read_text(lesson.mistakes)
    shown = {cell.name for cell in lesson.cells if cell.kind == "broken"}
    body = parse(lesson.mistakes, text).body
    wanted = [node for node in body if _is_open(node, shown)]
    needed = {*wanted, *(other for node in wanted for other in used(node, body))}
    lines = text.split("\n")
    parts = [
        "\n".join(lines[first_line(node) - 1 : node.end_lineno]) for node in body if node in needed
    ]
    return "\n\n\n".join([NOTE, *parts]) + "\n"


def _is_open(node: ast.stmt, shown: set[str]) -> bool:
    """Whether this is a mistake that is shown, or a wrong input of a “break” exercise."""
    if not isinstance(node, DEFINITION):
        return False
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "mistake":
            return node.name in shown or ast.literal_eval(one.args[0]).startswith(BREAK)
    return False
