"""Of which call a failure speaks, and which line of the check raised it.

Both stand in the failure's traceback, as a debugger would show them: checks need not say more.
"""

import linecache
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from autograder import ROOT
from autograder.checking.asking.questions import Question, Replied
from autograder.checking.toolbox.failure import CheckFailed
from autograder.explaining.noted import Exchange

CHECKS = ROOT / "autograder" / "checks"
EXPECT = ROOT / "autograder" / "checking" / "toolbox" / "expect.py"
PROBES = ROOT / "autograder" / "checking" / "asking" / "probe_failures.py"
PLAIN = (str, int, float, bool, type(None))  # of these, two that are equal may be one object


@dataclass(frozen=True)
class Line:
    """A line of the course's code: its file, from the course's folder, its number and its text."""

    path: str
    number: int
    text: str


def line(failure: BaseException) -> Line | None:
    """The line of a check, or of what is asked of every answer, that raised ``failure``."""
    steps = traceback.extract_tb(failure.__traceback__)
    for folder in (CHECKS, PROBES):
        found = [one for one in steps if Path(one.filename).is_relative_to(folder)]
        if found and found[-1].lineno:
            path, number = found[-1].filename, found[-1].lineno
            text = linecache.getline(path, number).strip()
            return Line(str(Path(path).relative_to(ROOT)), number, text)
    return None


def probe(failure: CheckFailed) -> tuple[Question, Replied] | None:
    """The question of every answer over which it failed, and its reply; None if it was another."""
    for frame in _frames(failure):
        if frame.f_code.co_name == "_probed":
            return frame.f_locals["question"], frame.f_locals["got"]
    return None


def exchange(
    failure: CheckFailed, log: Sequence[Exchange], wanted: Sequence[Replied]
) -> Exchange | None:
    """The question of the check itself over which it failed, and its reply.

    That is the one whose reply the check was looking at; where the check made something else of
    it, the first to which a right answer replies otherwise (``wanted`` has its replies, or none).
    """
    if hasattr(failure, "kind"):  # the answer raised
        told = (failure.kind, getattr(failure, "message", ""))
        raised = [one for one in log if one.reply and one.reply.kind == "raised"]
        said = [one for one in raised if one.reply and one.reply.value == told]
        return said[0] if said else None
    apart = [
        one
        for one, right in zip(log, wanted, strict=False)
        if one.reply is not None
        and one.question.request not in ("parameters", "build")
        and not one.reply.agrees(right)
    ]
    seen = [one for one in log if _shows(one, failure)]
    both = [one for one in seen if one in apart]
    fitting = [one for one in apart if one.question.stage == failure.stage]
    return next(iter([*both, *seen, *fitting, *apart]), None)


def _shows(one: Exchange, failure: CheckFailed) -> bool:
    """Whether the reply, or a part of it, is what the check was looking at."""
    if one.reply is None:
        return False
    value = one.reply.value
    parts = [value, *value] if isinstance(value, list | tuple) else [value]
    looked_at = [failure.about, *_looked_at(failure)]
    return any(part is item for part in parts for item in looked_at if type(item) not in PLAIN)


def _looked_at(failure: CheckFailed) -> list[object]:
    """What the functions of ``expect`` held in their hands when they raised."""
    held = [frame.f_locals for frame in _frames(failure) if frame.f_code.co_filename == str(EXPECT)]
    return [one[name] for one in held for name in ("got", "weights", "found") if name in one]


def _frames(failure: BaseException) -> Iterator[FrameType]:
    yield from (frame for frame, _ in traceback.walk_tb(failure.__traceback__))
