"""What is said of a lost point: found on record, and put together here."""

import ast
import itertools
import textwrap
import traceback
from pathlib import Path
from typing import Any

from autograder import ROOT, CourseError, cell_metadata, lessons
from autograder.checking.asking.questions import Question, Replied
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.failure import CheckFailed
from autograder.checking.toolbox.registry import Check, reference
from autograder.explaining import program, replay
from autograder.explaining.replay import Replay
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook import records
from autograder.grading.notebook.result import listed
from autograder.reporting.results import graded
from autograder.sandbox.sandbox import Sandbox
from autograder.settings import count
from autograder.terminal_output import printable

CHECKS = ROOT / "autograder" / "checks"
PROBES = ROOT / "autograder" / "checking" / "asking" / "probe_failures.py"
TRIED = 4  # calls of which a program is tried
PASTE = "Paste this below the answer, in the student's notebook:"
PASSES = (
    "Asked again, the answer passes: the checks, the library or the limits have changed since it "
    "was graded. Run autograder grade."
)
STRICT = (
    "In every call the answer gives what the course's own gives, to within rounding: the check may "
    "be too strict. See “A check that was wrong” in autograder/README.md. "
)
BY_SEED = (
    "No program of a few lines shows the difference, so the check itself asks again, with the "
    "inputs of the grading (in the course's own repository, which holds the right answers):"
)
WRONG = """\
The course's own answer fails this check, too: the check is wrong.
Whether the student's answer is wrong as well, a check that is mended says.
It says of the course's own answer:
{said}
Mend {place}, prove it with `autograder verify {number}`;
then `autograder grade --preview` says whose points change."""
Row = dict[str, Any]


def find(course: Course, lesson: str, student: str, exercise: str) -> tuple[Handed, Row]:
    """A graded submission, and what is kept of one of its exercises, with the points that count.

    Raises CourseError where there is none, or nothing to explain, with what there is.
    """
    slug = lessons.choose([lesson], course.lessons())[0]
    there = sorted(one.student for one in course.submissions([slug]))
    if student not in there:
        known = listed(there) or "nobody did"
        raise CourseError(f"{student!r} handed in nothing for {slug}; who did: {known}")
    handed = Handed(slug, student)
    kept = course.kept(handed)
    if kept is None:
        number = slug.partition("_")[0]
        raise CourseError(
            f"what {student} handed in for {slug} is not graded yet: run "
            f"autograder grade --lesson {number} --student {student}"
        )
    if kept.problem:
        raise CourseError(
            f"nothing of what {student} handed in for {slug} could be graded: {kept.problem}"
        )
    (row,) = (one for one in graded(course, [slug]) if one.student == student)
    parts = {one["name"]: one for one in row.exercises}
    if exercise not in parts:
        raise CourseError(
            f"{slug} has no exercise called {exercise!r}; there are: {', '.join(parts)}"
        )
    part = {**parts[exercise], "care": kept.care}
    checked = next(one for one in kept.exercises if one.name == exercise)
    if checked.is_open or not checked.reason:
        what = "left open" if checked.is_open else f"taken for right, {_points(part)}"
        raise CourseError(f"there is nothing to explain: {student}'s {exercise} was {what}")
    return handed, part


def explain(course: Course, handed: Handed, part: Row, sandbox: Sandbox) -> str:
    """Judge the answer once more in the ``sandbox``, and say what comes of it, for a terminal."""
    try:
        notebook = records.read_notebook(course.autograded(handed))
    except (OSError, ValueError, KeyError, TypeError):
        place = course.shown(course.autograded(handed))
        raise CourseError(f"{place} is gone or damaged: grade it again") from None
    item = registry.find(part["name"])
    cells = replay.sources(notebook, item.name)
    made = replay.replay(item, sandbox, cells, part["reason"], part["care"])
    solved = [one for one in notebook["cells"] if cell_metadata.is_solution(one)]
    answer = [one["source"] for one in solved if cell_metadata.exercise(one) == item.name]
    said = {
        "The check is wrong": _wrong(made, item, handed.lesson),
        "The answer that was graded": "\n".join(answer),
        "The verdict": part["reason"],
        "What the check says today": _today(made, part["reason"]),
        "The call": _call(made, item, sandbox, cells),
        "The check": _check(made, item, part),
    }
    head = f"{handed.student} · {handed.lesson} · {item.name} · {_points(part)}\n"
    told = [f"── {title} ──\n{body.strip()}\n" for title, body in said.items() if body.strip()]
    return printable("\n".join([head, *told]))


def _points(part: Row) -> str:
    earned = f"{part['score']:g} of {count(part['max'])}" if part["max"] else "optional: no points"
    by_hand = f", changed by hand: the check gave {part.get('automatic', 0):g}"
    return earned + by_hand * ("automatic" in part)


