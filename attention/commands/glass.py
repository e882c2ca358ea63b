"""``autograder glass``: shipped models, each as a page to look through."""

import argparse
from pathlib import Path

from attention.pages import glass_translator, writer_page

DESCRIPTION = (
    "Write one HTML file in which shipped models run, with the numbers that they compute on the "
    "way: the trained Transformer of lesson 10 translates, and the small BERT of lesson 19 reads a "
    "sentence; or, with `writer`, the small decoder of lesson 20 goes on with a text. The file "
    "holds all that it needs, and asks for nothing."
)
PAGES = {"translator": glass_translator, "writer": writer_page}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "page",
        nargs="?",
        choices=PAGES,
        default="translator",
        help="which page (default: %(default)s)",
    )
    parser.add_argument(
        "--to",
        type=lambda text: Path(text).expanduser(),
        metavar="FILE",
        help="(default: book/_build/html/glass.html or writer.html in the course)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the page; exit status 0."""
    page = PAGES[options.page]
    to = options.to or page.PAGE
    size = page.write(to)
    print(f"{to}: {size / 1e6:.2f} MB")
    return 0
