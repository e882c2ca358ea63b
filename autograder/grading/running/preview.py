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
from autograder.grading.classroom.database import GradebookError, copy_gradebook
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, Counted
from autograder.grading.notebook.result import Exercise, Result, clean, said
from autograder.grading.running.batch import Batch
from autograder.temporary import Temporary

SAME = 1e-6


@dataclass(frozen=True)
class Change:
    """What counts of one submission, before and after; ``result`` is what the checks give now."""

    one: Handed
    result: Result
    before: Counted
    after: Counted

    @property
    def gain(self) -> float:
        """Points that it would have more than before."""
        return round(self.after.score - self.before.score, 4)

    @property
    def has_other_maximum(self) -> bool:
        """Whether an exercise is worth other points."""
        old, new = self.before.scores, self.after.scores
        return any(abs(old[cell][1] - new[cell][1]) > SAME for cell in old)

    @property
    def is_worth_telling(self) -> bool:
        """Whether other points would count, in any exercise, or the same of another maximum."""
        return bool([*_parts(self)]) or self.has_other_maximum or abs(self.gain) > SAME


class Preview:
    """The preview of a grading. As a context it has ``home`` and ``book``, copies of the course and
    of its gradebook, which are removed after it.

    ``refused``  why a lesson's exercises are not taken; nothing of it can be told
    """

    def __init__(self, course: Course, handed: Collection[Handed]) -> None:
        self._course, self._chosen = course, handed
        self.refused: dict[str, GradebookError] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self.home = self._course.copy(undo.enter_context(Temporary()))
            copy_gradebook(self._course, self.home)
            self.book = undo.enter_context(Book(self.home))
            lessons = sorted({one.lesson for one in self._chosen})
            self._before = {lesson: self.book.counted(lesson) for lesson in lessons}
            for lesson in lessons:
                try:
                    self.book.register(lesson)
                except GradebookError as error:
                    self.refused[lesson] = error
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
        self.failed: list[Handed] = []  # those whose 0 points are a grading's that failed
        after = {lesson: self.book.counted(lesson) for lesson in self._before}
        for one in self.handed:
            result, before = batch.done.get(one), self._before[one.lesson].get(one.student)
            if result is None or result.ungraded:
                said = batch.unkept.get(one) or (result.problem if result else "")
                self.unsaid[one] = said.partition("\n")[0]
            elif before is None or all(auto is None for _, _, auto in before.scores.values()):
                self.first.append(one)
            elif (kept := self._course.kept(one)) and kept.ungraded:
                self.failed.append(one)
            else:
                change = Change(one, result, before, after[one.lesson][one.student])
                self.changes += [change] * change.is_worth_telling


def lines(preview: Preview) -> Iterator[str]:
    """What is to be told of a Preview that has compared: its students one by one, then counts."""
    for change in sorted(preview.changes, key=_sign):
        yield from _student(change)
    without = len(preview.unsaid) + len(preview.first) + len(preview.failed)
    told = len(preview.handed) - without
    signs = Counter(map(_sign, preview.changes))
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
    if preview.failed:
        yield f"{len(preview.failed)}, whose last grading failed, would have points again."


def _sign(change: Change) -> int:
    """First those who gain, then those who lose, then those with the same points in all."""
    return 0 if change.gain > 0 else 1 if change.gain < 0 else 2


def _student(change: Change) -> Iterator[str]:
    before, after = change.before, change.after
    what = ("gains", "loses", "keeps the total")[_sign(change)]
    was = f" of {before.most:g}" if change.has_other_maximum else ""
    total = f"{before.score:g}{was} → {after.score:g} of {after.most:g}"
    yield f"{what}: {change.one.student}, {change.one.lesson}: {total}"
    yield from _parts(change)
    if abs(after.penalty - before.penalty) > SAME:
        yield f"    late penalty: {before.penalty:g} → {after.penalty:g}"


def _parts(change: Change) -> Iterator[str]:
    """A line for each exercise of which other points would count, in the order of the notebook."""
    old = {exercise_called(cell): score for cell, score in change.before.scores.items()}
    new = {exercise_called(cell): score for cell, score in change.after.scores.items()}
    for one in change.result.exercises:
        score, most, automatic = new[one.name]
        if abs(score - old[one.name][0]) > SAME:
            check = "" if automatic == score else f" (the check: {automatic or 0:g})"
            why = _reason(change.result, one)
            yield f"    {one.name}: {old[one.name][0]:g} → {score:g} of {most:g}{check}: {why}"


def _reason(result: Result, one: Exercise) -> str:
    """Why an exercise has the points that its check gives now, in one line; 'right' where all."""
    if one.score >= one.max:
        return "right"
    why = result.problem or said(one.reason).what
    return clean(why.partition("\n")[0]).removeprefix(f"{one.name}: ").rstrip(".")
