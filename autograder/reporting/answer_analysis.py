"""What a class's texts say beyond its results: what was not explained, and what is alike."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from autograder import cell_metadata, lessons
from autograder.checking.toolbox import registry
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.results_table import lessons as by_lesson
from autograder.grading.classroom.sample_class import DEFINITION
from autograder.grading.notebook import records
from autograder.reporting import similarity, student_answers, unexplained
from autograder.reporting.similarity import Alike, Given
from autograder.reporting.unexplained import Cluster
from autograder.term import groups


@dataclass
class Insight:
    """What is said of one lesson besides its results; empty where nothing was looked at."""

    clusters: list[Cluster] = field(default_factory=list)
    alike: list[Alike] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # who of the roster handed in nothing


def insights(course: Course, results: Iterable[dict[str, Any]]) -> dict[str, Insight]:
    """The Insight into each lesson of ``results`` (see ``results_table``)."""
    found, copies = {}, groups.copies(course.choices)
    for lesson, all_rows in by_lesson(results).items():
        # A group's work is one work.
        rows = [row for row in all_rows if (lesson, row["student"]) not in copies]
        texts = student_answers.texts(course, rows)
        clusters = unexplained.clusters(rows, texts, unexplained.hints(lesson))
        alike = similarity.alike(rows, texts, given(lesson, course))
        found[lesson] = Insight(clusters, alike)
    return found


def given(lesson: str, course: Course) -> dict[str, Given]:
    """By exercise what is nobody's: the text of the solved cell, and the stored answers."""
    try:
        notebook = records.read_notebook(course.master(lesson))
        cells = [cell for cell in notebook["cells"] if cell_metadata.is_solution(cell)]
    except (OSError, ValueError, KeyError):
        return {}  # without the lesson itself, the class alone says what is common
    found = {cell_metadata.exercise(cell): Given(cell["source"], []) for cell in cells}
    stored = ast.parse(registry.source_of_answers(lessons.name_of(lesson)))
    for node in stored.body:
        if isinstance(node, DEFINITION):
            exercise = _exercise(node)
            node.decorator_list = []
            for name in found if exercise is None else found.keys() & {exercise}:
                found[name].stored.append(ast.unparse(node))
    return found


def _exercise(node: ast.FunctionDef | ast.ClassDef) -> str | None:
    """The exercise that a stored answer is one to, or None for a helper of several."""
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and mark.args and isinstance(mark.args[0], ast.Constant):
            return str(mark.args[0].value)
    return None
