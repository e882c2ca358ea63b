"""How a command that reads a run ends: with a sentence and a status, never with a traceback."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable

from attention.provided.models.model_file import ModelFileError
from attention.train.mine import using
from attention.train.runs.run_folder import RunFolderError
from autograder.terminal_output import printable

ERRORS = (ModelFileError, RunFolderError, ValueError)  # say what to do
NOBODY_READS = 141  # the exit status of a program whose output is closed, as a shell gives it


def status_of(
    program: str,
    run: Callable[[argparse.Namespace], int],
    options: argparse.Namespace,
    stopped: str = "stopped",
    again: str = "train in another --folder",
) -> int:
    """Run a command with parsed options; returns its exit status.

    program  its name, in front of what is wrong
    stopped  what is said when somebody stops it
    again    what is to be done when a learner's piece that failed is mended
    """
    try:
        return run(options)
    except ERRORS as error:
        return complain(program, str(error))
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):  # nothing that is left shall fail, too
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except Exception as error:
        said = using.blame(error, again)
        if not said and isinstance(error, OSError):
            said = f"{error.filename or 'a file'}: {error.strerror}"
        if not said:
            raise
        return complain(program, said)
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        return 130


def complain(program: str, sentence: str) -> int:
    """Print what is wrong; returns the exit status."""
    print(printable(f"{program}: {sentence}"), file=sys.stderr, flush=True)
    return 1
