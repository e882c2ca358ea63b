"""``autograder status``: how far a learner is."""

import argparse
import json
from dataclasses import asdict

HELP = "say how far you are: exercises, points, minutes left, and what is next"
DESCRIPTION = (
    "Read the notebooks in lessons/ and print a table: which exercises are done, how many points "
    "that makes, how many minutes are left and what is next. Nothing is run: what counts is the "
    "saved output of a check. `autograder check` runs the checks themselves."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder."""
    add = parser.add_argument
    add("folder", nargs="?", help="the folder of the lessons (default: lessons/ of the course)")
    add("--json", action="store_true", help="print one JSON object per lesson")


def run(options: argparse.Namespace) -> int:
    """Print the table; exit status 0."""
    from autograder.self_study import status

    lessons = status.read(options.folder)
    if not options.json:
        print(status.table(lessons))
        return 0
    for lesson in lessons:
        left = round(lesson.minutes_left)
        print(json.dumps({**asdict(lesson), "minutes_left": left}, ensure_ascii=False))
    return 0
