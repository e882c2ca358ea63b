"""``autograder plan``: the term of a class as a table."""

import argparse

from autograder import lessons
from autograder.commands import add_shared
from autograder.grading.classroom.folders import Course
from autograder.term import course_file, plan

DESCRIPTION = (
    "Show the term that class/course.toml describes: when which lessons are due, how long they "
    "take, what they earn, and what students must have had before. With the name of a ready plan, "
    f"show that one: {', '.join(plan.PLANS)}."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="PLAN", help="a ready plan")
    words = "name each lesson's exercises, with points, stages, and which can be left out"
    parser.add_argument("--exercises", action="store_true", help=words)
    add_shared(parser, "--course")


def run(options: argparse.Namespace) -> int:
    """Print the table; exit status 0."""
    course = Course(options.course)
    choices, weeks = course.choices, dict[str, str]()
    if options.name:
        slugs = course_file.there(course.root)
        choices = course_file.parse(choices.path, plan.text(options.name), slugs)
        weeks = {
            slug: f"week {number}"
            for number, week in enumerate(plan.find(options.name).weeks, start=1)
            for slug in lessons.choose(week.split(), slugs)
        }
    found = plan.rows(choices, course.root)
    for line in plan.lines(choices, found, weeks, options.exercises):
        print(line)
    return 0
