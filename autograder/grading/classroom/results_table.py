"""What a class earned, as a report and a CSV show it.

It is made of ``results``: for each student and lesson a dict
``{"student", "lesson", "exercises": [{"name", "score", "max", "reason"}, …]}``, and what
``counting`` adds where points were changed by hand or for being late.
"""

import csv
import itertools
import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder.cell_metadata import exercise_called
from autograder.grading.classroom.formula_escaping import harmless
from autograder.grading.classroom.gradebook import Counted
from autograder.grading.classroom.item_analysis import total

CHANGED = "* changed by hand in the gradebook, or by a late penalty"


def lessons(results: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The results grouped by lesson, lessons and students in order."""
    ordered = sorted(results, key=operator.itemgetter("lesson", "student"))
    grouped = itertools.groupby(ordered, operator.itemgetter("lesson"))
    return {lesson: list(rows) for lesson, rows in grouped}


def points(part: dict[str, Any]) -> str:
    """Points of points of an exercise, with a star where they were changed by hand."""
    return f"{part['score']:g} / {part['max']:g}" + ("*" if "automatic" in part else "")


def earned(row: dict[str, Any], between: str) -> str:
    """Points of points of a student's lesson, with a star where it was late."""
    score, most = total(row)
    return f"{score:g}{between}{most:g}" + ("*" if row.get("penalty") else "")


def changed(row: dict[str, Any]) -> bool:
    """Whether a star stands in the line of a student."""
    return "penalty" in row or any("automatic" in part for part in row["exercises"])


def write_csv(results: Iterable[dict[str, Any]], path: Path) -> None:
    """One row per student, lesson and exercise: score, points there are, reason, automatic score.

    A late penalty has a row of its own, so that the scores sum up to what counts.
    """
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["student", "lesson", "exercise", "score", "max", "reason", "automatic"])
        for rows in lessons(results).values():
            for row in rows:
                names = [harmless(row["student"]), row["lesson"]]
                for part in row["exercises"]:
                    told = [part["name"], part["score"], part["max"], harmless(part["reason"])]
                    writer.writerow([*names, *told, part.get("automatic", part["score"])])
                if late := row.get("penalty"):
                    late = round(late, 4)
                    writer.writerow([*names, "late penalty", -late, 0, "handed in late", 0])


def lost(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The exercises of one student's lesson in which points were lost."""
    return [part for part in row["exercises"] if part["score"] < part["max"]]


def counting(result: dict[str, Any], counted: Counted | None) -> dict[str, Any]:
    """The ``result`` of one submission with the points that count.

    An exercise whose points were changed has ``automatic``: what its check gave. A late hand-in has
    ``penalty``: points that are taken from its total.
    """
    if counted is None:
        return result
    scores = {exercise_called(name): found for name, found in counted.scores.items()}
    parts = [_part(part, scores.get(part["name"])) for part in result["exercises"]]
    late = {"penalty": counted.penalty} if counted.penalty else {}
    return {**result, **late, "exercises": parts}


def _part(part: dict[str, Any], found: tuple[float, float, float | None] | None) -> dict[str, Any]:
    if found is None or found[2] is None or found[0] == found[2]:
        return part
    score, _, automatic = found
    lost = f"{part['name']}: changed by hand, from {automatic:g} to {score:g}."
    return {**part, "score": score, "automatic": automatic, "reason": part["reason"] or lost}
