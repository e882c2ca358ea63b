"""``autograder book``: the course as a web page."""

import argparse
from pathlib import Path

from autograder import ROOT
from autograder.building.book.write import build, repository_in
from autograder.commands import LESSONS

DESCRIPTION = (
    "Build a web page of the solved lessons, with Sphinx, from solutions/ and book/. Nothing is "
    "executed, and the pages ask for nothing from the network."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", **LESSONS)
    parser.add_argument(
        "--to",
        type=Path,
        default=ROOT / "book" / "_build",
        metavar="FOLDER",
        help="where source/ and html/ are made anew (default: book/_build)",
    )


def run(options: argparse.Namespace) -> int:
    """Build, and print where the first page is; exit status 0."""
    address = repository_in(ROOT / "pyproject.toml")
    print(build(options.lessons, options.to.resolve(), repository=address))
    return 0
