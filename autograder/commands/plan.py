"""``autograder plan``: the term of a class as a table."""

import argparse

from autograder.commands import add_shared
from autograder.grading.classroom.database import refuse_strangers
from autograder.grading.classroom.folders import Course
from autograder.term import plan

DESCRIPTION = (
    "Show the term that class/course.toml describes: when which lessons are due, how long they "
    "take, what they earn, and what students must have had before. `autograder init --plan` begins "
    "with a ready one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "name each lesson's exercises, with points, stages, and which can be left out"
    parser.add_argument("--exercises", action="store_true", help=words)
    add_shared(parser, "--course")


def run(options: argparse.Namespace) -> int:
    """Print the table; exit status 0."""
    course = Course(options.course)
    refuse_strangers(course)
    found = plan.rows(course.choices, course.root)
    for line in plan.lines(course.choices, found, options.exercises):
        print(line)
    return 0
