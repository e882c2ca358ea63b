"""The command ``autograder``: build, verify, check and grade the course's notebooks."""

import argparse
import importlib
import sys

from autograder import CourseError

DESCRIPTION = "Build, verify, check and grade the notebooks of the attention course."


def parser():
    """The argument parser of all commands."""
    top = argparse.ArgumentParser(prog="autograder", description=DESCRIPTION)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lessons = {
        "nargs": "*",
        "metavar": "LESSON",
        "help": "number or name, as in 01 or kernel_regression (default: all lessons)",
    }

    build = commands.add_parser(
        "build",
        help="make solutions/ and lessons/ from source/ and attention/",
        description="Make the notebooks: source and library into executed solutions/, then "
        "lessons/ with nbgrader's generate_assignment. Only changed lessons are executed.",
    )
    build.add_argument("lessons", **lessons)
    build.add_argument(
        "--check",
        action="store_true",
        help="execute and write nothing; list the files that differ and exit with 1 if any does",
    )
    build.set_defaults(module="autograder.building.build")

    verify = commands.add_parser(
        "verify",
        help="prove that the grading of a lesson is right: the six gates",
        description="Take lessons through the six gates: solved earns all, blank earns nothing, "
        "every named mistake is rejected by name, every alternative passes, no solution leaks, "
        "generated files match their source. Exit status 1 if any gate fails.",
    )
    verify.add_argument("lessons", **lessons)
    verify.add_argument("--json", action="store_true", help="print one JSON object per lesson")
    verify.set_defaults(module="autograder.building.verify")

    check = commands.add_parser(
        "check",
        help="check your own notebook in a terminal",
        description="Run notebooks here and print a table of exercises with points and, for each "
        "failure, what is wrong, got, expected and likely. Exit status 1 unless all pass.",
    )
    check.add_argument("notebooks", nargs="+", metavar="NOTEBOOK", help="path of a notebook")
    check.set_defaults(module="autograder.commands.check")

    from autograder.commands import grade

    grading = commands.add_parser(
        "grade", help="grade a class in a sandbox, on all cores", description=grade.DESCRIPTION
    )
    grade.add_arguments(grading)
    grading.set_defaults(module="autograder.commands.grade")

    demo = commands.add_parser(
        "demo",
        help="release, hand in for a small class, grade it and show the results",
        description="Release all lessons, hand in some for a class of seven (right, wrong, blank "
        "and broken), grade it with nbgrader, print scores with the reason for every lost point, "
        "and write feedback, a CSV and a class report.",
    )
    demo.add_argument(
        "lessons",
        nargs="*",
        metavar="LESSON",
        default=["00", "01"],
        help="number or name of a lesson to hand in (default: 00 and 01)",
    )
    demo.add_argument("--folder", default=".demo", help="where to work (default: %(default)s)")
    demo.set_defaults(module="autograder.commands.demo")

    from autograder.commands import data

    data = commands.add_parser(
        "data", help="fetch a corpus of real sentences", description=data.DESCRIPTION
    )
    data.add_arguments(data)
    data.set_defaults(module="autograder.commands.data")
    return top


def _import_jsonschema_without_addresses():
    """Import jsonschema, which nbformat needs, without the package rfc3987_syntax.

    That one takes a second to build the grammar of international addresses on import. No schema of
    a notebook uses it, and jsonschema does without where it is not installed.
    """
    name = "rfc3987_syntax"
    if "jsonschema" not in sys.modules and name not in sys.modules:
        sys.modules[name] = None  # importing it now raises ImportError
        importlib.import_module("jsonschema")
        del sys.modules[name]


def main(arguments=None):
    """Run the command line; returns the exit status."""
    options = parser().parse_args(arguments)
    _import_jsonschema_without_addresses()
    try:
        return importlib.import_module(options.module).run(options)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
