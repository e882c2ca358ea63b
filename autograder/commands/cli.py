"""The command line ``autograder``."""

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder import ROOT, CourseError
from autograder.building.own import links
from autograder.commands.support import STOPPED, io_errors
from autograder.settings import COURSE
from autograder.terminal_output import replace_what_cannot_be_shown

DESCRIPTION = f"Build, verify, check and grade the notebooks of the course “{COURSE.title}”."
COMMANDS = {  # what each says of itself in the list of all
    "build": "make solutions/ and lessons/ from source/ and the library",
    "verify": "prove that the grading of a lesson is right: the seven gates",
    "check": "check your own notebook in a terminal",
    "status": "say how far you are: exercises, points, minutes left, and what is next",
    "collect": "collect the pieces that you have built, to train with them",
    "book": "build the course as a web page",
    "init": "write class/course.toml, in which a class chooses what it has",
    "plan": "show the term of a class as a table",
    "new-lesson": "begin a lesson of your own, in a folder of yours",
    "release": "make what students get: lessons, the library before them, no solution",
    "roster": "put the students of a class into the gradebook, from CSV",
    "due": "set or show when lessons are due",
    "receive": "take what came back: an LMS's zip, or a folder of mailed files",
    "grade": "grade a class in a sandbox, on all cores",
    "feedback": "make the pages that students read, and give them back",
    "grades": "write the scores in the form that an LMS imports",
    "report": "a page of what a class earned, and why points were lost",
    "explain": "say why a student lost points in an exercise, with the call that failed",
    "demo": "hand in for a small class, grade it and show the results",
}
MODULES = {name: f"autograder.commands.{name.replace('-', '_')}" for name in COMMANDS}
# The course's own stand behind them.
COMMANDS |= {name: command["help"] for name, command in COURSE.commands.items()}
MODULES |= {name: command["module"] for name, command in COURSE.commands.items()}
NOBODY_READS = 141  # the exit status of a program whose output is closed, as a shell gives it


def parser(chosen: str = "") -> argparse.ArgumentParser:
    """The argument parser; only the command ``chosen`` is imported, and has its options."""
    top = argparse.ArgumentParser(prog="autograder", description=DESCRIPTION)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, words in COMMANDS.items():
        module = MODULES[name]
        if not ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file():
            continue  # students get those that they can use
        one = commands.add_parser(name, help=words)
        if name == chosen:
            command = importlib.import_module(module)
            one.description = command.DESCRIPTION
            command.add_arguments(one)
            one.set_defaults(run=command.run)
    return top


def _refuse_another_copy() -> None:
    """Raise CourseError in a folder with a course of its own: this one's checks are not for it."""
    here = Path.cwd()
    if (here / "autograder" / "commands" / "cli.py").is_file() and here != ROOT:
        raise CourseError(
            f"{here} has a course of its own, and this autograder is that of {ROOT}: install and "
            "use the one that is here, as its README.md says"
        )


def _readable(text: str) -> str:
    """``text`` on a terminal: a file's name in it, which may be a student's, commands nothing."""
    return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    gc.set_threshold(50_000, 20, 50)  # imports leave little garbage to look for
    replace_what_cannot_be_shown()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(*words[:1]).parse_args(words)
        _refuse_another_copy()
        links.link()  # an instructor's own lessons, if there are any
        status = options.run(options)
        sys.stdout.flush()
        return status
    except CourseError as error:
        print(_readable(str(error)), file=sys.stderr)
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
