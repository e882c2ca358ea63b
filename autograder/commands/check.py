"""``autograder check``: a student's own check of a notebook, in a terminal, on their machine."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autograder import lessons
from autograder.self_study.check import Line, NotebookError, check_notebook

DESCRIPTION = (
    "Run notebooks here and print a table of exercises with points and, for each failure, what is "
    "wrong, got, expected and likely. Exit status 1 unless all pass."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "notebooks",
        nargs="+",
        metavar="NOTEBOOK",
        help="path of a notebook, or a lesson in lessons/, as 01",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per notebook")


def run(options: argparse.Namespace) -> int:
    """Check; exit status 0 if every exercise of every notebook passes, else 1."""
    console, passed = Console(), True
    for path in map(path_of, options.notebooks):
        try:
            lines = check_notebook(path)
        except NotebookError as error:
            print(error, file=sys.stderr)
            passed = False
            continue
        passed &= all(line.earned == line.points for line in lines)
        if options.json:
            earned, points = _together(lines)
            exercises = [line.as_dict() for line in lines]
            told = {"notebook": path, "earned": earned, "points": points, "exercises": exercises}
            print(json.dumps(told, ensure_ascii=False))
        else:
            _print(console, path, lines)
    return 0 if passed else 1


def path_of(named: str) -> str:
    """The path of a lesson's notebook, for its number or name; a path stays what it is."""
    if Path(named).exists() or len(Path(named).parts) > 1 or named.endswith(".ipynb"):
        return named
    there = [one.stem for one in Path("lessons").glob("*/*.ipynb") if one.stem == one.parent.name]
    return str(lessons.notebook("", "lessons", *lessons.choose([named], there)))


def _together(lines: list[Line]) -> tuple[float, float]:
    return sum(line.earned for line in lines), sum(line.points for line in lines)


def _print(console: Console, path: str, lines: list[Line]) -> None:
    table = Table(title=Path(path).name, title_justify="left")
    table.add_column("exercise")
    table.add_column("points", justify="right")
    table.add_column("")
    for line in lines:
        table.add_row(line.name, f"{line.earned:g} of {line.points:g}", _said(line))
    table.add_section()
    earned, points = _together(lines)
    table.add_row("together", f"{earned:g} of {points:g}", "")
    console.print(table)
    for line in lines:
        if line.message:
            console.print(f"\n{line.message}", markup=False, highlight=False, soft_wrap=True)


def _said(line: Line) -> str:
    """How far an exercise is, in a word or two."""
    if line.is_right:
        return "right, without care" if line.earned < line.points else "right"
    return "in part" if line.earned else "not yet"
