"""What students wrote, read back from their graded notebooks."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from typing import Any

from autograder import cell_metadata
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook import records
from autograder.grading.notebook.result import clean

SHOWN_LINES = 15
SHORTEST_NAME = 3  # a shorter name stands in many words by chance

Texts = dict[str, dict[str, str]]  # student → exercise → the text of its cell


def texts(course: Course, rows: Iterable[dict[str, Any]]) -> Texts:
    """The text of every exercise's cell, of all ``rows`` of one lesson whose notebook is there."""
    found: Texts = {}
    for row in rows:
        try:
            handed = Handed(row["lesson"], row["student"])
            notebook = records.read_notebook(course.autograded(handed))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # the report is of the reasons; a text that is gone is not shown
        cells = filter(cell_metadata.is_solution, notebook["cells"])
        found[row["student"]] = {cell_metadata.exercise(cell): cell["source"] for cell in cells}
    return found


def example(source: str, student: str) -> str:
    """A text to be shown to others: without comments, docstrings or its writer's name, and short.

    It is still a student's text: escape it.
    """
    lines = [line for line in _bare(source).splitlines() if line.strip()]
    if len(lines) > SHOWN_LINES:
        lines = [*lines[: SHOWN_LINES - 1], "…"]
    return unnamed(clean("\n".join(line[:200] for line in lines)), student)


def unnamed(text: str, student: str) -> str:
    """``text`` without the name of its writer."""
    if len(student) < SHORTEST_NAME:
        return text
    return re.sub(re.escape(student), "…", text, flags=re.IGNORECASE)


def _bare(source: str) -> str:
    """``source`` without comments and docstrings; as it is where it is no Python."""
    try:
        words = list(tokenize.generate_tokens(io.StringIO(source).readline))
        tree = ast.parse(source)
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError):
        return source
    lines = source.splitlines()
    for word in words:
        if word.type == tokenize.COMMENT:
            row, column = word.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and _is_constant(body[0]):
            first, end = body[0].lineno, body[0].end_lineno
            if body[1].lineno > end:  # a docstring on lines of its own
                lines[first - 1 : end] = [""] * (end - first + 1)
    return "\n".join(lines)


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