def _wrong(made: Replay | None, item: Check, slug: str) -> str:
    """What is said where the check refuses the course's own answer, too, or ''."""
    if made is None or made.refused is None:
        return ""
    place = line(made.refused).partition("\n")[0] or f"autograder/checks/{item.lesson}.py"
    said = textwrap.indent(str(made.refused), "    ")
    return WRONG.format(said=said, place=place, number=slug.partition("_")[0])


def _today(made: Replay | None, reason: str) -> str:
    """What the check says now where it is another thing than what is on record, or ''."""
    now = str(made.failure) if made and made.failure else ""
    return "" if now.partition("\n")[0] == reason.partition("\n")[0] else now


def _check(made: Replay | None, item: Check, part: Row) -> str:
    """The line that failed, and the words of the lesson on which the check rests."""
    failed = f"{line(made.failure)}\n" if made and made.failure else ""
    if part.get("is_careless"):
        return f"{failed}It is a matter of care: what the lesson's text is about is right."
    # All of them: which one a line of the check rests on, the check does not say.
    words = "".join(f"\n    “{one}”" for one in item.rests_on)
    return failed + (f"It rests on these words of the lesson:{words}" if words else "")


def line(failure: CheckFailed) -> str:
    """Where a check, or what is asked of every answer, raised ``failure``, and what stands there.

    The failure's traceback knows it, so checks need not say. '' where it was only noted.
    """
    steps = traceback.extract_tb(failure.__traceback__)
    for folder in (CHECKS, PROBES):
        found = [one for one in steps if Path(one.filename).is_relative_to(folder)]
        if found and found[-1].lineno:
            path, number = Path(found[-1].filename), found[-1].lineno
            text = path.read_text(encoding="utf-8")
            nodes = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.stmt)]
            around = [one for one in nodes if one.lineno <= number <= (one.end_lineno or 0)]
            statement = ast.get_source_segment(text, around[-1]) or ""
            said = textwrap.indent(textwrap.dedent(statement), "    ")
            return f"{path.relative_to(ROOT)}:{number}\n{said}"
    return ""


def _call(made: Replay | None, item: Check, sandbox: Sandbox, cells: list[str]) -> str:
    """The program that tells the answer from the course's own, and what both print."""
    if made is None:
        return f"No call failed: the notebook defines no {item.name} of its own."
    if made.passes:
        return _filled(PASSES)
    target = reference(item)
    if made.stopped:
        return _stopped(made, item)
    tried = _tried(made, item, sandbox, cells) if target is not None else None
    if tried is not None:
        text, *prints = tried
        where = program.remark(made.failure.place if made.failure else "")
        return _shown(PASTE, where + text, *prints)
    text = program.by_seed(item.name, made.seed)
    said = str(made.refused or f"{item.name}: correct.") if target is not None else ""
    return _shown(STRICT * made.is_as_right + BY_SEED, text, str(made.failure), said)


def _tried(
    made: Replay, item: Check, sandbox: Sandbox, cells: list[str]
) -> tuple[str, str, str] | None:
    """The first program whose outputs differ, with both: of the failed stage, the shortest.

    Of a module's parameters first: where they are others, so is all that it computes.
    """
    failure, target = made.failure, reference(item)
    if failure is None or target is None:
        return None

    def order(pair: tuple[Question, Replied]) -> tuple[int, ...]:
        one, reply = pair
        other = one.stage != failure.stage, one.is_care != failure.is_careless
        raised = (reply.kind == "raised") != hasattr(failure, "kind")
        return *other, raised, one.request not in ("parameters", "load"), program.size([one])

    for digits in (0, program.DIGITS):
        asks = sorted(made.apart, key=order)
        every = (program.text(item.name, made.questions, one, digits) for one, _ in asks)
        for text in itertools.islice(filter(None, every), TRIED):
            right = program.by_library(text, item.name, target)
            if right != program.by_library(text, item.name, target):
                continue  # it draws at random
            prints = program.by_student(text, sandbox, cells)
            if program.plain(prints) != program.plain(right):
                return text, prints, right
    return None


def _stopped(made: Replay, item: Check) -> str:
    """The call over which the process was lost; it is not run again."""
    said, target = f"The answer had to be stopped: {made.stopped}", reference(item)
    text = program.text(item.name, made.questions, made.lost) if made.lost else ""
    if not text or target is None:
        return _filled(f"{said}.")
    note = f"{said}, in this call, which is not run here again. Take care, pasted it does the same:"
    return _shown(note, text, "", program.by_library(text, item.name, target))


def _shown(note: str, text: str, prints: str, right: str) -> str:
    told = {"It prints": prints, "With the course's answer it prints": right}
    shown = [
        f"{who}\n{textwrap.indent(program.printed(said), '    ')}"
        for who, said in told.items()
        if said
    ]
    return "\n".join([_filled(note), "", text, *shown])


def _filled(note: str) -> str:
    return textwrap.fill(note, 88)
