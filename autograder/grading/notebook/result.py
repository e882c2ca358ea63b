"""What a submission earned, and why it lost points."""

import re
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from autograder.settings import USUAL, Care
from autograder.terminal_output import printable

LABEL = re.compile(r"^  (got|expected|also|likely|place|seed|costs) {2,}")  # in a reason
# Where a list is separated by semicolons, a spreadsheet opens our tables so: a cell then begins
# after each of them, and after the end of a line within quotes.
FORMULA = re.compile(r"(^|[;\t\n])(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=\t)")
UNGRADED = "this could not be graded"
SHOWN = 20  # names in a message
LONGEST = 300  # characters of what Python says of an error


@dataclass
class Exercise:
    """The score of one exercise."""

    name: str
    score: float
    max: float
    reason: str = ""  # empty only where no point was lost
    is_careless: bool = False  # it is right, but for its care
    lost: list[str] = field(default_factory=list)  # stages that failed, where others were earned
    is_open: bool = False  # the check met a part in which nothing is written yet
    seconds: float = field(default=0.0, compare=False)  # that its cell and its check took


@dataclass
class Result:
    """The outcome for one submission. ``problem`` says why nothing of it could be graded."""

    student: str
    lesson: str
    exercises: list[Exercise] = field(default_factory=list)
    problem: str = ""
    seconds: float = 0.0
    sandbox: str = ""  # 'bubblewrap' or 'none': what stood around the student's code
    limits: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)  # digests of what the result depends on
    care: Care = USUAL  # what a right answer that lacked care lost
    regrade: bool = False  # whether it is to be made again by the next run, whatever it depends on
    doubt: str = ""  # what went wrong for want of the machine's time or memory, if anything did

    @property
    def score(self) -> float:
        """Points earned."""
        return sum(exercise.score for exercise in self.exercises)

    @property
    def max(self) -> float:
        """Points there are."""
        return sum(exercise.max for exercise in self.exercises)

    @property
    def complete(self) -> bool:
        """Whether every exercise has a score, and a reason where points are lost."""
        return bool(self.exercises) and all(
            one.score == one.max or one.reason for one in self.exercises
        )

    @property
    def ungraded(self) -> bool:
        """Whether its 0 points are nobody's doing, and stand until the next run."""
        return not self.parts and self.problem.startswith(UNGRADED)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "score": self.score, "max": self.max}

    @classmethod
    def from_dict(cls, values: Any) -> "Result":
        """The Result that ``as_dict`` gave. Raises ValueError of anything else."""
        return _READER.validate_python(values)


_READER = TypeAdapter(Result)


def listed(names: Sequence[str]) -> str:
    """Names for a message: the first SHOWN, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def clean(text: str) -> str:
    """``text`` without control characters: of a terminal's, and of the direction of writing."""
    return printable(text)


def harmless(text: str | None) -> str:
    """``text`` for a table, with a quote before what a spreadsheet would take for a formula.

    >>> harmless("=1+1"), harmless("Zoë"), harmless("Zoë;=1+1")
    ("'=1+1", 'Zoë', "Zoë;'=1+1")
    """
    return FORMULA.sub(lambda found: f"{found[1] or ''}'", clean(text or ""))


def told(error: BaseException) -> str:
    """What Python says of an error, in one line, and which line raised, as ' (FILE, line N)'.

    Where it came through a check, that is the line of the check.
    """
    words = " ".join(clean("".join(traceback.format_exception_only(error))).split())[:LONGEST]
    steps = [(Path(one.filename), one.lineno) for one in traceback.extract_tb(error.__traceback__)]
    checks = [(path, line) for path, line in steps if path.parent.name == "checks"]
    for path, line in (checks or steps)[-1:]:
        words += f" ({'checks/' * bool(checks)}{path.name}, line {line})"
    return words


class Said(NamedTuple):
    """The parts of a reason: what is wrong, got, what is likely, where, what it costs; or ''."""

    what: str
    got: str
    likely: str
    place: str
    costs: str


def said(reason: str) -> Said:
    """Take a reason apart; its lines may be wrapped."""
    parts, label = {"what": [reason.partition("\n")[0]]}, "what"
    for line in reason.split("\n")[1:]:
        found = LABEL.match(line)
        label = found[1] if found else label
        parts.setdefault(label, []).append(line[found.end() :] if found else line.strip())
    joined = {name: " ".join(lines) for name, lines in parts.items()}
    costs = "; ".join(parts.get("costs", ()))  # each of its lines is a cost of its own
    got, likely, place = (joined.get(label, "") for label in ("got", "likely", "place"))
    return Said(joined["what"], got, likely, place, costs)
