"""What a class earned: a table on the terminal, a CSV and a page for the instructor.

All take ``results``: for each student and lesson a dict
``{"student", "lesson", "exercises": [{"name", "score", "max", "reason"}, …]}``, and what
``counting`` adds where points were changed by hand or for being late.
"""

import csv
import html
import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from autograder.grading import tallies
from autograder.grading.spreadsheet import harmless
from autograder.grading.tallies import total

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1f24; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 2rem }
th, td { border: 1px solid #d0d7de; padding: .3rem .6rem; text-align: center; font-size: .9rem }
th:first-child, td:first-child { text-align: left }
td.full { background: #e3f1e8 } td.none { background: #fbe5e1 } td.part { background: #fdf3d3 }
.bars { display: flex; align-items: flex-end; height: 8rem; gap: 2px; max-width: 32rem }
.bars div { flex: 1; background: #0072b2; color: #1b1f24; font-size: .75rem; text-align: center }
.bars span { position: relative; top: -1.2rem }
.axis { display: flex; justify-content: space-between; max-width: 32rem; font-size: .75rem }
@media print { body { max-width: none; margin: 0 } h2 { break-before: page } }
pre { background: #f6f8fa; padding: .6rem; white-space: pre-wrap; font-size: .85rem;
      margin: .3rem 0 }
"""


CHANGED = "* changed by hand in the gradebook, or by a late penalty"


def lessons(results: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The results grouped by lesson, lessons and students in order."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for result in sorted(results, key=lambda one: (one["lesson"], one["student"])):
        grouped.setdefault(result["lesson"], []).append(result)
    return grouped


def print_table(results: Iterable[dict[str, Any]], console: Console | None = None) -> None:
    """Print students × exercises with scores, then the reason for every lost point."""
    console = console or Console(width=120)
    width = console.width
    for lesson, rows in lessons(results).items():
        table = Table(title=lesson, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("student", no_wrap=True)
        for part in rows[0]["exercises"]:
            table.add_column(_in_lines(part["name"]), justify="right", no_wrap=True)
        table.add_column("total", justify="right", no_wrap=True)
        for row in rows:
            scores = [_points(part, "/") for part in row["exercises"]]
            earned = "{:g}/{:g}".format(*total(row)) + ("*" if row.get("penalty") else "")
            table.add_row(row["student"], *scores, earned)
        # A table wider than the terminal is hard to read, but one without columns would be wrong.
        needed = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
        console.width = max(width, needed)
        console.print(table)
        console.width = width
        for row in rows:
            for part in _lost(row):
                console.print(f"{row['student']} · {part['name']}", style="bold", highlight=False)
                reason = _indented(part["reason"])
                console.print(reason, markup=False, highlight=False, soft_wrap=True)
        if any(_changed(row) for row in rows):
            console.print(CHANGED, markup=False, highlight=False)
        console.print()


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
                    writer.writerow([*names, "late penalty", -late, 0, "handed in late", 0])


def write_html(results: Iterable[dict[str, Any]], path: Path) -> None:
    """The class report: scores by exercise, what went wrong most often, every reason."""
    parts = [
        f"<!doctype html><meta charset='utf-8'><title>Class report</title><style>{STYLE}</style>"
    ]
    parts.append("<h1>Class report</h1>")
    for lesson, rows in lessons(results).items():
        parts += [f"<h2>{html.escape(lesson)}</h2>", _spread(rows), _score_table(rows)]
        parts += [_common(rows), _in_need(rows), "<h3>Every lost point</h3>"]
        for row in rows:
            for part in _lost(row):
                parts.append(
                    f"<p><b>{html.escape(row['student'])}</b> · {html.escape(part['name'])}</p>"
                    f"<pre>{html.escape(part['reason'])}</pre>"
                )
    path.write_text("\n".join(parts), encoding="utf-8")


def _score_table(rows: list[dict[str, Any]]) -> str:
    names = [part["name"] for part in rows[0]["exercises"]]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ["student", *names, "total"])
    lines = [f"<table><tr>{head}</tr>"]
    for row in rows:
        cells = "".join(_score_cell(part) for part in row["exercises"])
        earned = "{:g} / {:g}".format(*total(row)) + ("*" if row.get("penalty") else "")
        lines.append(f"<tr><td>{html.escape(row['student'])}</td>{cells}<td>{earned}</td></tr>")
    solved, shares, apart = [], [], []
    for place in range(len(names)):
        column = [row["exercises"][place] for row in rows]
        right = sum(part["score"] >= part["max"] for part in column)
        goes_with = tallies.discrimination(rows, place)
        solved.append(f"{right} of {len(column)}")
        shares.append(f"{tallies.share_earned(rows, place):.2f}")
        apart.append("–" if goes_with is None else f"{goes_with:+.2f}")
    lines.append(_line("solved by", solved))
    lines.append(_line("share of its points", shares))
    lines.append(_line("goes with the rest", apart) + "</table>")
    if any(_changed(row) for row in rows):
        lines.append(f"<p>{CHANGED}</p>")
    lines.append(
        "<p>“Goes with the rest” is the correlation of an exercise’s points with all others’. "
        "Where it is near 0 or below, look at the exercise; of a few students it says little.</p>"
    )
    return "".join(lines)


def _line(name: str, cells: list[str]) -> str:
    return f"<tr><td>{name}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}<td></td></tr>"


def _spread(rows: list[dict[str, Any]]) -> str:
    """How the points are distributed: a sentence and a histogram in tenths."""
    earned = [total(row)[0] for row in rows]
    most, counts = total(rows[0])[1], tallies.spread(rows)
    said = (
        f"<p>{len(rows)} students, {most:g} points. Median {statistics.median(earned):g}, "
        f"lowest {min(earned):g}, highest {max(earned):g}.</p>"
    )
    bars = "".join(
        f"<div style='height:{100 * count / max(counts):.0f}%'><span>{count or ''}</span></div>"
        for count in counts
    )
    axis = f"<div class=axis><span>0</span><span>{most:g} points</span></div>"
    return f"{said}<br><div class=bars>{bars}</div>{axis}"


def _score_cell(part: dict[str, Any]) -> str:
    kind = "full" if part["score"] >= part["max"] else "none" if part["score"] == 0 else "part"
    return f"<td class={kind}>{_points(part, ' / ')}</td>"


def _points(part: dict[str, Any], between: str) -> str:
    """Points of points, with a star where they were changed by hand."""
    return f"{part['score']:g}{between}{part['max']:g}" + ("*" if "automatic" in part else "")


def _changed(row: dict[str, Any]) -> bool:
    """Whether a star stands in the line of a student."""
    return "penalty" in row or any("automatic" in part for part in row["exercises"])


def _common(rows: list[dict[str, Any]]) -> str:
    """What more than one student was told, with the hint that they read."""
    found = tallies.faults(rows)[:20]
    if not found:
        return ""
    lines = "".join(
        f"<tr><td>{html.escape(one.exercise)}</td><td>{one.students}</td>"
        f"<td>{'hint' if one.hint else 'no hint'}</td><td>{html.escape(one.text)}</td></tr>"
        for one in found
    )
    head = "<tr><th>exercise</th><th>students</th><th></th><th>what they were told</th></tr>"
    return f"<h3>What went wrong most often</h3><table>{head}{lines}</table>"


def _in_need(rows: list[dict[str, Any]]) -> str:
    """Who has less than half of the points, and where they were lost."""
    items = []
    for row in tallies.in_need(rows):
        lost = ", ".join(html.escape(part["name"]) for part in _lost(row))
        points = "{:g} of {:g}".format(*total(row))
        items.append(f"<li><b>{html.escape(row['student'])}</b>, {points}: {lost}</li>")
    if not items:
        return ""
    return f"<h3>Less than half of the points</h3><ul>{''.join(items)}</ul>"


def _in_lines(name: str) -> str:
    """A name broken after underscores and before capitals, so that its column stays narrow."""
    return re.sub(r"_(?=.)|(?<=[a-z])(?=[A-Z])", lambda found: found[0] + "\n", name)


def _lost(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in row["exercises"] if part["score"] < part["max"]]


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))
