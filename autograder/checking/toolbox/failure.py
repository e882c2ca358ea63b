"""What a student reads where a check fails, and what is noted of a right answer that lacks care."""

import contextlib
import textwrap
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from autograder.inside.answer import AnswerLost
from autograder.settings import count

WIDTH = 88  # characters of a line
LIKELY_WIDTH = WIDTH - 12  # with its label
LEARNING = "learning"  # the kind of care that is missing where no gradient reaches a weight


class CheckFailed(AssertionError):
    """A failed expectation; str() is the message that the student reads.

    ``about`` is the result whose form it is about.
    ``exercise``, ``likely``, ``place`` (where in their code it fails), ``seed``, ``cost`` and
    ``costs`` are filled in by the runner. ``cost`` is what it takes, from 0 to 1 of the exercise's
    points: 1 where the answer is wrong, the share of the stages that fail, or the care share where
    it is right but for something that good code does besides; ``costs`` names the stages that are
    lost. ``points`` are those of the exercise, where they are known.
    """

    is_stub = False  # whether nothing was written yet
    is_careless = False  # whether the answer is right but for its care
    care = ""  # the kind of care that is missing
    is_note = False  # whether no text has asked for it, so that it costs nothing
    is_form = False  # whether nothing is said but of the form of a result
    kind = message = ""  # of the exception that the answer raised, if it did

    def __init__(self, what: str, got: str = "", expected: str = "") -> None:
        super().__init__(what)
        self.about: object = None
        self.what, self.got, self.expected = what, got, expected
        self.exercise, self.likely, self.place = "", "", ""
        self.seed: int | None = None
        self.stage = ""  # in which it came up
        self.cost, self.costs = 1.0, ""
        self.lost: tuple[str, ...] = ()  # the stages that fail, where others do not
        self.points: float | None = None

    @classmethod
    def of(cls, exercise: str, what: str, got: str = "", expected: str = "") -> "CheckFailed":
        """The failure of an exercise that no check was run for."""
        failure = cls(what, got, expected)
        failure.exercise = exercise
        return failure

    def __str__(self) -> str:
        said = self.what
        if self.is_careless:
            said = f"right. {'A note' if self.is_note else 'One thing to mend'}: {self.what}"
        head = f"{self.exercise}: {said}." if self.exercise else f"{said}."
        parts = {
            "got": self.got,
            "expected": self.expected,
            "likely": textwrap.fill(self.likely, LIKELY_WIDTH),
            "place": textwrap.fill(self.place, LIKELY_WIDTH, break_on_hyphens=False),
            "seed": "" if self.seed is None else str(self.seed),
            "costs": self._costs(),
        }
        lines = [
            f"  {label:<10}" + str(text).replace("\n", "\n" + " " * 12)
            for label, text in parts.items()
            if str(text)
        ]
        return "\n".join([head, *lines])

    def _costs(self) -> str:
        """How many points it takes, where it takes some and not all."""
        if self.costs and self.points is not None:
            return f"{round(self.cost * self.points, 4):g} of {count(self.points)}: {self.costs}"
        if not self.is_careless:
            return ""
        of = "the points" if self.points is None else count(self.points)
        return f"{share_in_words(self.cost)} of {of}" if self.cost else "nothing"

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines, not a traceback; the dialog of Validate cuts wide ones."""
        lines = list[str]()
        wrapper = textwrap.TextWrapper(WIDTH, subsequent_indent="  ", break_long_words=False)
        wrapper.break_on_hyphens = False
        for line in str(self).splitlines():
            lines += wrapper.wrap(line)
            wrapper.subsequent_indent = " " * 12
        return lines


@dataclass
class Notes:
    """What failed, of the care and of the stages (by name), while a check went on.

    ``explain`` makes a CheckFailed of what else a result can bring about.
    """

    explain: Callable[[Exception], CheckFailed] = lambda error: CheckFailed(str(error))
    careless: list[CheckFailed] = field(default_factory=list)
    lost: dict[str, CheckFailed] = field(default_factory=dict)


_noted: ContextVar[Notes | None] = ContextVar("noted", default=None)
_stage: ContextVar[str] = ContextVar("stage", default="")
_care: ContextVar[str | None] = ContextVar("care", default=None)


@contextlib.contextmanager
def noting() -> Iterator[Notes]:
    """Within, what fails under ``care`` or in a ``stage`` is noted in what is yielded."""
    found = Notes()
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Within stands what one stage of an exercise asks for: its failure costs its points alone.

    The check goes on behind the block. The exercise's ``@check`` and its text say how many points
    each stage has; what stands outside of all stages costs them all. It may hold ``care()``, but
    stands in none: the stage would be lost in the place of care.
    """
    token = _stage.set(name)
    try:
        yield
    except Exception as error:
        failure, notes = _told(error), _noted.get()
        if notes is None or failure is None:
            raise
        notes.lost.setdefault(name, failure)
    finally:
        _stage.reset(token)


