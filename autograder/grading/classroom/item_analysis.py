"""What scores say of a class: how hard an exercise was, what went wrong how often, for whom."""

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

LABEL = re.compile(r"^  (got|expected|also|likely|seed|costs) {2,}")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
HALF = 0.5  # who has less than this share of the points is listed
# What became of an exercise. In part: some of its stages are earned. Not attempted: its check met a
# part in which nothing is written yet, or none of the notebook can be graded.
RIGHT, CARELESS, IN_PART, WRONG, OPEN = KINDS = (
    "right",
    "right, without care",
    "in part",
    "wrong",
    "not attempted",
)

Row = dict[str, Any]  # {"student", "lesson", "exercises": [{"name", "score", "max", "reason"}, …]}


class Said(NamedTuple):
    """The parts of a reason: what is wrong, got, the hint of a known mistake or '', the cost."""

    what: str
    got: str
    likely: str
    costs: str


class Fault(NamedTuple):
    """What several students were told about an exercise, and how many; ``hint`` if it was one."""

    students: int
    exercise: str
    text: str
    hint: bool


def said(reason: str) -> Said:
    """Take a reason apart; its lines may be wrapped."""
    parts, label = {"what": [reason.partition("\n")[0]]}, "what"
    for line in reason.split("\n")[1:]:
        found = LABEL.match(line)
        label = found[1] if found else label
        parts.setdefault(label, []).append(line[found.end() :] if found else line.strip())
    joined = {name: " ".join(lines) for name, lines in parts.items()}
    costs = "; ".join(parts.get("costs", ()))  # each of its lines is a cost of its own
    return Said(joined["what"], joined.get("got", ""), joined.get("likely", ""), costs)


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


def note(part: Row) -> str:
    """Why an exercise that is not wrong lost points, in a few words, or ''."""
    found, stages = kind(part), ", ".join(part.get("lost", ()))
    if found == IN_PART and stages:
        return f"lost: {stages}"
    return CARELESS if found == CARELESS else ""


def lost_stages(parts: Iterable[Row]) -> Counter[str]:
    """How often each stage was lost in answers that are right in part."""
    return Counter(name for part in parts if kind(part) == IN_PART for name in part.get("lost", ()))


def faults(rows: Iterable[Row]) -> list[Fault]:
    """What more than one student was told, most frequent first.

    Where a hint was given, it counts. Else what was wrong, with what came back but for its numbers:
    an endless loop and a process that ended itself are two things.
    """
    counted = Counter(
        (part["name"], *told(part["reason"]))
        for row in rows
        for part in row["exercises"]
        if part["score"] < part["max"]
    )
    found = [Fault(count, *said_of) for said_of, count in counted.most_common() if count > 1]
    return [one for one in found if one.text]


def told(reason: str) -> tuple[str, bool]:
    """What a reason says of the answer, the same for all who lost points in the same way.

    That is the hint, where there is one (then the second value is True).
    """
    parts = said(reason)
    if parts.likely:
        return parts.likely, True
    got = NUMBER.sub("…", parts.got[:100])
    return (f"{parts.what} {got}".strip(), False)


def share_earned(rows: Sequence[Row], place: int) -> float | None:
    """The mean share of its points that an exercise earned, from 0 to 1; None where it has none."""
    parts = [row["exercises"][place] for row in rows]
    shares = [part["score"] / part["max"] for part in parts if part["max"]]
    return statistics.mean(shares) if shares else None


def discrimination(rows: Sequence[Row], place: int) -> float | None:
    """Correlation of an exercise's points with those of all others; None where either is constant.

    Near 0 or below, an exercise does not go with the rest: it measures something else, or a check
    is wrong. Of a few students it says little.
    """
    own = [float(row["exercises"][place]["score"]) for row in rows]
    rest = [total(row)[0] - one for row, one in zip(rows, own, strict=True)]
    try:
        return statistics.correlation(own, rest)
    except statistics.StatisticsError:
        return None


def total(row: Row) -> tuple[float, float]:
    """Pair (points that count, points there are) of one student's lesson."""
    parts, late = row["exercises"], row.get("penalty", 0)
    return sum(part["score"] for part in parts) - late, sum(part["max"] for part in parts)


def in_need(rows: Iterable[Row]) -> list[Row]:
    """Students with less than half of the points, those with the fewest first."""
    few = [row for row in rows if total(row)[0] < HALF * total(row)[1]]
    return sorted(few, key=lambda row: (total(row)[0], row["student"]))


def spread(rows: Sequence[Row], bins: int = 10) -> list[int]:
    """How many students earned which tenth of the points; all points count into the last."""
    counts = [0] * bins
    for row in rows:
        earned, most = total(row)
        counts[max(0, min(bins - 1, int(bins * earned / (most or 1))))] += 1
    return counts


def of_one_version(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Those rows that have the exercises that most have, and how many have others."""
    names = [tuple((part["name"], part["max"]) for part in row["exercises"]) for row in rows]
    (usual, _), *_ = Counter(names).most_common(1)
    kept = [row for row, own in zip(rows, names, strict=True) if own == usual]
    return kept, len(rows) - len(kept)


def slowest(rows: Iterable[Row]) -> list[tuple[str, float, float]]:
    """Triples (exercise, median seconds, most seconds), the slowest first; without a time, none."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for part in row["exercises"]:
            if part.get("seconds"):
                found.setdefault(part["name"], []).append(part["seconds"])
    timed = [(name, statistics.median(taken), max(taken)) for name, taken in found.items()]
    return sorted(timed, key=lambda one: -one[1])
