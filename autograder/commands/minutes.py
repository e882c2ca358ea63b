"""``autograder minutes``: how long lessons take."""

import argparse

from autograder.building.lesson import find, read
from autograder.building.minutes import count
from autograder.commands import LESSONS

DESCRIPTION = (
    "Count the minutes of each lesson: its text at 150 words a minute, hints left out, and the "
    "minutes of its exercises. What stands under a heading with a star is beyond the core path."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", **LESSONS)


def run(options: argparse.Namespace) -> int:
    """Print a line for each lesson; exit status 0."""
    print(f"{'lesson':<34}{'stated':>8}{'core':>8}{'reading':>9}{'exercises':>11}{'beyond':>8}")
    for path in find(options.lessons):
        one = count(read(path))
        print(
            f"{one.lesson:<34}{one.stated:>8}{one.core:>8.0f}{one.reading:>9.0f}"
            f"{one.exercises:>11}{one.starred:>8.0f}"
        )
    return 0
