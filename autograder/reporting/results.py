"""What a class earned: a row for each hand-in, with the points that count, and statistics."""

import itertools
import math
import operator
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from autograder.cell_metadata import exercise_called
from autograder.grading.classroom import database
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book, Counted
from autograder.grading.notebook.result import Exercise, Result
from autograder.term.course_file import Choices

Part = Mapping[str, Any]
# What became of an exercise. In part: some of its stages are earned. Not attempted: its check met a
# part in which nothing is written yet, or none of the notebook can be graded.
RIGHT, CARELESS, IN_PART, WRONG, OPEN = KINDS = (
    "right",
    "right, without care",
    "in part",
    "wrong",
    "not attempted",
)


@dataclass(frozen=True)
class Row:
    """What counts of one hand-in.

    exercises     each ``{"name", "score", "max", "reason", …}``, as it is kept beside the graded
                  notebook. Where its points were changed, it has ``automatic``: what its check gave
    problem       why nothing of it could be graded
    penalty       points that are taken from its total for lateness
    handed_in     when, in the class's zone, if that is known
    minutes_late  minutes that have begun
    """

    student: str
    lesson: str
    exercises: Sequence[Part]
    problem: str = ""
    penalty: float = 0.0
    handed_in: datetime | None = None
    minutes_late: int = 0

    @property
    def score(self) -> float:
        """Points that count."""
        return sum(part["score"] for part in self.exercises) - self.penalty

    @property
    def most(self) -> float:
        """Points that there are."""
        return sum(part["max"] for part in self.exercises)


def graded(course: Course, names: Sequence[str] = ()) -> list[Row]:
    """The rows of what is graded of these lessons, none for all; in order."""
    handed = course.submissions(names)
    counted: dict[str, dict[str, Counted]] = {}
    if database.exists(course):
        with Book(course) as book:
            counted = {lesson: book.counted(lesson) for lesson in {one.lesson for one in handed}}
    rows = [
        counting(kept, counted.get(kept.lesson, {}).get(kept.student, Counted()), course.choices)
        for kept in map(course.kept, handed)
        if kept is not None
    ]
    return sorted(rows, key=operator.attrgetter("lesson", "student"))


def counting(kept: Result, counted: Counted, choices: Choices) -> Row:
    """The Row of what is kept of a hand-in and what counts in nbgrader's gradebook."""
    scores = {exercise_called(name): found for name, found in counted.scores.items()}
    parts = [_part(one, *scores.get(one.name, (0, 0, None))) for one in kept.exercises]
    came, late = counted.handed_in and choices.here(counted.handed_in), counted.seconds_late
    about = kept.student, kept.lesson, parts, kept.problem, counted.penalty
    return Row(*about, handed_in=came, minutes_late=math.ceil(late / 60))


def _part(one: Exercise, score: float, _: float, automatic: float | None) -> Part:
    part = asdict(one)
    if automatic is None or score == automatic:
        return part
    said = f"{one.name}: changed by hand, from {automatic:g} to {score:g}."
    return {**part, "score": score, "automatic": automatic, "reason": one.reason or said}


def by_lesson(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each lesson."""
    grouped = itertools.groupby(rows, operator.attrgetter("lesson"))
    return {lesson: list(found) for lesson, found in grouped}


def kind(part: Part) -> str:
    """Which of KINDS an exercise of a student is. What was changed by hand is what it came to."""
    full = part["score"] >= part["max"] and not (part["max"] == 0 and part.get("reason"))
    if part.get("is_careless") and not (full and "automatic" in part):
        return CARELESS
    if full:
        return RIGHT
    if part["score"] > 0:
        return IN_PART
    return OPEN if part.get("is_open") else WRONG


def lost_stages(parts: Iterable[Part]) -> Counter[str]:
    """How often each stage was lost in answers that are right in part."""
    return Counter(name for part in parts if kind(part) == IN_PART for name in part.get("lost", ()))


def share_earned(rows: Sequence[Row], place: int) -> float | None:
    """The mean share of its points that an exercise earned, from 0 to 1; None where it has none."""
    parts = [row.exercises[place] for row in rows]
    shares = [part["score"] / part["max"] for part in parts if part["max"]]
    return statistics.mean(shares) if shares else None


def spread(rows: Sequence[Row], bins: int = 10) -> list[int]:
    """How many students earned which tenth of the points; all points count into the last."""
    counts = [0] * bins
    for row in rows:
        counts[max(0, min(bins - 1, int(bins * row.score / (row.most or 1))))] += 1
    return counts


def of_one_version(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Those rows that have the exercises that most have, and how many have others."""
    names = [tuple((part["name"], part["max"]) for part in row.exercises) for row in rows]
    (usual, _), *_ = Counter(names).most_common(1)
    kept = [row for row, own in zip(rows, names, strict=True) if own == usual]
    return kept, len(rows) - len(kept)
