"""A progress bar for training, in a notebook or a terminal: loss and time left.

When the work is done, the bar becomes one line without times, so that a notebook that is built
twice is the same twice.
"""

import sys
import time
from typing import Any

WIDTH = 30


class Bar:
    """Shows how far a loop has come; use as ``with Bar(steps) as bar: … bar.update(step, loss)``.

    total  number of steps
    label  what is being done, a word or two
    """

    def __init__(self, total: int, label: str = "training"):
        self.total, self.label = total, label
        self.begin = self.shown = time.monotonic()
        self.handle: Any = None  # of what a notebook shows
        self.line = ""

    def __enter__(self) -> "Bar":
        if "ipykernel" in sys.modules:
            from IPython.display import display

            self.handle = display(_Text(self.label), display_id=True)
        return self

    def update(self, done: int, loss: float) -> None:
        """Say how many steps are done and what the loss is; draws at most 5 times a second."""
        now = time.monotonic()
        self.line = f"{self.label}: {done} of {self.total} steps · loss {loss:.3f}"
        if done < self.total and now - self.shown < 0.2:
            return
        self.shown = now
        left = (now - self.begin) / done * (self.total - done)
        full = round(WIDTH * done / self.total)
        bar = "█" * full + "░" * (WIDTH - full)
        self._show(f"{self.label} {bar} {done}/{self.total} · loss {loss:.3f} · {left:.0f} s left")

    def __exit__(self, *_: object) -> None:
        self._show(self.line)
        if self.handle is None and sys.stderr.isatty():
            print(file=sys.stderr)

    def _show(self, line: str) -> None:
        if self.handle is not None:
            self.handle.update(_Text(line))
        elif sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


class _Text:
    """A line of plain text as a notebook shows it."""

    def __init__(self, line: str):
        self.line = line

    def __repr__(self) -> str:
        return self.line
