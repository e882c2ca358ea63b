"""What a student reads where a check fails, and what is noted of a right answer that lacks care."""

import contextlib
import textwrap
from collections.abc import Iterator
from contextvars import ContextVar

LIKELY_WIDTH = 76  # characters of a line: with its label, 88


class CheckFailed(AssertionError):
    """A failed expectation; str() is the message that the student reads.

    ``exercise``, ``likely``, ``seed`` and ``cost`` are filled in by the runner. ``cost`` is what it
    takes, from 0 to 1 of the exercise's points: 1 where the answer is wrong, and the care share
    where it is right but for something that good code does besides.
    """

    is_stub = False  # whether nothing was written yet
    is_careless = False  # whether the answer is right but for its care

    def __init__(self, what: str, got: str = "", expected: str = "") -> None:
        super().__init__(what)
        self.what, self.got, self.expected = what, got, expected
        self.exercise, self.likely = "", ""
        self.seed: int | None = None
        self.cost = 1.0

    def __str__(self) -> str:
        said = f"right. One thing to mend: {self.what}" if self.is_careless else self.what
        head = f"{self.exercise}: {said}." if self.exercise else f"{said}."
        parts = {
            "got": self.got,
            "expected": self.expected,
            "likely": textwrap.fill(self.likely, LIKELY_WIDTH),
            "seed": "" if self.seed is None else str(self.seed),
            "costs": share_in_words(self.cost) if self.is_careless else "",
        }
        lines = [
            f"  {label:<10}" + str(text).replace("\n", "\n" + " " * 12)
            for label, text in parts.items()
            if str(text)
        ]
        return "\n".join([head, *lines])

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback."""
        return str(self).splitlines()


_noted: ContextVar[list[CheckFailed] | None] = ContextVar("noted", default=None)


@contextlib.contextmanager
def noting() -> Iterator[list[CheckFailed]]:
    """Within, what fails under ``care`` is noted in the list that is yielded, and no more."""
    found: list[CheckFailed] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


@contextlib.contextmanager
def care() -> Iterator[None]:
    """Within stands what good code does besides: its failure costs the care share, no more.

    The check goes on behind the block. What the exercise's text is about does not belong here.
    """
    try:
        yield
    except CheckFailed as failure:
        if failure.is_stub:
            raise
        careless(failure)


def careless(failure: CheckFailed, first: bool = False) -> None:
    """Note a failure of care, ``first`` before the others; where nobody takes notes, it is raised.

    The first that was noted is what a student reads.
    """
    failure.is_careless = True
    notes = _noted.get()
    if notes is None:
        raise failure
    notes.insert(0 if first else len(notes), failure)


def share_in_words(share: float) -> str:
    """What a share of an exercise's points is, in words."""
    known = {0: "nothing", 0.1: "a tenth", 0.2: "a fifth", 0.25: "a quarter", 0.5: "half"}
    words = known.get(share, f"{share:g}")
    return words if share == 0 else f"{words} of the points"
