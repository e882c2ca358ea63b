"""``autograder new-lesson``: begin a lesson of your own, in a folder of yours."""

import argparse

from autograder.building.own.skeleton import begin
from autograder.lessons import name_of
from autograder.term import course_file

DESCRIPTION = (
    "Write the five files of a small lesson into a folder of yours outside the course, and link "
    "them into it. The lesson passes all gates as it is: edit it from there. class/course.toml "
    "names the folder from then on, and every command links what is in it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="small letters and _, as in fourier_features")
    words = "the folder of all your lessons (default: that of class/course.toml)"
    parser.add_argument("--to", default="", metavar="FOLDER", help=words)


def run(options: argparse.Namespace) -> int:
    """Write, and say what to do next; exit status 0."""
    paths = begin(options.name, options.to)
    for path in paths:
        print(f"wrote  {path}")
    slug = next(path.stem for path in paths if path.parent.name == "source")
    print(f"The lesson {name_of(slug)} is linked into this course. Next:")
    print(f"  autograder build {slug[:2]}\n  autograder verify {slug[:2]}")
    if course_file.read().chosen:
        print(f"  and add [lessons.{slug[:2]}] to class/course.toml, or the class does not have it")
    return 0
