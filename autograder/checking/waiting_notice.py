"""A word to a student who waits: a check that takes long says so once.

A loop over half a million positions is no error, and gives no verdict for minutes.
"""

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Iterator

SECONDS = 6.0  # right answers need less, on a slow machine as well


def somebody_waits() -> bool:
    """Whether this is a notebook that somebody reads while it runs."""
    nobody = "NBGRADER_EXECUTION" in os.environ or "AUTOGRADER_SEED" in os.environ
    return "ipykernel" in sys.modules and not nobody


@contextlib.contextmanager
def word_after(seconds: float, name: str) -> Iterator[None]:
    """Within, after so many ``seconds``, stdout says once that the check of ``name`` still runs.

    The word goes to the stdout of now, whatever it is replaced by within. It comes from a thread,
    which touches nothing else: signals and alarms remain those of the cell.
    """
    stdout = sys.stdout

    def say() -> None:
        with contextlib.suppress(Exception):  # an output that is closed by now, say
            stdout.write(f"{name}: the check still runs after {seconds:g} s.\n")
            stdout.flush()

    here = contextvars.copy_context()  # by which a kernel knows whose output this is
    timer = threading.Timer(seconds, here.run, [say])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # a word that has begun comes before the verdict
