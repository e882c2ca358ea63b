"""``autograder collect``: what a student has passed, as a package of their own."""

import argparse
import itertools
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autograder import ROOT
from autograder.commands.check import path_of
from autograder.pieces import Piece
from autograder.self_study import collect, status
from autograder.self_study.check import NotebookError
from autograder.self_study.collect import NOT_WRITTEN
from autograder.settings import COURSE

DESCRIPTION = (
    "Run your notebooks here, check them, and write your own text of each exercise that passes "
    "into a folder, one module per lesson, with the imports and helpers that it uses. A table says "
    "which pieces are yours, which are left to the library, and why. Exercises that ask for an "
    f"input are no pieces. {COURSE.collected}"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "notebooks",
        nargs="*",
        metavar="NOTEBOOK",
        help="a notebook, a folder of lessons, or a lesson in lessons/, as 01 (default: all there)",
    )
    parser.add_argument(
        "--to", type=Path, default=Path("mine"), metavar="FOLDER", help="default: mine"
    )


def run(options: argparse.Namespace) -> int:
    """Collect; exit status 0, or 1 if a notebook could not be read."""
    collect.refuse_other(options.to)
    found, failed = [], 0
    for path in _paths(options.notebooks):
        print(f"{path.name} …", flush=True)
        try:
            found.append(collect.collect(path))
        except NotebookError as error:
            print(error, file=sys.stderr)
            failed = 1
    if found:
        anew = {one.lesson for one in found}
        every = collect.write(options.to, found)
        _print([one for one in every if one.lesson in anew], options.to)
    return failed


def _paths(named: list[str]) -> list[Path]:
    """The notebooks that are named, or those of the course's own lessons."""
    found: list[Path] = []
    for name in named or [str(ROOT / "lessons")]:
        path = Path(name if Path(name).is_dir() else path_of(name))
        counted, left = status.notebooks(path)
        print(status.not_counted(left), end="")
        found += counted + sorted(path.glob("[0-9][0-9]_*.ipynb"))
        found += [] if path.is_dir() else [path]
    return found


def _print(pieces: list[Piece], folder: Path) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("lesson", "exercise", "whose", "why"):
        table.add_column(title, overflow="fold")
    for notebook, of_lesson in itertools.groupby(pieces, key=lambda one: one.notebook):
        waiting = []
        for one in of_lesson:
            if one.why == NOT_WRITTEN:
                waiting.append(one.name)
            else:
                whose = "yours" if one.yours else "library"
                table.add_row(notebook[:2], one.name, whose, one.why)
        if waiting:  # in one row: at first that is most of the course
            table.add_row(notebook[:2], ", ".join(waiting), "library", NOT_WRITTEN)
    console = Console(highlight=False, markup=False)
    console.print(table)
    yours = sum(one.yours for one in pieces)
    console.print(f"{yours} of {len(pieces)} pieces are yours, in {folder}.", soft_wrap=True)
