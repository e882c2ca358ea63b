"""What went wrong in a class, gathered by what students were told."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from autograder import cell_metadata, lessons
from autograder.checking.toolbox import registry
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook import records
from autograder.grading.notebook.result import clean, said
from autograder.reporting.results import OPEN, Row, kind
from autograder.term import groups

# What is no answer cannot be stored as a wrong one.
NO_ANSWER = (
    "nothing here yet",
    "it is not defined",
    "your code had to be stopped",
    "this answer was not written in the notebook",
    "the check takes too long over your results",
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
REPEATED = re.compile(r"…(?:,? …){3,}")  # a list of numbers, however long
TOLD_CHARS, SHOWN_LINES = 300, 15
READ_CHARS = 20_000  # of a cell; the course's own have up to 5000

Texts = Mapping[str, Mapping[str, str]]  # student → exercise → the text of its cell


class Fault(NamedTuple):
    """Students who were told the same of an exercise, but for its numbers.

    has_hint  whether it was the hint of a stored mistake
    example   the text of ``of``, one of them, where a stored mistake would help; else ''
    """

    exercise: str
    students: tuple[str, ...]
    told: str
    has_hint: bool
    of: str
    example: str


def of_course(course: Course, lesson: str, rows: Iterable[Row]) -> list[Fault]:
    """The faults of one lesson. A group's work is one work."""
    copies = groups.copies(course.choices)
    own = [row for row in rows if (lesson, row.student) not in copies]
    return faults(own, texts(course, own), hints(lesson))


def hints(slug: str) -> Mapping[str, Collection[str]]:
    """The hints of the stored mistakes of a lesson, without spaces, by exercise."""
    try:
        known = registry.of_lesson(lessons.name_of(slug)).values()
    except ModuleNotFoundError:  # a lesson of somebody's own that is gone
        return {}
    return {
        one.name: {"".join((mistake.hint or "").split()) for mistake in registry.mistakes(one)}
        for one in known
    }


def texts(course: Course, rows: Iterable[Row]) -> Texts:
    """The text of every exercise's cell, of all ``rows`` of one lesson whose notebook is there."""
    found = {}
    for row in rows:
        try:
            handed = Handed(row.lesson, row.student)
            notebook = records.read_notebook(course.autograded(handed))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # the report is of the reasons; a text that is gone is not shown
        cells = filter(cell_metadata.is_solution, notebook["cells"])
        found[row.student] = {cell_metadata.exercise(cell): cell["source"] for cell in cells}
    return found


def faults(
    rows: Iterable[Row], written: Texts, known: Mapping[str, Collection[str]]
) -> list[Fault]:
    """What went wrong, that of the most students first; ``known`` is what `hints` gives."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    named, no_answer = set(), set()
    for row in rows:
        for part in row.exercises:
            if part["score"] >= part["max"] or kind(part) == OPEN:  # counted as not attempted
                continue
            name, parts = part["name"], said(part["reason"])
            told = what = parts.what.removeprefix(f"{name}: ")
            has_hint = "".join(parts.likely.split()) in known.get(name, ()) and parts.likely
            if has_hint:
                told = parts.likely
            elif parts.got:
                told = f"{what} Got {parts.got}. {parts.likely}".strip()
            key = name, without_numbers(told)
            found.setdefault(key, {})[row.student] = told[:TOLD_CHARS]
            named |= {key} if has_hint else set()
            if row.problem or part.get("is_careless") or what.startswith(NO_ANSWER):
                no_answer.add(key)  # or a right one
    made = []
    for key, told_to in found.items():
        answers = {one: written.get(one, {}).get(key[0], "").strip() for one in told_to}
        of = min(sorted(told_to), key=lambda one: (not answers[one], len(answers[one])))
        shown = "" if key in named | no_answer else example(answers[of])
        made.append(Fault(key[0], tuple(sorted(told_to)), told_to[of], key in named, of, shown))
    return sorted(made, key=lambda one: (-len(one.students), one.exercise, one.told))


def without_numbers(text: str) -> str:
    """``text`` with its numbers and quoted words taken out: what does not change with the seed."""
    text = NUMBER.sub("…", QUOTED.sub("“…”", text))
    return " ".join(REPEATED.sub("…, …", text).split())


def example(source: str) -> str:
    """A text without comments and docstrings, and short. It is still a student's: escape it."""
    lines = [line for line in bare(source).splitlines() if line.strip()]
    if len(lines) > SHOWN_LINES:
        lines = [*lines[: SHOWN_LINES - 1], "…"]
    return clean("\n".join(line[:200] for line in lines))


def bare(source: str) -> str:
    """``source`` without comments and docstrings; as it is where it is no Python, or too long."""
    if len(source) > READ_CHARS:
        return source
    try:
        tree = ast.parse(source)
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
        for node in ast.walk(tree):
            if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
