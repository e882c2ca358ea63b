"""Of which call a failure speaks, and which line of the check raised it.

Both stand in the failure's traceback, as a debugger would show them: checks need not say more.
"""

import ast
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch

from autograder import ROOT
from autograder.checking.asking.questions import Question, Replied
from autograder.checking.toolbox.failure import CheckFailed
from autograder.explaining.literals import size
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
            return Line(str(Path(path).relative_to(ROOT)), number, _statement(path, number))
    return None


def _statement(path: str, number: int) -> str:
    """The statement on a line of a file; of one that holds others, this line alone."""
    text = Path(path).read_text(encoding="utf-8")
    first = last = number
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            end = node.end_lineno or node.lineno
            if node.lineno <= number <= end:
                first, last = node.lineno, end
    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : last]))


def probe(
    failure: CheckFailed, questions: Sequence[Question], wanted: Sequence[Replied]
) -> tuple[int, Replied] | None:
    """Which of ``questions`` every answer is asked besides it failed over, and its reply to it.

    None if it failed over one of its check's own. ``wanted`` are the right replies.
    """
    for frame in _frames(failure):
        if frame.f_code.co_filename == str(PROBES):  # these functions have ended: as they were then
            right = frame.f_locals.get("wanted")
            place = next((n for n, one in enumerate(wanted) if one is right), None)
            return None if place is None else (place, frame.f_locals["got"])
    return None


def exchange(
    failure: CheckFailed, log: Sequence[Exchange], wanted: Sequence[Replied]
) -> Exchange | None:
    """The question of the check itself over which it failed, and its reply.

    That is the one whose reply ``expect`` was given, as it came or in another shape. Where the
    check made something else of it, it is one to which a right answer replies otherwise
    (``wanted`` has its replies, or none): one that the check held in its hands, the last of these,
    or the smallest of all.
    """
    if hasattr(failure, "kind"):  # the answer raised
        told = (failure.kind, getattr(failure, "message", ""))
        raised = [one for one in log if one.reply and one.reply.kind == "raised"]
        said = [one for one in raised if one.reply and one.reply.value == told]
        return said[0] if said else None
    apart = [
        one
        for one, right in zip(log, wanted, strict=False)
        if one.reply is not None and not one.reply.agrees(right)
    ]
    seen = [one for one in log if _is_among(one, [failure.about, *_held(failure, EXPECT)])]
    both = [one for one in seen if one in apart]
    near = [one for one in apart if _is_among(one, _held(failure, CHECKS))]
    # The first numbers of parameters are drawn at random: alone they say nothing.
    other = [one for one in apart if one.question.request not in ("parameters", "build")]
    other.sort(key=lambda one: (one.question.is_care, size(list(one.question.details))))
    fitting = [one for one in other if one.question.stage == failure.stage]
    return next(iter([*both, *seen, *reversed(near), *fitting, *other]), None)


def _is_among(one: Exchange, objects: Sequence[object]) -> bool:
    """Whether the reply, or a part of it, is one of these ``objects``."""
    if one.reply is None:
        return False
    value = one.reply.value
    parts = [value, *value] if isinstance(value, list | tuple) else [value]
    return any(_is_of(part, item) for part in parts for item in objects)


def _is_of(part: object, item: object) -> bool:
    """Whether ``item`` is this very object, or the same numbers of a tensor in another shape."""
    if type(item) in PLAIN:
        return False
    if not isinstance(part, torch.Tensor) or not isinstance(item, torch.Tensor):
        return part is item
    shared = part.untyped_storage().data_ptr() == item.untyped_storage().data_ptr()
    return part is item or shared and item.numel() > 0


def _held(failure: CheckFailed, place: Path) -> list[object]:
    """What the functions of a file or folder held in their hands when the failure was raised."""
    frames = [one for one in _frames(failure) if Path(one.f_code.co_filename).is_relative_to(place)]
    return [item for one in frames for item in one.f_locals.values()]


def _frames(failure: BaseException) -> Iterator[FrameType]:
    yield from (frame for frame, _ in traceback.walk_tb(failure.__traceback__))
