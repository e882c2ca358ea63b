"""What students wrote, read back from their graded notebooks."""

import ast
import re
from collections.abc import Iterable
from typing import Any

from autograder import cell_metadata
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook import records
from autograder.grading.notebook.result import clean

SHOWN_LINES = 15
READ_CHARS = 20_000  # of a cell; the course's own have up to 5000
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


def drop_docstrings(tree: ast.AST) -> None:
    """Take all docstrings out of a tree."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]


def _bare(source: str) -> str:
    """``source`` without comments and docstrings; as it is where it is no Python, or too long."""
    if len(source) > READ_CHARS:
        return source
    try:
        tree = ast.parse(source)
        drop_docstrings(tree)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
