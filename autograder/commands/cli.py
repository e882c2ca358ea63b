"""The command line ``autograder``."""

import argparse
import gc
import importlib
import importlib.util
import sys
from collections.abc import Sequence

from attention.provided.terminal_output import replace_what_cannot_be_shown
from autograder import CourseError
from autograder.commands.support import io_errors

DESCRIPTION = "Build, verify, check and grade the notebooks of the attention course."
COMMANDS = (
    *("build", "verify", "minutes", "check", "status", "collect", "book", "glass"),  # lessons
    *("release", "roster", "due", "receive", "grade", "feedback", "grades"),  # a term
    *("report", "mistake", "leaderboard", "demo", "data"),
)

NOBODY_READS = 141  # the exit status of a program whose output is closed, as a shell gives it


def parser() -> argparse.ArgumentParser:
    """The argument parser of all commands."""
    top = argparse.ArgumentParser(prog="autograder", description=DESCRIPTION)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in filter(_is_here, COMMANDS):
        command = importlib.import_module(f"autograder.commands.{name}")
        one = commands.add_parser(name, help=command.HELP, description=command.DESCRIPTION)
        command.add_arguments(one)
        one.set_defaults(run=command.run)
    return top


def _is_here(name: str) -> bool:
    """Whether the command is part of this copy: students get those that they can use."""
    return importlib.util.find_spec(f"autograder.commands.{name}") is not None


def _import_jsonschema_without_addresses() -> None:
    """Import jsonschema, which nbformat needs, without the package rfc3987_syntax.

    That one takes a second to build the grammar of international addresses on import. No schema of
    a notebook uses it, and jsonschema does without where it is not installed.
    """
    name = "rfc3987_syntax"
    if "jsonschema" not in sys.modules and name not in sys.modules:
        sys.modules[name] = None  # type: ignore[assignment]  # importing it raises ImportError
        importlib.import_module("jsonschema")
        del sys.modules[name]


def _readable(text: str) -> str:
    """``text`` on a terminal: a file's name in it, which may be a student's, commands nothing."""
    return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    gc.set_threshold(50_000, 20, 50)  # imports leave little garbage to look for
    replace_what_cannot_be_shown()
    try:
        options = parser().parse_args(arguments)
        _import_jsonschema_without_addresses()
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
        return 130


if __name__ == "__main__":
    sys.exit(main())
