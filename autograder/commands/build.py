"""``autograder build``: make the notebooks."""

import argparse
import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeElapsedColumn

from autograder import ROOT
from autograder.building.build import build
from autograder.commands import LESSONS

DESCRIPTION = (
    "Make the notebooks: source and library into executed solutions/, then lessons/ with "
    "nbgrader's generate_assignment. Only changed lessons are executed."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", **LESSONS)
    parser.add_argument(
        "--check",
        action="store_true",
        help="execute and write nothing; list the files that differ and exit with 1 if any does",
    )


def run(options: argparse.Namespace) -> int:
    """Build; exit status 0, or 1 if a file is left over or, with check, differs."""
    with _progress() as progress:
        report = build(options.lessons, check=options.check, progress=progress)
    for path in report.changed:
        print(f"{'differs' if options.check else 'wrote'}  {path.relative_to(ROOT)}")
    for path in report.leftovers:
        print(f"left over  {path.relative_to(ROOT)}: its source is gone; delete it")
    if options.check and report.changed:
        print("Generated notebooks do not match their source: run `autograder build`.")
    if not report.changed and not report.leftovers:
        print("Everything is up to date.")
    return int(bool(report.leftovers or options.check and report.changed))


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar per lesson; yields ``update(slug, done, total)``."""
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), "cells")
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
    tasks: dict[str, TaskID] = {}

    def update(slug: str, done: int, total: int) -> None:
        if not tasks:
            bar.start()  # not before there is something to show: it would print an empty line
        if slug not in tasks:
            tasks[slug] = bar.add_task(slug, total=total)
        bar.update(tasks[slug], completed=done)

    try:
        yield update
    finally:
        if tasks:
            bar.stop()
