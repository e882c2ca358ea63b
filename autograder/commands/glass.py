"""``autograder glass``: the shipped translator as a page to look through."""

import argparse
from pathlib import Path

HELP = "write a page in which the shipped translator runs and shows all that it computes"
DESCRIPTION = (
    "Write one HTML file in which the trained Transformer of lesson 10 translates, with every "
    "number that it computes on the way. The file holds all that it needs, and asks for nothing."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        type=lambda text: Path(text).expanduser(),
        metavar="FILE",
        help="(default: book/_build/html/glass.html in the course)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the page; exit status 0."""
    from autograder.building.glass_translator import PAGE, write

    to = options.to or PAGE
    size = write(to)
    print(f"{to}: {size / 1e6:.2f} MB")
    return 0
