"""What a class earned: a table on the terminal, a CSV and a page for the instructor.

All take ``results``: for each student and lesson a dict
``{"student", "lesson", "exercises": [{"name", "score", "max", "reason"}, …]}``.
"""

import csv
import html
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1f24; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 2rem }
th, td { border: 1px solid #d0d7de; padding: .3rem .6rem; text-align: center; font-size: .9rem }
th:first-child, td:first-child { text-align: left }
td.full { background: #e3f1e8 } td.none { background: #fbe5e1 } td.part { background: #fdf3d3 }
pre { background: #f6f8fa; padding: .6rem; white-space: pre-wrap; font-size: .85rem;
      margin: .3rem 0 }
"""


def lessons(results: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The results grouped by lesson, lessons and students in order."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for result in sorted(results, key=lambda one: (one["lesson"], one["student"])):
        grouped.setdefault(result["lesson"], []).append(result)
    return grouped


def total(result: dict[str, Any]) -> tuple[float, float]:
    """Pair (points earned, points there are) of one result."""
    parts = result["exercises"]
    return sum(part["score"] for part in parts), sum(part["max"] for part in parts)


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
            scores = [f"{part['score']:g}/{part['max']:g}" for part in row["exercises"]]
            table.add_row(row["student"], *scores, "{:g}/{:g}".format(*total(row)))
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
        console.print()


def write_csv(results: Iterable[dict[str, Any]], path: Path) -> None:
    """One row per student, lesson and exercise: score, points there are, reason."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["student", "lesson", "exercise", "score", "max", "reason"])
        for rows in lessons(results).values():
            for row in rows:
                for part in row["exercises"]:
                    writer.writerow(
                        [row["student"], row["lesson"]]
                        + [part[key] for key in ("name", "score", "max", "reason")]
                    )


def write_html(results: Iterable[dict[str, Any]], path: Path) -> None:
    """The class report: scores by exercise, what went wrong most often, every reason."""
    parts = [
        f"<!doctype html><meta charset='utf-8'><title>Class report</title><style>{STYLE}</style>"
    ]
    parts.append("<h1>Class report</h1>")
    for lesson, rows in lessons(results).items():
        parts += [f"<h2>{html.escape(lesson)}</h2>", _score_table(rows), _common(rows)]
        parts.append("<h3>Every lost point</h3>")
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
        earned = "{:g} / {:g}".format(*total(row))
        lines.append(f"<tr><td>{html.escape(row['student'])}</td>{cells}<td>{earned}</td></tr>")
    shares = []
    for index in range(len(names)):
        column = [row["exercises"][index] for row in rows]
        solved = sum(part["score"] == part["max"] for part in column)
        shares.append(f"<td>{solved} of {len(column)}</td>")
    lines.append(f"<tr><td>solved by</td>{''.join(shares)}<td></td></tr></table>")
    return "".join(lines)


def _score_cell(part: dict[str, Any]) -> str:
    kind = "full" if part["score"] == part["max"] else "none" if part["score"] == 0 else "part"
    return f"<td class={kind}>{part['score']:g} / {part['max']:g}</td>"


def _common(rows: list[dict[str, Any]]) -> str:
    """The first lines of the reasons that came more than once, most frequent first."""
    firsts = Counter(part["reason"].split("\n")[0] for row in rows for part in _lost(row))
    repeated = [(text, count) for text, count in firsts.most_common(10) if count > 1]
    if not repeated:
        return ""
    items = "".join(f"<li>{count} × {html.escape(text)}</li>" for text, count in repeated)
    return f"<h3>What went wrong most often</h3><ul>{items}</ul>"


def _in_lines(name: str) -> str:
    """A name broken after underscores and before capitals, so that its column stays narrow."""
    return re.sub(r"_(?=.)|(?<=[a-z])(?=[A-Z])", lambda found: found[0] + "\n", name)


def _lost(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in row["exercises"] if part["score"] < part["max"]]


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))
