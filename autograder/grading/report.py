"""What a class earned: a table on the terminal, and a CSV.

Both take ``results``: for each student and lesson a dict
``{"student", "lesson", "exercises": [{"name", "score", "max", "reason"}, …]}``.
"""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from autograder.grading.tallies import total


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
            scores = [f"{part['score']:g}/{part['max']:g}" for part in row["exercises"]]
            table.add_row(row["student"], *scores, "{:g}/{:g}".format(*total(row)))
        # A table wider than the terminal is hard to read, but one without columns would be wrong.
        needed = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
        console.width = max(width, needed)
        console.print(table)
        console.width = width
        for row in rows:
            for part in lost(row):
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
                    words = [row["student"], row["lesson"], part["name"]]
                    numbers = [part["score"], part["max"]]
                    writer.writerow([*map(as_text, words), *numbers, as_text(part["reason"])])


def as_text(text: str) -> str:
    """``text`` so that a spreadsheet takes it for text, not for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _in_lines(name: str) -> str:
    """A name broken after underscores and before capitals, so that its column stays narrow."""
    return re.sub(r"_(?=.)|(?<=[a-z])(?=[A-Z])", lambda found: found[0] + "\n", name)


def lost(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The exercises of one student's lesson in which points were lost."""
    return [part for part in row["exercises"] if part["score"] < part["max"]]


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))
