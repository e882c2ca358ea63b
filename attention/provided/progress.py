"""Progress bars, in a notebook or a terminal: of a training, with its loss, and of a download.

When a training is done, its bar becomes one line without times, so that a notebook that is built
twice is the same twice. That of a download disappears.
"""

import sys
import time
from typing import Any, Self

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

    def __enter__(self) -> Self:
        if "ipykernel" in sys.modules:
            from IPython.display import display

            self.handle = display(_Text(self.label), display_id=True)
        return self

    def update(self, done: int, loss: float) -> None:
        """Say how many steps are done and what the loss is; draws at most 5 times a second."""
        self.line = f"{self.label}: {done} of {self.total} steps · loss {loss:.3f}"
        self._draw(done, f"{done}/{self.total} · loss {loss:.3f}")

    def _draw(self, done: int, words: str, before: int = 0) -> None:
        """Draw how far it is, with the time left; `before` was there when the time began."""
        now = time.monotonic()
        if done < self.total and now - self.shown < 0.2:
            return
        self.shown = now
        left = (now - self.begin) / max(done - before, 1) * (self.total - done)
        full = round(WIDTH * done / self.total)
        bar = "█" * full + "░" * (WIDTH - full)
        self._show(f"{self.label} {bar} {words} · {left:.0f} s left")

    def __exit__(self, *_: object) -> None:
        self._show(self.line)
        if self.handle is None and sys.stderr.isatty():
            print(file=sys.stderr)

    def _show(self, line: str) -> None:
        if self.handle is not None:
            self.handle.update(_Text(line))
        elif sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


class DownloadBar(Bar):
    """Shows how much of a file is there; use as ``with DownloadBar(size, name) as bar: …``.

    size   bytes of the file
    label  its name
    """

    def __init__(self, size: int, label: str):
        super().__init__(size, label)
        self.before: int | None = None  # bytes that were there when the first piece came

    def received(self, done: int) -> None:
        """Say how many bytes are there; draws at most 5 times a second."""
        if self.before is None:
            self.before, self.begin = done, time.monotonic()
        self._draw(done, f"{done / 1e6:.1f} of {self.total / 1e6:.1f} MB", self.before)

    def __exit__(self, *_: object) -> None:
        self._show("")


class _Text:
    """A line of plain text as a notebook shows it."""

    def __init__(self, line: str):
        self.line = line

    def __repr__(self) -> str:
        return self.line
