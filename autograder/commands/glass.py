"""``autograder glass``: the shipped translator as a page to look through."""

import argparse
from pathlib import Path

from autograder.building.glass_translator import PAGE, write

DESCRIPTION = (
    "Write one HTML file in which the trained Transformer of lesson 10 translates, with every "
    "number that it computes on the way. The file holds all that it needs, and asks for nothing."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        type=lambda text: Path(text).expanduser(),
        default=PAGE,
        metavar="FILE",
        help="(default: book/_build/html/glass.html in the course)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the page; exit status 0."""
    size = write(options.to)
    print(f"{options.to}: {size / 1e6:.2f} MB")
    return 0
