"""``autograder demo``: release the lessons, grade a small class and show the results."""

import argparse

HELP = "release, hand in for a small class, grade it and show the results"
DESCRIPTION = (
    "Release all lessons, hand in some for a class of eight (right, careless, wrong, blank and "
    "broken), grade it with nbgrader, print the reason for every lost point, and write feedback, "
    "a CSV and a class report."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lessons",
        nargs="*",
        metavar="LESSON",
        default=["00", "01"],
        help="number or name of a lesson to hand in (default: 00 and 01)",
    )
    parser.add_argument("--folder", default=".demo", help="where to work (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Run the demonstration; exit status 0 if all was graded."""
    from autograder.commands.demonstration import demonstrate

    return demonstrate(options.folder, options.lessons)
