"""One page on a class, to be read, printed or shown: what it earned and why points were lost."""

import html
import shlex
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attention.provided.files import write_aside
from autograder.grading.classroom import item_analysis
from autograder.grading.classroom.item_analysis import total
from autograder.grading.classroom.tables import CHANGED, changed, earned, lessons, lost, points
from autograder.grading.feedback import content_policy
from autograder.reporting import drawings, exercises
from autograder.reporting.insight import Insight
from autograder.reporting.layout import STYLE, breakable, figure, line, table
from autograder.reporting.likeness import Alike
from autograder.reporting.unexplained import Cluster
from autograder.reporting.written import unnamed

HINTS, CLUSTERS = 12, 12  # the most that are drawn or shown
NOT_PROVED = (
    "This proves nothing: two students may have learned together, been helped by the same person "
    "or assistant, or found the same odd way. Ask both how they got there."
)


def write_html(
    results: Iterable[dict[str, Any]],
    path: Path,
    insights: Mapping[str, Insight] | None = None,
    anonymous: bool = False,
) -> None:
    """Write the page of ``results`` (see ``report``); ``insights`` by lesson.

    An ``anonymous`` page names nobody and leaves out what is about single students.
    """
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8>{content_policy.of_page(STYLE)}"
        f"<title>Class report</title><style>{STYLE}</style><h1>Class report</h1>"
    ]
    for lesson, graded in lessons(results).items():
        rows, others = item_analysis.of_one_version(
            [*map(_unnamed, graded)] if anonymous else graded
        )
        insight = (insights or {}).get(lesson, Insight())
        parts += [f"<h2>{html.escape(lesson)}</h2>", _of_others(others), _spread(rows), _map(rows)]
        parts += [exercises.table(rows), _common(rows)]
        parts += [_unexplained(lesson, insight.clusters, anonymous), _time(rows)]
        if not anonymous:
            parts += [
                _absent(insight.absent),
                _in_need(rows),
                _alike(insight.alike),
                _scores(rows),
                _reasons(rows),
            ]
    write_aside(path, "\n".join(part for part in parts if part).encode())


