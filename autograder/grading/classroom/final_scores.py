"""Results of the grading with the scores that count, which are those of nbgrader's gradebook."""

from typing import Any

from autograder.grading.classroom.gradebook import Counted
from autograder.marks import exercise_called


def counting(result: dict[str, Any], counted: Counted | None) -> dict[str, Any]:
    """The ``result`` of one submission (see ``report``) with the points that count.

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
