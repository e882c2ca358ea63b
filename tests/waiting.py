"""Waiting for what must come: a test fails on what is wrong, never on what is late."""

import time

# Seconds. What takes a minute on a quiet machine comes on one that gives a tenth of its speed, too.
LONG = 600


def until(condition, what, seconds=LONG, pause=0.05):
    """Wait until ``condition()`` is true, and return what it gave; ``what`` says it in words."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s, in vain, for {what}")
        time.sleep(pause)
    return found
