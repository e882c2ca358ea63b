"""``autograder new-lesson``: begin a lesson of your own."""

import argparse

from autograder.building.new_lesson import begin
from autograder.term import course_file

DESCRIPTION = (
    "Write the five files of a small lesson into the course. The lesson passes all gates as it is: "
    "edit it from there. Its number, from 50 on, is none that a lesson of ours will have."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="small letters and _, as in fourier_features")


def run(options: argparse.Namespace) -> int:
    """Write, and say what to do next; exit status 0."""
    paths = begin(options.name)
    for path in paths:
        print(f"wrote  {path}")
    number = paths[0].stem[:2]
    print(f"Next:\n  autograder build {number}\n  autograder verify {number}")
    if course_file.read().chosen:
        print(f"  and add [lessons.{number}] to class/course.toml, or the class does not have it")
    return 0
