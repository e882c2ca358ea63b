"""What ``autograder grade`` would change: graded beside the class, into a copy of the gradebook.

The copy takes each score as the gradebook would, so scores by hand, extra points, extensions and
late penalties are worked out by the same code, and by the course's own plugin.
"""

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Self

from autograder import cell_metadata
from autograder.grading.classroom.database import GradebookError, copy_gradebook
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, Counted
from autograder.grading.notebook.result import Exercise, Result
from autograder.grading.running.batch import Batch
from autograder.grading.running.previewed import Previewed

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
    """The preview of a grading. As a context it has ``book``, the copy, which is removed after it.

    ``adopt``    whether lessons are taken whose exercises came or went since they were handed in
    ``refused``  why a lesson's exercises are not taken; nothing of it can be told
    """

    def __init__(self, course: Course, handed: Collection[Handed], adopt: bool = False) -> None:
        self._course, self._chosen, self._adopt = course, handed, adopt
        self._store = Previewed(course)
        self.refused: dict[str, GradebookError] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self._store.start()
            undo.callback(self._store.stop)
            copy_gradebook(self._course, self._store.course)
            self.book = undo.enter_context(Book(self._store.course))
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
    old = {cell_metadata.exercise_called(cell): score for cell, score in before.scores.items()}
    new = {cell_metadata.exercise_called(cell): score for cell, score in after.scores.items()}
    for one in result.exercises:
        if one.name in new:
            yield Part(one, old.get(one.name, (0.0, 0.0, None)), new[one.name])
