"""The command line ``autograder``."""

import argparse
import gc
import importlib
import sys
from collections.abc import Container, Sequence
from pathlib import Path

from autograder import ROOT, CourseError
from autograder.commands.support import STOPPED, io_errors
from autograder.settings import COURSE
from autograder.terminal_output import printable, replace_what_cannot_be_shown

DESCRIPTION = f"Build, verify, check and grade the notebooks of the course “{COURSE.title}”."
COMMANDS = {  # by what somebody wants to do; what each says of itself
    "A term, from week to week": {
        "init": "write class/course.toml: lessons, points, dates; and who is in the class",
        "release": "make what students get: lessons, the library before them, no solution",
        "receive": "take what came back: an LMS's zip, or a folder of mailed files",
        "grade": "grade a class in a sandbox, on all cores",
        "feedback": "make the pages that students read, and give them back",
        "grades": "write the scores in the form that an LMS imports",
    },
    "Now and then, for a class": {
        "demo": "hand in for a small class, grade it and show the results",
        "roster": "put the students of a class into the gradebook, from CSV",
        "plan": "show the term of a class as a table",
        "due": "show when lessons are due, or give a student more time",
        "report": "a page of what a class earned, and why points were lost",
        "explain": "say why a student lost points, with the call that failed",
    },
    "To learn": {
        "check": "check your own notebook in a terminal",
        "status": "say how far you are: exercises, points, minutes left, and what is next",
        "collect": "collect the pieces that you have built, to train with them",
    },
    "To write lessons": {
        "build": "make solutions/ and lessons/ from source/ and the library",
        "verify": "prove that the grading of a lesson is right: the seven gates",
        "new-lesson": "begin a lesson of your own",
        "book": "build the course as a web page",
    },
    "Of this course": {name: command["help"] for name, command in COURSE.commands.items()},
}
MODULES = {
    name: f"autograder.commands.{name.replace('-', '_')}"
    for commands in COMMANDS.values()
    for name in commands
} | {name: command["module"] for name, command in COURSE.commands.items()}
NOBODY_READS = 141  # the exit status of a program whose output is closed, as a shell gives it


def parser(chosen: str = "") -> argparse.ArgumentParser:
    """The argument parser; only the command ``chosen`` is imported, and has its options."""
    there = {name: module for name, module in MODULES.items() if _is_there(module)}
    top = argparse.ArgumentParser(
        prog="autograder",
        usage="autograder COMMAND …",
        description=DESCRIPTION,
        epilog=_listed(there),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(
        prog="autograder", dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    for name, module in there.items():
        one = commands.add_parser(name)
        if name == chosen:
            command = importlib.import_module(module)
            one.description = command.DESCRIPTION
            command.add_arguments(one)
            one.set_defaults(run=command.run)
    return top


def _is_there(module: str) -> bool:
    """Whether there is a command's module: students get those that they can use."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file()


def _listed(there: Container[str]) -> str:
    """The commands that are there, below what they are for."""
    lines = []
    for purpose, commands in COMMANDS.items():
        known = {name: words for name, words in commands.items() if name in there}
        lines += ["", purpose + ":"] * bool(known)
        lines += [f"  {name:<12}{words}" for name, words in known.items()]
    return "\n".join([*lines[1:], "", "autograder COMMAND --help says more of each."])


def _refuse_another_copy() -> None:
    """Raise CourseError in a folder with a course of its own: this one's checks are not for it."""
    here = Path.cwd()
    if (here / "autograder" / "commands" / "cli.py").is_file() and here != ROOT:
        raise CourseError(
            f"{here} has a course of its own, and this autograder is that of {ROOT}: install and "
            "use the one that is here, as its README.md says"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    gc.set_threshold(50_000, 20, 50)  # imports leave little garbage to look for
    replace_what_cannot_be_shown()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(*words[:1]).parse_args(words)
        _refuse_another_copy()
        status = options.run(options)
        sys.stdout.flush()
        return status
    except CourseError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    except BrokenPipeError:
        io_errors.nobody_reads()
        return NOBODY_READS
    except OSError as error:
        print(io_errors.sentence(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return STOPPED


if __name__ == "__main__":
    sys.exit(main())
