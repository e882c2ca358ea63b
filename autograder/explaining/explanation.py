"""All that is said of a lost point: put together here, written by ``text``."""

import re
import textwrap
from dataclasses import asdict, dataclass, field
from typing import Any

from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import Check
from autograder.explaining import call, culprit, replay
from autograder.explaining.call import Call, Caller
from autograder.explaining.culprit import Line
from autograder.explaining.on_record import Case
from autograder.explaining.replay import Replay
from autograder.grading.classroom.item_analysis import said
from autograder.reporting.mistake_template import printable
from autograder.reporting.unexplained import without_numbers
from autograder.sandbox.sandbox import Sandbox
from autograder.settings import count

HINTS = re.compile(r"<details\b.*?</details>\s*", re.DOTALL | re.IGNORECASE)  # folded


@dataclass
class Explanation:
    """What an instructor is told.

    stages   each stage of the exercise, in words, with whether it was earned
    wrong    where the check refuses the course's own answer, too: that, and how to go on, or ''
    today    what the check says now, where that is another thing than what is on record, or ''
    rests    the phrases of the lesson on which the check rests
    is_only  whether there is one right answer, and not many
    """

    case: Case
    stages: list[str]
    today: str
    call: Call
    line: Line | None
    rests: list[str] = field(default_factory=list)
    is_only: bool = True
    wrong: str = ""

    def as_dict(self, names: bool) -> dict[str, Any]:
        """Plain values, for JSON; others are named only with ``names``."""
        case = self.case
        others = {"tried": case.tried, "lost": len(case.others), "alike": len(case.alike)}
        return {
            "student": case.handed.student,
            "handed_in_by": case.source or case.handed.student,
            "lesson": case.handed.lesson,
            "exercise": case.exercise,
            "answer": case.answer,
            "helpers": case.helpers,
            "since": case.since,
            "verdict": case.part,
            "stages": self.stages,
            "check_is_wrong": self.wrong,
            "today": self.today,
            "call": asdict(self.call),
            "assertion": None if self.line is None else asdict(self.line),
            "text": case.text,
            "rests_on": self.rests,
            "others": others | ({"names": case.alike} if names else {}),
        }


def explain(case: Case, sandbox: Sandbox) -> Explanation:
    """Judge the answer of a Case once more in the ``sandbox``, and say what comes of it."""
    item = registry.find(case.exercise)
    cells = replay.sources(case.notebook, case.exercise)
    reason = case.part["reason"]
    made = replay.replay(item, sandbox, cells, reason, case.kept.care_share)
    rests = list(item.rests_on), item.has_one_right_answer
    stages = _stages(case, item)
    if made is None:
        return Explanation(case, stages, "", call.none_failed(item.name), None, *rests)
    if made.failure is not None:
        made.failure.points = case.part["max"]
    passes = made.failure is None and not made.stopped
    shown = call.passes(made) if passes else Caller(item, sandbox, cells).of(made)
    wrong = _wrong(made, case, item)
    return Explanation(case, stages, _today(made, reason), shown, made.line, *rests, wrong)


def _wrong(made: Replay, case: Case, item: Check) -> str:
    """What is said where the check refuses the course's own answer, too, or ''."""
    if made.refused is None:
        return ""
    head = (
        "The course's own answer fails this check, too: the check is wrong.\nWhether the student's "
        "answer is wrong as well, a check that is mended says."
    )
    line = culprit.line(made.refused)
    place = f"{line.path}:{line.number}" if line else f"autograder/checks/{item.lesson}.py"
    number = case.handed.lesson.partition("_")[0]
    return (
        f"{head}\nIt says of the course's own answer:\n{textwrap.indent(made.of_library, '    ')}\n"
        f"Mend {place}, prove it with `autograder verify {number}`;\n"
        "then `autograder grade --preview` says whose points change."
    )


def _today(made: Replay, reason: str) -> str:
    """What the check says now where it is another thing than what is on record, or ''."""
    if made.failure is None:
        return ""
    now = str(made.failure)
    alike = without_numbers(said(now).what) == without_numbers(said(reason).what)
    return "" if alike else now


def _stages(case: Case, item: Check) -> list[str]:
    part = case.part
    lost = part.get("lost") or ([name for name, _ in item.stages] if not _earned(part) else [])
    return [
        f"{name} ({count(worth)}): {'lost' if name in lost else 'earned'}"
        for name, worth in item.stages
    ]


def _earned(part: dict[str, Any]) -> bool:
    return part.get("automatic", part["score"]) > 0 or bool(part.get("is_careless"))


def text(made: Explanation, names: bool) -> str:
    """The whole as text for a terminal; others are named only with ``names``."""
    case, part = made.case, made.case.part
    handed = case.handed
    head = f"{handed.student} · {handed.lesson} · {case.exercise} · {_points(part)}"
    if case.source:
        head += f" · handed in by {case.source} for their group"
    parts = {
        "The check is wrong": made.wrong,
        f"The answer that was graded{_behind(case.since)}": case.answer,
        "What it uses of the student's other cells": "\n\n\n".join(case.helpers),
        "The verdict": "\n".join([_costs(part), *made.stages, "", part["reason"]]).strip(),
        "What the check says today, which is not what is on record": made.today,
        "The call": _call(made.call, "the" if made.is_only else "one"),
        "The check": _assertion(made),
        "The class": _others(case, names),
        "What the lesson asks for": HINTS.sub("", case.text),
    }
    told = [f"── {title} ──\n{body.strip()}\n" for title, body in parts.items() if body.strip()]
    return printable("\n".join([f"{head}\n", *told]))


def _points(part: dict[str, Any]) -> str:
    earned = f"{part['score']:g} of {count(part['max'])}"
    earned = earned if part["max"] else "wrong, but optional: no points"
    if "automatic" not in part:
        return earned
    return f"{earned}, changed by hand: the check gave {part['automatic']:g}"


def _behind(since: str) -> str:
    return f"; {since[0].lower()}{since[1:].rstrip('.')}" if since else ""


def _costs(part: dict[str, Any]) -> str:
    return "right, without care: only the care share is lost" if part.get("is_careless") else ""


def _call(one: Call, which: str) -> str:
    note = textwrap.fill(one.note, 88)
    if not one.program:
        return note
    note = note or "Paste this below the answer, in the student's notebook:"
    told = {"It prints": one.prints, f"With {which} right answer it prints": one.right}
    shown = [f"{who}\n{textwrap.indent(text, '    ')}" for who, text in told.items() if text]
    return "\n".join([note, "", one.program, *shown])


def _assertion(made: Explanation) -> str:
    line = made.line
    where = f"{line.path}:{line.number}\n{textwrap.indent(line.text, '    ')}\n" if line else ""
    if made.case.part.get("is_careless"):
        return f"{where}It is a matter of care: what the lesson's text is about is right."
    # All of them: which one a line of the check rests on, the check does not say.
    phrases = "\n".join(f"    “{one}”" for one in made.rests)
    rests = f"It rests on these words of the lesson:\n{phrases}" if phrases else ""
    return f"{where}{rests}"


def _others(case: Case, names: bool) -> str:
    if not case.tried:
        return "Nobody else's answer to this exercise is graded."
    told = (
        f"Others who tried it: {case.tried}. Of these lost points here: {len(case.others)}, and in "
        f"the same way: {len(case.alike)}."
    )
    return f"{told}\n{', '.join(case.alike)}" if names and case.alike else told