def stands(name: str) -> bool:
    """Whether a stage has not failed so far: what two bring about together is asked behind both."""
    notes = _noted.get()
    return notes is None or name not in notes.lost


def current_stage() -> str:
    """The name of the stage that is asked for, or ''."""
    return _stage.get()


@contextlib.contextmanager
def care(kind: str = "") -> Iterator[None]:
    """Within stands what good code does besides: its failure costs the care share at most.

    It costs where a text has asked for this ``kind``: see ``@check``'s ``asks``. Else it is a note.
    The check goes on behind the block. What the exercise's text is about does not belong here.
    """
    token = _care.set(kind)
    try:
        yield
    except Exception as error:
        failure = _told(error)
        if failure is None:
            raise
        careless(failure, kind)
    finally:
        _care.reset(token)


def is_care() -> bool:
    """Whether what is asked for now is a matter of care."""
    return _care.get() is not None


def _told(error: Exception) -> CheckFailed | None:
    """What an exception tells of an answer; None where the whole check is to stop with it."""
    if isinstance(error, CheckFailed):
        return None if error.is_stub else error
    notes = _noted.get()
    return None if notes is None or isinstance(error, AnswerLost) else notes.explain(error)


def careless(failure: CheckFailed, kind: str, first: bool = False) -> None:
    """Note a failure of care of this ``kind``, ``first`` before the others.

    Where nobody takes notes, it is raised. Of those that cost the first that was noted is what a
    student reads, and else the first note.
    """
    failure.is_careless, failure.stage = True, failure.stage or _stage.get()
    failure.care = kind
    notes = _noted.get()
    if notes is None:
        raise failure
    notes.careless.insert(0 if first else len(notes.careless), failure)


def not_defined(exercise: str, why: str) -> CheckFailed:
    """The failure of an answer that is not there."""
    return CheckFailed.of(exercise, "it is not defined", why)


def imported(exercise: str, module: str) -> CheckFailed:
    """The failure of an answer that comes from a module."""
    return CheckFailed.of(
        exercise,
        "this answer was not written in the notebook",
        f"{exercise} from {module}",
        "a definition in the exercise's own cell",
    )


def of_form(what: str, got: str, expected: str, about: object) -> CheckFailed:
    """The failure of a result that has another form: ``what`` speaks of "the result", if of any."""
    failure = CheckFailed(what, got, expected)
    failure.about, failure.is_form = about, True
    return failure


def no_gradient(where: str) -> CheckFailed:
    """What a student reads where no gradient arrives at a parameter or an argument."""
    return CheckFailed(
        f"no gradient flows back to {where}",
        "no gradient",
        "a gradient: nothing on the way is detached, a plain number, frozen or under no_grad",
    )


def share_in_words(share: float) -> str:
    """A share as a learner reads it: '¼', or '30%'."""
    return {0.1: "a tenth", 0.2: "a fifth", 0.25: "¼", 0.5: "½", 0.75: "¾"}.get(
        share, f"{share:.0%}"
    )
