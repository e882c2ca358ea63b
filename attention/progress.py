"""A progress bar for training or a download, in a notebook or a terminal: loss and time left.

When the work is done, the bar becomes one line without times, so that a notebook that is built
twice is the same twice.
"""

import sys
import time

WIDTH = 30


class Bar:
    """Shows how far a loop has come; use as ``with Bar(steps) as bar: … bar.update(step, loss)``.

    total  number of steps
    label  what is being done, a word or two
    unit   what is counted
    begun  how many are done already
    keep   whether a line stays when the work is done
    """

    def __init__(self, total, label="training", unit="steps", begun=0, keep=True):
        self.total, self.label, self.unit, self.begun, self.keep = total, label, unit, begun, keep
        self.begin = self.shown = time.monotonic()
        self.handle = None
        self.line = ""

    def __enter__(self):
        if "ipykernel" in sys.modules:
            from IPython.display import display

            self.handle = display(_Text(self.label), display_id=True)
        return self

    def update(self, done, loss=None):
        """Say how many steps are done and what the loss is; draws at most 5 times a second."""
        now = time.monotonic()
        loss = "" if loss is None else f" · loss {loss:.3f}"
        self.line = f"{self.label}: {done} of {self.total} {self.unit}{loss}"
        if done < self.total and now - self.shown < 0.2:
            return
        self.shown = now
        left = (now - self.begin) / max(done - self.begun, 1) * (self.total - done)
        unit = "" if self.unit == "steps" else f" {self.unit}"
        full = round(WIDTH * done / max(self.total, 1))
        bar = "█" * full + "░" * (WIDTH - full)
        counted = f"{done}/{self.total}{loss or f' {self.unit}'}"
        self._show(f"{self.label} {bar} {counted} · {left:.0f} s left")

    def __exit__(self, *_):
        self._show(self.line if self.keep else "")
        if self.keep and self.handle is None and sys.stderr.isatty():
            print(file=sys.stderr)

    def _show(self, line):
        if self.handle is not None:
            self.handle.update(_Text(line))
        elif sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


class _Text:
    """A line of plain text as a notebook shows it."""

    def __init__(self, line):
        self.line = line

    def __repr__(self):
        return self.line