def _unnamed(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose reasons, which may hold its student's own words, do not name the student."""
    parts = [
        part | {"reason": unnamed(part["reason"], row["student"])} for part in row["exercises"]
    ]
    return row | {"exercises": parts}


def _of_others(count: int) -> str:
    if not count:
        return ""
    results = "1 result is" if count == 1 else f"{count} results are"
    return f"<p>{results} of the lesson with other exercises and left out: grade again.</p>"


def _reasons(rows: list[dict[str, Any]]) -> str:
    told = [
        f"<p><b>{html.escape(row['student'])}</b> · {html.escape(part['name'])}</p>"
        f"<pre>{html.escape(part['reason'])}</pre>"
        for row in rows
        for part in lost(row)
    ]
    return "<h3>Every lost point</h3>" + "".join(told) if told else ""


def _map(rows: list[dict[str, Any]]) -> str:
    """Exercises from easy to hard, students from many points to few."""
    ordered = sorted(rows, key=lambda row: -total(row)[0])
    names = [part["name"] for part in rows[0]["exercises"]]
    shares = [
        [
            min(1, row["exercises"][place]["score"] / (row["exercises"][place]["max"] or 1))
            for row in ordered
        ]
        for place in range(len(names))
    ]
    pairs = sorted(zip(shares, names, strict=True), key=lambda pair: -sum(pair[0]))
    drawn = drawings.heat_map([name for _, name in pairs], [share for share, _ in pairs])
    return figure(drawn, "Who solved what: the easiest exercise above, the hardest below.")


def _scores(rows: list[dict[str, Any]]) -> str:
    """Students × exercises."""
    names = [breakable(part["name"]) for part in rows[0]["exercises"]]
    lines = [line("student", [*names, "total"], "th")]
    for row in rows:
        cells = "".join(_score_cell(part) for part in row["exercises"])
        name, sum_ = html.escape(row["student"]), earned(row, " / ")
        lines.append(f"<tr><td>{name}</td>{cells}<td class=number>{sum_}</td></tr>")
    note = f"<p>{CHANGED}</p>" if any(map(changed, rows)) else ""
    return f"<h3>Scores</h3>{table(''.join(lines), 'Points by student and exercise')}{note}"


def _spread(rows: list[dict[str, Any]]) -> str:
    """How the points are distributed: a sentence and a histogram in tenths."""
    scores = [total(row)[0] for row in rows]
    most = total(rows[0])[1]
    said = (
        f"<p>{len(rows)} students, {most:g} points. Median {statistics.median(scores):g}, "
        f"lowest {min(scores):g}, highest {max(scores):g}.</p>"
    )
    drawn = drawings.histogram(item_analysis.spread(rows), most)
    return said + figure(drawn, "How many students earned how many points.")


def _score_cell(part: dict[str, Any]) -> str:
    kind = "full" if part["score"] >= part["max"] else "none" if part["score"] == 0 else "part"
    return f"<td class='number {kind}'>{points(part, ' / ')}</td>"


def _common(rows: list[dict[str, Any]]) -> str:
    """What more than one student was told: the hints as a drawing, all of it as a table."""
    found = item_analysis.faults(rows)[:20]
    if not found:
        return ""
    lines = "".join(
        f"<tr><td>{breakable(one.exercise)}</td><td>{one.students}</td>"
        f"<td class=kind>{'hint' if one.hint else 'no hint'}</td>"
        f"<td class=said>{html.escape(one.text)}</td></tr>"
        for one in found
    )
    hints = [(one.exercise, one.students, one.text) for one in found if one.hint][:HINTS]
    drawn = drawings.bars(hints, "Students by the hint that they read.") if hints else ""
    caption = "What was named most often: how many students read which hint."
    heads = ["students", "hint or not", "what they were told"]
    return (
        f"<h3>What went wrong most often</h3>{figure(drawn, caption) if drawn else ''}"
        f"{table(line('exercise', heads, 'th') + lines, 'What students were told')}"
    )


def _unexplained(lesson: str, clusters: list[Cluster], anonymous: bool) -> str:
    """What no stored mistake explains, with a text and the command that stores it."""
    if not clusters:
        return ""
    items = []
    for one in clusters[:CLUSTERS]:
        count = f"{len(one.students)} student{'s' if len(one.students) > 1 else ''}"
        items.append(
            f"<h4>{html.escape(one.exercise)} · {count}</h4><p>{html.escape(one.told)}</p>"
        )
        if one.example:
            items.append(f"<pre>{html.escape(one.example)}</pre>")
        if one.example and not anonymous:
            number = lesson.partition("_")[0]
            words = ["autograder", "mistake", number, one.exercise, "--from", one.student]
            items.append(f"<pre>{html.escape(shlex.join(words))}</pre>")
    more = len(clusters) - CLUSTERS
    rest = f"<p>And {more} more, each of fewer students.</p>" if more > 0 else ""
    return (
        "<h3>What no stored mistake explains</h3><p>Gathered by what the answers returned, without "
        "its numbers. The text is one student’s, without comments. Where many gave the same wrong "
        "answer, a stored mistake with a hint helps the next class: the command prints its "
        f"beginning.</p>{''.join(items)}{rest}"
    )


def _time(rows: list[dict[str, Any]]) -> str:
    """How long the grading took, and where."""
    taken = sorted(row["seconds"] for row in rows if row.get("seconds"))
    if not taken:
        return ""
    said = (
        f"<p>{len(taken)} submissions: median {statistics.median(taken):.1f} s, "
        f"longest {taken[-1]:.1f} s, together {sum(taken):.0f} s.</p>"
    )
    slow = [
        (name, round(median, 2), f"longest {longest:.2f} s")
        for name, median, longest in item_analysis.slowest(rows)[:5]
    ]
    drawn = drawings.bars(slow, "Median seconds to grade an exercise.", " s") if slow else ""
    caption = "The slowest exercises: median time of the student’s cell and its check."
    return f"<h3>Time to grade</h3>{said}{figure(drawn, caption) if drawn else ''}"


def _in_need(rows: list[dict[str, Any]]) -> str:
    """Who has less than half of the points, and where they were lost."""
    items = []
    for row in item_analysis.in_need(rows):
        names = ", ".join(html.escape(part["name"]) for part in lost(row))
        name = html.escape(row["student"])
        items.append(f"<li><b>{name}</b>, {earned(row, ' of ')}: {names}</li>")
    if not items:
        return ""
    return f"<h3>Less than half of the points</h3><ul>{''.join(items)}</ul>"


def _absent(students: list[str]) -> str:
    """Who of the roster handed in nothing."""
    if not students:
        return ""
    names = ", ".join(f"<b>{html.escape(name)}</b>" for name in students)
    return f"<h3>Not handed in</h3><p>{len(students)} of the roster: {names}.</p>"


def _alike(pairs: list[Alike]) -> str:
    """Pairs whose answers are alike beyond chance, as a question."""
    if not pairs:
        return ""
    items = []
    for one in pairs:
        names = " and ".join(f"<b>{html.escape(name)}</b>" for name in one.students)
        items.append(f"<li>{names}: {html.escape(one.why())}</li>")
    return (
        "<h3>Did these students work together?</h3><p>Their answers share what hardly anybody "
        "else in the class, the lesson and the stored answers has, after names and comments were "
        f"taken out. {NOT_PROVED}</p><ul>{''.join(items)}</ul>"
    )
