"""What went wrong that no stored mistake explains, gathered by what the answers returned."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from autograder import lessons
from autograder.checking.toolbox import registry
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.item_analysis import NUMBER, Row, said
from autograder.grading.classroom.results_table import lessons as by_lesson
from autograder.reporting.student_answers import Texts, example, texts, unnamed
from autograder.term import groups

# What is no answer cannot be stored as a wrong one.
NO_ANSWER = (
    "nothing here yet",
    "it is not defined",
    "your code had to be stopped",
    "this answer was not written in the notebook",
    "the check takes too long over your results",
)
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
REPEATED = re.compile(r"…(?:,? …){3,}")  # a list of numbers, however long
SPACES = re.compile(r"\s+")
TOLD_CHARS = 300


class Cluster(NamedTuple):
    """Students who were told the same, but for its numbers, and the text of one of them.

    ``student`` wrote ``example``, which is '' where no text is left, and was told ``told``.
    """

    exercise: str
    students: tuple[str, ...]
    told: str
    student: str
    example: str


def of_course(course: Course, results: Iterable[dict[str, Any]]) -> dict[str, list[Cluster]]:
    """The clusters of each lesson of ``results`` (see ``results_table``)."""
    found, copies = {}, groups.copies(course.choices)
    for lesson, all_rows in by_lesson(results).items():
        # A group's work is one work.
        rows = [row for row in all_rows if (lesson, row["student"]) not in copies]
        found[lesson] = clusters(rows, texts(course, rows), hints(lesson))
    return found


def hints(slug: str) -> Mapping[str, frozenset[str]] | None:
    """The hints of the stored mistakes of a lesson by exercise, without spaces; None if it has no
    checks here."""
    try:
        known = registry.of_lesson(lessons.name_of(slug))
    except ModuleNotFoundError:
        return None
    return {
        item.name: frozenset(_unspaced(one.hint or "") for one in registry.mistakes(item))
        for item in known.values()
    }


def clusters(
    rows: Iterable[Row], texts: Texts, known: Mapping[str, frozenset[str]] | None
) -> list[Cluster]:
    """Failures of one lesson that were not named, those of the most students first.

    ``known`` is what `hints` gives; without it, whatever was said to be likely counts as named. The
    text is the shortest of those who wrote more than nothing.
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        for part in row["exercises"]:
            told = _is_wrong_answer(row, part) and _unnamed(part["name"], part["reason"], known)
            if told:
                same = found.setdefault((part["name"], without_numbers(told)), {})
                same[row["student"]] = told
    made = [_cluster(exercise, told, texts) for (exercise, _), told in found.items()]
    return sorted(made, key=lambda one: (-len(one.students), one.exercise, one.told))


def _cluster(exercise: str, told: Mapping[str, str], texts: Texts) -> Cluster:
    students = tuple(sorted(told))
    written = {one: texts.get(one, {}).get(exercise, "").strip() for one in students}
    shown = min(students, key=lambda one: (not written[one], len(written[one])))
    text = example(written[shown], shown)
    return Cluster(exercise, students, unnamed(told[shown], shown)[:TOLD_CHARS], shown, text)


def _is_wrong_answer(row: Row, part: Row) -> bool:
    """Whether an exercise was lost by what was answered, not for want of an answer."""
    what = said(part["reason"]).what.removeprefix(f"{part['name']}: ")
    lost = part["score"] < part["max"] and not part.get("is_careless")  # that one is right
    return lost and not row.get("problem") and not what.startswith(NO_ANSWER)


def _unnamed(exercise: str, reason: str, known: Mapping[str, frozenset[str]] | None) -> str:
    """What was said, on one line, or '' where a stored mistake was named."""
    parts = said(reason)
    if parts.likely and (known is None or _unspaced(parts.likely) in known.get(exercise, ())):
        return ""
    what = parts.what.removeprefix(f"{exercise}: ")
    return f"{what} Got {parts.got}. {parts.likely}".strip() if parts.got else what


def without_numbers(text: str) -> str:
    """``text`` with its numbers and quoted words taken out: what does not change with the seed."""
    text = NUMBER.sub("…", QUOTED.sub("“…”", text))
    return SPACES.sub(" ", REPEATED.sub("…, …", text)).strip()


def _unspaced(text: str) -> str:
    return SPACES.sub("", text)
