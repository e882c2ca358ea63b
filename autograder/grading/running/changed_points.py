"""Whose points a new grading of the same work changed, and why: what an update brings about."""

from collections.abc import Iterator

from autograder.grading.classroom.folders import Handed
from autograder.grading.running.batch import Batch

NAMED = 5  # students in a sentence; the line of each says what it was


def sentences(batch: Batch) -> Iterator[str]:
    """At most two: who has more points by the checks than before, and who has fewer."""
    changed = {one: gained for one in sorted(batch.before) if (gained := gain(batch, one))}
    for what, sign in (("more", 1), ("fewer", -1)):
        chosen = [one for one, gained in changed.items() if gained * sign > 0]
        if chosen:
            names = ", ".join(_told(batch, one, changed[one]) for one in chosen[:NAMED])
            rest = f", and {len(chosen) - NAMED} others" if len(chosen) > NAMED else ""
            have = "has" if len(chosen) == 1 else "have"
            yield f"{len(chosen)} now {have} {what} points: {names}{rest}."


def gain(batch: Batch, one: Handed) -> float:
    """How many points a student has more than before, by the checks; of new exercises, none."""
    before, result = batch.before.get(one), batch.done.get(one)
    if not before or result is None or result.ungraded:
        return 0.0
    return round(
        sum(part.score - before.get(part.name, part.score) for part in result.exercises), 4
    )


def _told(batch: Batch, one: Handed, gained: float) -> str:
    score = batch.done[one].score
    return f"{one.student} {score - gained:g} → {score:g}"
