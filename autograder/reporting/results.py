"""What a class earned: of each submission a row, its columns in the table, and statistics.

A row is ``{"student", "lesson", "exercises": [{"name", "score", "max", "reason", …}, …]}``, as it
is kept beside the graded notebook, with the points that count: see ``counting``.
"""

import csv
import itertools
import operator
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from autograder.cell_metadata import exercise_called
from autograder.grading.classroom import database
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book, Counted
from autograder.grading.notebook.result import harmless

Row = dict[str, Any]
COLUMNS = ("student", "lesson", "exercise", "score", "max", "reason", "automatic")
# What became of an exercise. In part: some of its stages are earned. Not attempted: its check met a
# part in which nothing is written yet, or none of the notebook can be graded.
RIGHT, CARELESS, IN_PART, WRONG, OPEN = KINDS = (
    "right",
    "right, without care",
    "in part",
    "wrong",
    "not attempted",
)


def graded(course: Course, names: Sequence[str] = ()) -> list[Row]:
    """The rows of what is graded of these lessons, none for all; in order."""
    handed = course.submissions(names)
    kept = map(course.kept, handed)
    rows = [result.as_dict() for result in kept if result is not None]
    if database.exists(course):
        with Book(course) as book:
            counted = {lesson: book.counted(lesson) for lesson in {one.lesson for one in handed}}
        rows = [counting(one, counted[one["lesson"]].get(one["student"])) for one in rows]
    return sorted(rows, key=operator.itemgetter("lesson", "student"))


def counting(row: Row, counted: Counted | None) -> Row:
    """The ``row`` of one submission with the points that count in nbgrader's gradebook.

    An exercise whose points were changed has ``automatic``: what its check gave. A late hand-in has
    ``penalty``: points that are taken from its total.
    """
    if counted is None:
        return row
    scores = {exercise_called(name): found for name, found in counted.scores.items()}
    parts = []
    for part in row["exercises"]:
        score, _, automatic = scores.get(part["name"], (0, 0, None))
        if automatic is not None and score != automatic:
            said = f"{part['name']}: changed by hand, from {automatic:g} to {score:g}."
            changed = {"score": score, "automatic": automatic, "reason": part["reason"] or said}
            part = part | changed
        parts.append(part)
    late = {"penalty": counted.penalty} if counted.penalty else {}
    return {**row, **late, "exercises": parts}


def by_lesson(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each lesson."""
    grouped = itertools.groupby(rows, operator.itemgetter("lesson"))
    return {lesson: list(found) for lesson, found in grouped}


def table(rows: Iterable[Row]) -> Iterator[Row]:
    """A line for each student and exercise, with COLUMNS.

    A late penalty has a line of its own, so that the scores sum up to what counts.
    """
    for row in rows:
        who = {"student": row["student"], "lesson": row["lesson"]}
        for part in row["exercises"]:
            line = who | part | {"exercise": part["name"]}
            line.setdefault("automatic", part["score"])
            yield {name: line[name] for name in COLUMNS}
        if late := row.get("penalty"):
            said = {"exercise": "late penalty", "reason": "handed in late"}
            yield who | said | {"score": -round(late, 4), "max": 0, "automatic": 0}


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write the table; what a student wrote in it is no formula."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        for line in table(rows):
            safe = {name: harmless(line[name]) for name in ("student", "reason")}
            writer.writerow(line | safe)


def total(row: Row) -> tuple[float, float]:
    """Pair (points that count, points there are) of one student's lesson."""
    parts, late = row["exercises"], row.get("penalty", 0)
    return sum(part["score"] for part in parts) - late, sum(part["max"] for part in parts)


def kind(part: Row) -> str:
    """Which of KINDS an exercise of a student is. What was changed by hand is what it came to."""
    full = part["score"] >= part["max"] and not (part["max"] == 0 and part.get("reason"))
    if part.get("is_careless") and not (full and "automatic" in part):
        return CARELESS
    if full:
        return RIGHT
    if part["score"] > 0:
        return IN_PART
    return OPEN if part.get("is_open") else WRONG


def lost_stages(parts: Iterable[Row]) -> Counter[str]:
    """How often each stage was lost in answers that are right in part."""
    return Counter(name for part in parts if kind(part) == IN_PART for name in part.get("lost", ()))


def share_earned(rows: Sequence[Row], place: int) -> float | None:
    """The mean share of its points that an exercise earned, from 0 to 1; None where it has none."""
    parts = [row["exercises"][place] for row in rows]
    shares = [part["score"] / part["max"] for part in parts if part["max"]]
    return statistics.mean(shares) if shares else None


def spread(rows: Sequence[Row], bins: int = 10) -> list[int]:
    """How many students earned which tenth of the points; all points count into the last."""
    counts = [0] * bins
    for row in rows:
        score, most = total(row)
        counts[max(0, min(bins - 1, int(bins * score / (most or 1))))] += 1
    return counts


def of_one_version(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Those rows that have the exercises that most have, and how many have others."""
    names = [tuple((part["name"], part["max"]) for part in row["exercises"]) for row in rows]
    (usual, _), *_ = Counter(names).most_common(1)
    kept = [row for row, own in zip(rows, names, strict=True) if own == usual]
    return kept, len(rows) - len(kept)
