"""Progress bars on the terminal."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)


@contextlib.contextmanager
def cells_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar per lesson; yields ``update(slug, done, total)``."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells"),
        TimeElapsedColumn(),
    )
    bar, tasks = Progress(*columns, console=Console(stderr=True)), dict[str, TaskID]()

    def update(slug: str, done: int, total: int) -> None:
        if not tasks:
            bar.start()  # not before there is something to show: it would print an empty line
        if slug not in tasks:
            tasks[slug] = bar.add_task(slug, total=total)
        bar.update(tasks[slug], completed=done)

    try:
        yield update
    finally:
        if tasks:
            bar.stop()
