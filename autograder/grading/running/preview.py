"""What ``autograder grade`` would change: graded beside the class, into a copy of the gradebook.

The copy takes each score as the gradebook would, so scores by hand, extra points, extensions and
late penalties are worked out by the same code, and by the course's own plugin.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Self

from autograder.cell_metadata import exercise_called
from autograder.grading.classroom import item_analysis
from autograder.grading.classroom.database import GradebookError, copy_gradebook
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, Counted
from autograder.grading.notebook.result import Exercise, Result, clean
from autograder.grading.running.batch import Batch
from autograder.settings import count
from autograder.temporary import Temporary

Score = tuple[float, float, float | None]  # points that count, that there are, that a check gave
SAME = 1e-6
NO_RECORD = "nothing says any more how it was graded before"
UNLIKE = "the gradebook has other scores than the graded notebook"


@dataclass(frozen=True)
class Part:
    """One exercise of one student, before and after."""

    result: Exercise  # after, by its check
    before: Score
    after: Score

    @property
    def changed(self) -> bool:
        """Whether other points of it would count."""
        return abs(self.after[0] - self.before[0]) > SAME

    @property
    def stays(self) -> bool:
        """Whether the check gives other points and those stay that somebody gave by hand."""
        return not self.changed and abs((self.after[2] or 0) - (self.before[2] or 0)) > SAME


@dataclass(frozen=True)
class Change:
    """What would be other points of one submission, or the same of another maximum."""

    one: Handed
    result: Result
    why: str  # it would be graded again
    before: Counted
    after: Counted
    parts: list[Part]  # those that changed, and those that stay by hand

    @property
    def gain(self) -> float:
        """Points that it would have more than before."""
        return round(self.after.score - self.before.score, 4)

    @property
    def has_other_maximum(self) -> bool:
        """Whether an exercise that it has in both is worth other points."""
        old, new = self.before.scores, self.after.scores
        return any(abs(old[cell][1] - new[cell][1]) > SAME for cell in old.keys() & new.keys())


class Preview:
    """The preview of a grading. As a context it has ``home`` and ``book``, copies of the course and
    of its gradebook, which are removed after it.

    ``adopt``    whether lessons are taken whose exercises came or went since they were handed in
    ``refused``  why a lesson's exercises are not taken; nothing of it can be told
    """

    def __init__(self, course: Course, handed: Collection[Handed], adopt: bool = False) -> None:
        self._course, self._chosen, self._adopt = course, handed, adopt
        self.refused: dict[str, GradebookError] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self.home = self._course.copy(undo.enter_context(Temporary()))
            copy_gradebook(self._course, self.home)
            self.book = undo.enter_context(Book(self.home))
            lessons = sorted({one.lesson for one in self._chosen})
            self._before = {lesson: self.book.counted(lesson) for lesson in lessons}
            for lesson in lessons:
                self._register(lesson)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @property
    def handed(self) -> list[Handed]:
        """The submissions of which something can be told."""
        return [one for one in self._chosen if one.lesson not in self.refused]

    def compare(self, batch: Batch) -> None:
        """Find, of a Batch that has ended, what became of every submission."""
        self.changes: list[Change] = []
        self.unsaid: dict[Handed, str] = {}  # why nothing can be told of it
        self.first: list[Handed] = []  # those that were never graded
        self._after = {lesson: self.book.counted(lesson) for lesson in self._before}
        for one in self.handed:
            result = batch.done.get(one)
            if result is None or result.ungraded:
                said = batch.unkept.get(one) or (result.problem if result else "")
                self.unsaid[one] = said.partition("\n")[0]
            elif not self._was_graded(one):
                self.first.append(one)
            elif change := self._change(batch, one, result):
                self.changes.append(change)

    def _register(self, lesson: str) -> None:
        try:
            self.book.register(lesson, self._adopt)
        except GradebookError as error:
            self.refused[lesson] = error

    def _was_graded(self, one: Handed) -> bool:
        found = self._before[one.lesson].get(one.student)
        return found is not None and any(auto is not None for _, _, auto in found.scores.values())

    def _change(self, batch: Batch, one: Handed, result: Result) -> Change | None:
        """What would be other points of a submission, or the same of another maximum; or None."""
        before = self._before[one.lesson][one.student]
        after = self._after[one.lesson][one.student]
        parts = [part for part in _parts(result, before, after) if part.changed or part.stays]
        why = batch.reasons.get(one) or (UNLIKE if self._course.kept(one) else NO_RECORD)
        change = Change(one, result, why, before, after, parts)
        return change if parts or change.has_other_maximum or abs(change.gain) > SAME else None


def _parts(result: Result, before: Counted, after: Counted) -> Iterator[Part]:
    """The exercises in the order of the notebook."""
    old = {exercise_called(cell): score for cell, score in before.scores.items()}
    new = {exercise_called(cell): score for cell, score in after.scores.items()}
    for one in result.exercises:
        if one.name in new:
            yield Part(one, old.get(one.name, (0.0, 0.0, None)), new[one.name])


def lines(preview: Preview) -> Iterator[str]:
    """What is to be told of a Preview that has compared: its students one by one, then counts."""
    several = len({change.why for change in preview.changes}) > 1
    for change in sorted(preview.changes, key=_sign):
        yield from _student(change, several)
    yield from _counts(preview)


def reason(result: Result, one: Exercise) -> str:
    """Why an exercise has the points that its check gives now, in one line; 'right' where all."""
    if one.score >= one.max:
        return "right"
    said = result.problem or item_analysis.said(one.reason).what
    return clean(said.partition("\n")[0]).removeprefix(f"{one.name}: ").rstrip(".")


def total(change: Change) -> str:
    """'3 → 5 of 5', or where there were other points, '3 of 5 → 5 of 7'."""
    before, after = change.before, change.after
    was = f" of {before.most:g}" if change.has_other_maximum else ""
    return f"{before.score:g}{was} → {after.score:g} of {after.most:g}"


def _sign(change: Change) -> int:
    """First those who gain, then those who lose, then those with the same points in all."""
    return 0 if change.gain > 0 else 1 if change.gain < 0 else 2


def _student(change: Change, several: bool) -> Iterator[str]:
    what = ("gains", "loses", "keeps the total")[_sign(change)]
    yield f"{what}: {change.one.student}, {change.one.lesson}: {total(change)}"
    for part in change.parts:
        yield f"    {part.result.name}: {_part(part, reason(change.result, part.result))}"
    yield from _came_or_went(change)
    before, after = change.before.penalty, change.after.penalty
    if abs(after - before) > SAME:
        yield f"    late penalty: {before:g} → {after:g}"
    if several or not change.parts:
        yield f"    why it is graded again: {change.why}"


def _came_or_went(change: Change) -> Iterator[str]:
    """The exercises that only one of the two versions of a lesson has."""
    old, new = change.before.scores, change.after.scores
    for cell in sorted(old.keys() - new.keys()):
        yield f"    {exercise_called(cell)}: {old[cell][0]:g} → no longer asked for"
    for cell in sorted(new.keys() - old.keys()):
        score, most, _ = new[cell]
        yield f"    {exercise_called(cell)}: was not asked for → {score:g} of {most:g}"


def _part(part: Part, why: str) -> str:
    (before, _, was), (after, most, automatic) = part.before, part.after
    if part.stays:
        check = f"the check gave {was or 0:g}, and would give {automatic or 0:g}"
        return f"{count(after)} by hand stay; {check}: {why}"
    extra = "" if automatic == after else f" (the check: {automatic or 0:g})"
    return f"{before:g} → {after:g} of {most:g}{extra}: {why}"


def _counts(preview: Preview) -> Iterator[str]:
    signs = Counter(map(_sign, preview.changes))
    told = len(preview.handed) - len(preview.unsaid) - len(preview.first)
    gain, lose = signs[0], signs[1]
    if told and not gain and not lose:
        yield f"Nobody's points would change: {told} would keep theirs."
    elif told:
        keep = told - gain - lose
        yield (
            f"Of {told} graded before, {gain} would gain points, {lose} would lose some, and "
            f"{keep} would keep theirs."
        )
    if preview.first:
        yield f"{len(preview.first)} would be graded for the first time."
    by_hand = sum(part.stays for change in preview.changes for part in change.parts)
    if by_hand:
        yield (
            f"Scores by hand stay, {by_hand} of them although the check would give other points: "
            "they would be marked “needs manual grade”."
        )
