"""``autograder status``: how far a learner is."""

import argparse
from pathlib import Path

from autograder import ROOT
from autograder.self_study import status

DESCRIPTION = (
    "Read the notebooks in lessons/ and print a table: which exercises are done, how many points "
    "that makes, how many minutes are left and what is next. Nothing is run: what counts is the "
    "saved output of a check. `autograder check` runs the checks themselves."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "the folder of the lessons (default: lessons/ of the course)"
    parser.add_argument("folder", nargs="?", help=words)


def run(options: argparse.Namespace) -> int:
    """Print the table; exit status 0."""
    print(status.table(status.read(options.folder)))
    print(status.not_counted(status.notebooks(Path(options.folder or ROOT / "lessons"))[1]), end="")
    return 0
