"""Grade what waits, with a bar that shows on a terminal how far that is."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from autograder.grading.classroom.folders import Handed
from autograder.grading.notebook.result import Result
from autograder.grading.running.batch import Batch

COLUMNS = ("{task.description}", BarColumn(), MofNCompleteColumn(), "{task.fields[rate]}")


def announce(batch: Batch, count: int, again: str, skipped: str) -> None:
    """Say in words for it who of ``count`` is skipped, and why others are graded again."""
    if batch.done:
        print(f"{len(batch.done)} of {count} are graded and unchanged: {skipped}.")
    for reason, number in Counter(batch.reasons.values()).most_common():
        print(f"{number} of {count} {again}: {reason}.")
    sys.stdout.flush()


def work(
    batch: Batch, workers: Any, name: str, line: Callable[[int, Handed, Result], str] | None = None
) -> bool:
    """Grade all that waits in a batch; whether it came to its end, and was not interrupted.

    line  what is printed of each that is graded, and how many are by then
    """
    start, total = time.monotonic(), len(batch.waiting)
    console, silent = Console(soft_wrap=True), not sys.stdout.isatty()
    bar = Progress(*COLUMNS, TimeRemainingColumn(), console=console, transient=True, disable=silent)
    try:
        with bar:
            task = bar.add_task(name, total=total, rate="")
            for number, (one, outcome) in enumerate(batch.outcomes(workers), start=1):
                result = batch.keep(one, outcome)
                rate = number / (time.monotonic() - start)
                bar.update(task, completed=number, rate=f"{rate:.1f} a second")
                if result and line:
                    console.print(line(number, one, result), markup=False, highlight=False)
    except KeyboardInterrupt:
        every = batch.done.keys() | batch.waiting.keys()
        left = len(every) - len(batch.done)
        print(f"Stopped: {left} of {len(every)} are left; run the same command to go on.")
        return False
    return True
