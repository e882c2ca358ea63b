"""``autograder build``: make the notebooks."""

import argparse
import contextlib

from autograder import ROOT
from autograder.commands import LESSONS

HELP = "make solutions/ and lessons/ from source/ and attention/"
DESCRIPTION = (
    "Make the notebooks: source and library into executed solutions/, then lessons/ with "
    "nbgrader's generate_assignment. Only changed lessons are executed."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the lessons and ``--check``."""
    parser.add_argument("lessons", **LESSONS)
    parser.add_argument(
        "--check",
        action="store_true",
        help="execute and write nothing; list the files that differ and exit with 1 if any does",
    )


def run(options: argparse.Namespace) -> int:
    """Build; exit status 0, or 1 if a file is left over or, with check, differs."""
    from autograder.building.build import build
    from autograder.commands.progress import cells_progress

    with cells_progress() if not options.check else contextlib.nullcontext() as progress:
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
