"""The bar that shows on a terminal how far a grading is."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn


def progress() -> Progress:
    """A bar for tasks with a field ``rate``; it is gone when it ends, and nothing in a file."""
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), "{task.fields[rate]}")
    return Progress(
        *columns,
        TimeRemainingColumn(),
        console=Console(soft_wrap=True),
        transient=True,
        disable=not sys.stdout.isatty(),
    )
