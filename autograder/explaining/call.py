"""The call over which an answer failed, as a program that was run before it is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.checking.asking.questions import Replied
from autograder.checking.toolbox.registry import Check, reference
from autograder.explaining import program, running
from autograder.explaining.program import Asked, asked
from autograder.explaining.replay import Replay
from autograder.sandbox.sandbox import Sandbox

DIGITS = 12  # of each number, where fewer do not tell two results apart
CHANGES = "Below the student's answer; `modified` says what the call changed:"
GPU = "Below the student's answer; the device called rehearsal stands for a GPU:"
UNSHOWN = (
    "No program of a few lines shows the difference (the reply may depend on earlier calls, or on "
    "objects used in turn), so the check itself asks again, with the inputs of the grading"
)
STRICT = (
    "In every call the answer gives what the course's own gives, to within rounding: the check may "
    "be too strict. See “A check that was wrong” in autograder/README.md. Here the check itself "
    "asks again, with the inputs of the grading"
)


@dataclass
class Call:
    """A program, what it prints below the student's answer, and what below the right one.

    ``note`` says what it is. Without a program it says why there is none.
    """

    note: str
    program: str = ""
    prints: str = ""
    right: str = ""


class Caller:
    """Finds the program for a Replay; runs what it tries in the sandbox, and in this process."""

    def __init__(self, item: Check, sandbox: Sandbox, cells: Sequence[str]) -> None:
        self._item, self._sandbox, self._cells = item, sandbox, cells
        self._target: Callable[..., Any] | None = reference(item)

    def of(self, made: Replay) -> Call:
        """The Call that shows best why the answer fails."""
        one = asked(made.history, made.question) if made.question is not None else None
        if made.stopped:
            return self._endless(made, one)
        if one is not None and one.is_small:
            shown = self._tried(one, made.reply, made.right)
            if shown is not None:
                return shown
        note = UNSHOWN
        if one is not None and not one.is_small:
            note = (
                "The arguments of this call are too large to be written out: "
                f"{program.shapes(one)}, drawn by the check from seed {made.seed}"
            )
            smaller = self._smaller(made, note)
            if smaller is not None:
                return smaller
            note += ", so the check itself asks again"
        return self._again(made, STRICT if made.is_as_right else note)

    def _again(self, made: Replay, note: str) -> Call:
        """The program that has the check itself ask, with what it says of the two answers."""
        text = program.by_seed(self._item.name, made.seed)
        where = "in the course's own repository, which holds the right answers"
        told = running.printed(str(made.failure or ""))
        return Call(f"{note} ({where}):", text, told, running.printed(made.of_library))

    def _smaller(self, made: Replay, note: str) -> Call | None:
        """The smallest of other calls to which a right answer replies otherwise."""
        found = [(asked(made.history, one), got, right) for one, got, right in made.others]
        small = [(one, got, right) for one, got, right in found if one and one.is_small]
        for one, got, right in sorted(small, key=lambda three: three[0].size)[:3]:
            shown = self._tried(one, got, right)
            if shown is not None:
                note += ". This smaller call of the same check fails, too"
                shown.note = f"{note}. {shown.note}" if shown.note else f"{note}:"
                return shown
        return None

    def _tried(self, one: Asked, got: Replied | None, right: Replied | None) -> Call | None:
        """The first program of this question that prints what the check got, and not the right."""
        changed = got is not None and right is not None and got.modified != right.modified
        plain: list[dict[str, bool]] = [{}] if one.is_plain and not changed else []
        for way in [*plain, {"exactly": True, "whole": changed}]:
            for digits in (0, DIGITS):
                text = program.text(self._item.name, one, **way, digits=digits)
                told = self._by_student(text)
                if not digits and not running.shows(told, one.question.request, got):
                    break
                wanted = self._right(text)
                if running.plain(told) != running.plain(wanted):
                    note = CHANGES * changed or GPU * (one.question.probe == "device")
                    return Call(note, text, told, wanted)
        return None

    def _by_student(self, text: str) -> str:
        return running.by_student(text, self._sandbox, self._cells)

    def _right(self, text: str) -> str:
        if self._target is None:
            return ""
        return running.by_library(text, self._item.name, self._target)

    def _endless(self, made: Replay, one: Asked | None) -> Call:
        """The call in which the answer had to be stopped; it is not run again."""
        note = f"The answer had to be stopped: {made.stopped}"
        if one is None or not one.is_small:
            return Call(f"{note}.")
        text = program.text(self._item.name, one)
        note += ", in this call, which is not run here again. Take care, pasted it does the same:"
        return Call(note, text, "", self._right(text))


def none_failed(exercise: str) -> Call:
    return Call(f"No call failed: the notebook defines no {exercise} of its own.")


def passes(made: Replay) -> Call:
    return Call(
        f"Asked again from seed {made.seed}, the answer passes: the checks, the library or the "
        "limits have changed since it was graded. Run autograder grade."
    )
