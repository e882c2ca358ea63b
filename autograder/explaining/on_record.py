"""What is on record of a student's exercise: the answer, the verdict, and how the class did."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autograder import CourseError, cell_metadata, lessons
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.item_analysis import told
from autograder.grading.classroom.sample_class import DEFINITION
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Result, listed
from autograder.reporting import mistake_template

HEADING = "### Exercise "  # of the section of a lesson that asks for an answer
Row = dict[str, Any]


@dataclass
class Case:
    """A student's answer to an exercise, and what became of it.

    notebook  as it was graded, with the answers in the master's cells
    since     what was handed in since, in a sentence, or ''
    text      what the lesson says above the answer's cell
    part      name, score, max, reason, …, as a report has them
    """

    handed: Handed
    exercise: str
    notebook: dict[str, Any]
    answer: str
    helpers: list[str]
    since: str
    text: str
    part: Row
    kept: Result
    source: str = ""  # of a group's work: the member who handed it in, if that is another
    alike: list[str] = field(default_factory=list)  # who else lost points in the same way
    others: list[str] = field(default_factory=list)  # who else lost points here
    tried: int = 0  # others who wrote something here


def find(course: Course, lesson: str, student: str, exercise: str) -> tuple[Handed, Result]:
    """A graded submission that has this exercise. Raises CourseError, with what there is."""
    slug = lessons.choose([lesson], course.lessons())[0]
    there = sorted(one.student for one in course.submissions([slug]))
    if student not in there:
        known = listed(there) or "nobody did"
        raise CourseError(f"{student!r} handed in nothing for {slug}; who did: {known}")
    handed = Handed(slug, student)
    names = [cell_metadata.exercise(cell) for cell in _checks(course, slug)]
    if exercise not in names:
        known = ", ".join(names)
        raise CourseError(f"{slug} has no exercise called {exercise!r}; there are: {known}")
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
    return handed, kept


def case(
    course: Course,
    handed: Handed,
    kept: Result,
    exercise: str,
    rows: Iterable[Row],
    copies: Mapping[str, str],
) -> Case:
    """The Case of an exercise; ``rows`` are those of the lesson's report.

    copies  from a student whose notebook is a copy to the member of the group who handed it in:
            the work of a group counts as one

    Raises CourseError where no point was lost, or nothing was written.
    """
    own: dict[str, Row] = {}
    for row in rows:
        own.update((row["student"], p) for p in row["exercises"] if p["name"] == exercise)
    part = own.pop(handed.student, {})
    source = copies.get(handed.student, "")
    same_work = {*copies, source}
    tried = {n: one for n, one in own.items() if n not in same_work and not one.get("is_open")}
    _refuse_nothing(handed, exercise, part)
    notebook = _graded(course, handed)
    cells = [one for one in notebook["cells"] if cell_metadata.is_solution(one)]
    answer = next((one["source"] for one in cells if cell_metadata.exercise(one) == exercise), "")
    lost = {name: one for name, one in tried.items() if _is_lost(one, one["score"])}
    same = told(part["reason"])
    return Case(
        handed,
        exercise,
        notebook,
        answer,
        _helpers(notebook, exercise, answer),
        _since(course, handed, notebook, exercise),
        _text(course, handed.lesson, exercise),
        part,
        kept,
        source,
        sorted(name for name, one in lost.items() if told(one["reason"]) == same),
        sorted(lost),
        len(tried),
    )


def _is_lost(part: Row, score: float) -> bool:
    """Whether an answer with this score is wrong: where an exercise has no points, it is if the
    check gave a reason, and not one of care alone."""
    wrong = bool(part.get("reason")) and not part.get("is_careless")
    return score < part["max"] or (part["max"] == 0 and wrong)


def _refuse_nothing(handed: Handed, exercise: str, part: Row) -> None:
    who = f"{handed.student}'s {exercise}"
    if not part:
        raise CourseError(
            f"{who} is not among what was graded: the lesson has changed since; run autograder "
            f"grade --lesson {handed.lesson.partition('_')[0]}"
        )
    score = part["automatic"] if "automatic" in part else part["score"]
    earned = f"{part['score']:g} of {part['max']:g} points"
    if "automatic" in part:
        earned += f" (the check gave {part['automatic']:g}, an instructor changed it by hand)"
    if part.get("is_open"):
        what = part["reason"].partition("\n")[0].removeprefix(f"{exercise}: ")
        raise CourseError(
            f"there is nothing to explain: {who} was not attempted or left open: {what}"
        )
    if not _is_lost(part, score) and not part.get("is_careless"):
        raise CourseError(f"there is nothing to explain: the check took {who} for right, {earned}")


def _checks(course: Course, slug: str) -> list[Row]:
    cells = records.read_notebook(course.master(slug))["cells"]
    return [cell for cell in cells if cell_metadata.is_check(cell)]


def _graded(course: Course, handed: Handed) -> dict[str, Any]:
    try:
        return records.read_notebook(course.autograded(handed))
    except (OSError, ValueError, KeyError, TypeError):
        place = course.shown(course.autograded(handed))
        raise CourseError(
            f"the graded notebook {place} is gone or damaged: grade it again"
        ) from None


def _helpers(notebook: dict[str, Any], exercise: str, answer: str) -> list[str]:
    """The student's own functions and classes in other cells that the answer uses."""
    try:
        _, _, needed = mistake_template.parts(notebook, exercise)
    except mistake_template.NoAnswer:
        return []
    there = {ast.unparse(node) for node in mistake_template.parsed(answer)}
    named = [node for node in needed if isinstance(node, DEFINITION)]
    return [text for text in map(ast.unparse, named) if text not in there]


def _since(course: Course, handed: Handed, graded: dict[str, Any], exercise: str) -> str:
    """What has changed in class/submitted/ since the grading, or ''."""
    submission = course.read(handed)
    again = "run autograder grade"
    if submission.problem:
        return f"What lies in class/submitted/ now cannot be read: {submission.problem}."
    now = assemble(records.read_notebook(course.master(handed.lesson)), submission)
    if _code(now, exercise) != _code(graded, exercise):
        return f"The student handed in another answer since, which is not graded yet: {again}."
    return ""


def _code(notebook: dict[str, Any], exercise: str) -> list[str]:
    """The texts of the cells of an answer that ran."""
    cells = [one for one in notebook["cells"] if cell_metadata.run(one) == cell_metadata.INSIDE]
    return [one["source"] for one in cells if cell_metadata.exercise(one) == exercise]


def _text(course: Course, slug: str, exercise: str) -> str:
    """The section of the lesson that asks for the answer, with the code that it gives.

    It begins with the exercise's heading.
    """
    above: list[str] = []
    for cell in records.read_notebook(course.master(slug))["cells"]:
        if cell_metadata.is_solution(cell) and cell_metadata.exercise(cell) == exercise:
            return "\n\n".join(above)
        prose = cell["cell_type"] == "markdown"
        _, heading, text = cell["source"].rpartition(HEADING) if prose else ("", "", "")
        if heading or cell_metadata.is_check(cell):
            above = [f"{heading}{text}"] * bool(heading)
        elif prose or cell_metadata.is_known(cell):
            above.append(cell["source"] if prose else f"```python\n{cell['source']}\n```")
    return ""
