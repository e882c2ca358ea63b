"""What a disk or a reader of our output may do at any moment: one sentence each, no traceback."""

import contextlib
import errno
import os
import sys

from autograder.grading.notebook.result import clean
from autograder.temporary import FULL, place

GOES_ON = "What is written stays: run the same command again, and it goes on."


def sentence(error: OSError) -> str:
    """What happened to which file, and what to do."""
    where = f"{clean(place(error))}: " if place(error) else ""
    if error.errno in FULL:
        return f"{where}the disk is full. Make room there. {GOES_ON}"
    if error.errno == errno.EROFS:
        return f"{where}this disk can only be read. Make it writable. {GOES_ON}"
    if isinstance(error, PermissionError):
        return f"{where}you may not read or change this: look at its owner and rights. {GOES_ON}"
    why = clean(str(error.strerror or error)) or type(error).__name__
    return f"{where}{why}." + (f" {GOES_ON}" if error.errno == errno.EIO else "")


def nobody_reads() -> None:
    """Our output was closed, as by ``| head``: let nothing that is left to print fail, too."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
