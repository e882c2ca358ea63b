"""One page on a class, to be read, printed or shown: what it earned and why points were lost."""

import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.files import write_aside
from autograder.grading.classroom import item_analysis
from autograder.grading.classroom.item_analysis import Row, total
from autograder.grading.classroom.results_table import (
    CHANGED,
    changed,
    earned,
    lessons,
    lost,
    points,
)
from autograder.reporting import charts, layout
from autograder.reporting.student_answers import unnamed
from autograder.reporting.unexplained import Cluster

FAULTS, HINTS, CLUSTERS, SLOWEST = 20, 12, 12, 5  # the most that are drawn or shown


def write_html(
    results: Iterable[Row],
    path: Path,
    unexplained: Mapping[str, Sequence[Cluster]] | None = None,
    absent: Mapping[str, Sequence[str]] | None = None,
    anonymous: bool = False,
) -> None:
    """Write the page of ``results`` (see ``results_table``).

    ``unexplained`` and ``absent``, who of the roster handed in nothing, are by lesson.
    An ``anonymous`` page names nobody and leaves out what is about single students.
    """
    shown, unexplained, absent = [], unexplained or {}, absent or {}
    for lesson, graded in lessons(results).items():
        rows, others = item_analysis.of_one_version(
            [*map(_unnamed, graded)] if anonymous else graded
        )
        told = {"unexplained": unexplained.get(lesson), "absent": absent.get(lesson)}
        shown.append({"name": lesson, "others": others, **told, **_of_rows(rows)})
    content = layout.page(
        "class.html.j2",
        "Class report",
        lessons=shown,
        anonymous=anonymous,
        kinds=item_analysis.KINDS,
        most_clusters=CLUSTERS,
        note_of_stars=CHANGED,
        median=statistics.median,
        stored=_stored,
        points=points,
        earned=earned,
        lost=lost,
    )
    write_aside(path, content)


def _unnamed(row: Row) -> Row:
    """A row whose reasons, which may hold its student's own words, do not name the student."""
    student, parts = row["student"], row["exercises"]
    parts = [part | {"reason": unnamed(part["reason"], student)} for part in parts]
    return row | {"exercises": parts}


def _of_rows(rows: list[Row]) -> dict[str, Any]:
    most, faults = total(rows[0])[1], item_analysis.faults(rows)[:FAULTS]
    hints = [(one.exercise, one.students, one.text) for one in faults if one.hint][:HINTS]
    slow = [
        (name, round(median, 2), f"longest {longest:.2f} s")
        for name, median, longest in item_analysis.slowest(rows)[:SLOWEST]
    ]
    return {
        "rows": rows,
        "most": most,
        "scores": [total(row)[0] for row in rows],
        "spread": charts.histogram(item_analysis.spread(rows), most),
        "map": _map(rows),
        "exercises": [_exercise(rows, place) for place in range(len(rows[0]["exercises"]))],
        "faults": faults,
        "hints": hints and charts.bars(hints, "Students by the hint that they read."),
        "seconds": [row["seconds"] for row in rows if row.get("seconds")],
        "slow": slow and charts.bars(slow, "Median seconds to grade an exercise.", " s"),
        "in_need": item_analysis.in_need(rows),
        "starred": any(map(changed, rows)),
        "lost": [(row["student"], part) for row in rows for part in lost(row)],
    }


def _map(rows: list[Row]) -> str:
    """Exercises from easy to hard, students from many points to few."""
    ordered = sorted(rows, key=lambda row: -total(row)[0])
    shares = {
        parts[0]["name"]: [min(1, part["score"] / (part["max"] or 1)) for part in parts]
        for parts in zip(*(row["exercises"] for row in ordered), strict=True)
    }
    names = sorted(shares, key=lambda name: -sum(shares[name]))
    return charts.heat_map(names, [shares[name] for name in names])


def _exercise(rows: Sequence[Row], place: int) -> dict[str, Any]:
    """What became of an exercise: how many are right, right in part and so on, how hard it was."""
    parts = [row["exercises"][place] for row in rows]
    kinds = [item_analysis.kind(one) for one in parts]
    return {
        "name": parts[0]["name"],
        "counts": [kinds.count(kind) or "–" for kind in item_analysis.KINDS],
        "stages": item_analysis.lost_stages(parts).most_common(),
        "share": item_analysis.share_earned(rows, place),
        "apart": item_analysis.discrimination(rows, place),
    }


def _stored(lesson: str, one: Cluster) -> str:
    """The command that makes a stored mistake of an answer."""
    number = lesson.partition("_")[0]
    return shlex.join(["autograder", "mistake", number, one.exercise, "--from", one.student])
