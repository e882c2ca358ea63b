"""A word to a student who waits: a check that takes long says so once, and which call it waits for.

A loop over half a million positions is no error, and gives no verdict for minutes.
"""

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from autograder.checking.toolbox.student_answer import CALLS, called_with
from autograder.inside.answer import AnyAnswer

SECONDS = 6.0  # right answers need less, on a slow machine as well


def somebody_waits() -> bool:
    """Whether this is a notebook that somebody reads while it runs."""
    nobody = "NBGRADER_EXECUTION" in os.environ or "AUTOGRADER_SEED" in os.environ
    return "ipykernel" in sys.modules and not nobody


@contextlib.contextmanager
def word_after(seconds: float, name: str, answer: AnyAnswer) -> Iterator[AnyAnswer]:
    """Within, the check of ``name`` asks what is yielded; after ``seconds`` stdout says so, once.

    The word goes to the stdout of now, whatever it is replaced by within. It comes from a thread,
    which touches nothing else: signals and alarms remain those of the cell.
    """
    stdout, waits_for = sys.stdout, [""]

    def say() -> None:
        with contextlib.suppress(Exception):  # an output that is closed by now, say
            stdout.write(f"{name}: the check still runs after {seconds:g} s{waits_for[0]}.\n")
            stdout.flush()

    here = contextvars.copy_context()  # by which a kernel knows whose output this is
    timer = threading.Timer(seconds, here.run, [say])
    timer.daemon = True
    timer.start()
    try:
        yield _Watched(answer, waits_for)
    finally:
        timer.cancel()
        timer.join()  # a word that has begun comes before the verdict


class _Watched:
    """An answer that notes, in ``waits_for``, which call it has not returned from."""

    def __init__(self, answer: Any, waits_for: list[str]) -> None:
        self._answer, self._waits_for = answer, waits_for

    def __getattr__(self, request: str) -> Any:
        ask = getattr(self._answer, request)
        if request not in CALLS:
            return ask

        def asked(*details: Any, **how: Any) -> Any:
            what = "the gradients of " if request == "gradients" else ""
            called = called_with(*details[:2])
            self._waits_for[0] = f". It waits for {what}your code, called with {called}"
            try:
                found = ask(*details, **how)
            finally:
                self._waits_for[0] = ""
            return _Watched(found, self._waits_for) if request == "build" else found

        return asked
