"""The call over which an answer failed, as a program that was run before it is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.checking.asking.questions import Replied
from autograder.checking.asking.right_answer import reference
from autograder.checking.toolbox.registry import Check
from autograder.explaining import program, running, shorter
from autograder.explaining.program import Asked, asked
from autograder.explaining.replay import Replay, Tried
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
SAME = "Of this call the check speaks; the student's answer and the course's own reply the same:"
ROUNDED = "With numbers rounded to {} decimals the answer fails, too. Paste this below it:"
FEW = 12  # numbers and words: of such a call no smaller one is looked for
CLEARLY = 3  # a smaller call has at most this part of the numbers


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
        same = self._same(one) if made.refused is not None else None
        if same is not None:
            return same
        if one is not None and one.is_small:
            clear = self._clear(made, one)
            shown = clear or self._tried(one, made.reply, made.right)
            if shown is not None:
                return shown
        note = UNSHOWN
        if one is not None and not one.is_small:
            note = (
                "The arguments of this call are too large to be written out: "
                f"{program.shapes(one)}, drawn by the check from seed {made.seed}"
            )
            smaller = self._smaller(made, made.others, program.MOST, note)
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

    def _same(self, one: Asked | None) -> Call | None:
        """The call of which a check speaks that refuses the course's own answer for it, too."""
        if one is None or not one.is_small:
            return None
        text = program.text(self._item.name, one)
        told, right = self._by_student(text), self._right(text)
        return (
            Call(SAME, text, told, right) if running.plain(told) == running.plain(right) else None
        )

    def _clear(self, made: Replay, one: Asked) -> Call | None:
        """A call with clearly fewer numbers that fails in the same part of the check, alike."""
        wrong, own = made.reply, one.question
        if one.size <= FEW or own.probe or wrong is None or wrong.modified:
            return None
        alike = [
            other
            for other in made.others
            if (other[0].stage, other[0].is_care) == (own.stage, own.is_care)
            and other[1].kind == wrong.kind
            and not other[1].modified
        ]
        note = f"The call of the verdict holds {one.size} numbers and words"
        return self._smaller(made, alike, one.size // CLEARLY, note)

    def _smaller(self, made: Replay, others: Sequence[Tried], most: int, note: str) -> Call | None:
        """The smallest of other calls to which a right answer replies otherwise."""
        found = [(asked(made.history, one), got, right) for one, got, right in others]
        small = [(one, got, right) for one, got, right in found if one and one.size <= most]
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
                    made = Call(note, text, told, wanted)
                    return made if way or digits else self._shortened(one, made)
        return None

    def _shortened(self, one: Asked, made: Call) -> Call:
        """The same with shorter numbers, where both answers give about what they gave."""
        for decimals in shorter.DECIMALS:
            text = program.text(self._item.name, shorter.rounded(one, decimals))
            if len(made.program) - len(text) < shorter.SAVED:
                break
            right = self._right(text)
            if not shorter.near(right, made.right):
                continue
            told = self._by_student(text)
            if shorter.near(told, made.prints) and running.plain(told) != running.plain(right):
                return Call(ROUNDED.format(decimals), text, told, right)
        return made

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
