"""Grade many submissions: skip what is done, say why the rest is not, keep every outcome."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from autograder import cell_metadata
from autograder.grading.classroom.database import GradebookError
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, Counted
from autograder.grading.classroom.hand_in_failure import failure, raise_if_everyones
from autograder.grading.execution.assemble import assemble, error_output
from autograder.grading.execution.task import Graded, Task, WorkerLost, WorkFailed
from autograder.grading.notebook import records
from autograder.grading.notebook.result import UNGRADED, Exercise, Result
from autograder.grading.notebook.submission import Submission
from autograder.grading.running.result_dependencies import PARTS, Dependencies
from autograder.inside.limits import DEFAULT, NONE, OWN, Limits
from autograder.settings import care
from autograder.temporary import place


class Batch:
    """The submissions of a course that are to be graded, and the book that takes their scores.

    ``walls``      what must have stood around students' code, OWN or NONE, for a result to stay
    ``regrade``    whether all results are made anew; one that is not, is by the next run
    ``home``       the copy of the course into which a preview writes; ``book`` is that of it, too
    ``copies``     by each copy of a group's notebook: whose it is, judged once for all of them
    """

    def __init__(
        self,
        course: Course,
        book: Book,
        handed: Collection[Handed],
        policy: str,
        limits: Limits = DEFAULT,
        walls: str = NONE,
        regrade: bool = False,
        home: Course | None = None,
        copies: Mapping[Handed, Handed] | None = None,
    ) -> None:
        self._course, self._book = course, book
        self._policy, self._limits, self._walls = policy, limits, walls
        self._care, self._regrade = care(course.root), regrade
        self._home = home or course  # where results are written
        self.copies = copies or {}
        self._masters: dict[str, dict[str, Any]] = {}
        self._counted: dict[str, dict[str, Counted]] = {}  # by lesson and student, until now
        self._depends: dict[str, Dependencies] = {}
        for lesson in sorted({one.lesson for one in handed}):
            book.register(lesson)
            self._masters[lesson] = records.read_notebook(course.master(lesson))
            self._counted[lesson] = book.counted(lesson)
            self._depends[lesson] = Dependencies(course, lesson, self._masters[lesson])
        self.done: dict[Handed, Result] = {}  # what is graded
        self.waiting: dict[Handed, dict[str, str]] = {}  # what is not: its dependencies, once known
        self.reasons: dict[Handed, str] = {}  # why it waits, in words, if it was graded before
        self.counts: dict[Handed, float] = {}  # points after changes by hand, if it is graded now
        self.penalised: dict[Handed, tuple[float, float]] = {}  # by another penalty alone: was, is
        self.restored: list[Handed] = []  # graded before, and in a gradebook that is new
        self._unreadable: dict[Handed, WorkFailed] = {}  # of what no task could be made
        self.unkept: dict[Handed, str] = {}  # why it could not be written down
        for one in handed:
            try:
                self._sort(one)
            except Exception as error:
                self.reasons[one] = failure("looking at what is kept of it", error)
                self.waiting[one] = {}

    def _sort(self, one: Handed) -> None:
        """Whether a submission is done or waits, and why."""
        kept = self._course.kept(one)
        if kept is None:
            self.waiting[one] = {}
            return
        if self._regrade and not kept.regrade:
            kept.regrade = True
            if self._home is self._course:
                records.save_reasons(self._course.autograded(one).parent, kept)
        parts = self._depends[one.lesson].of(one)
        if reason := self._stale(kept, parts) or self._settled(one, kept):
            self.waiting[one], self.reasons[one] = parts, reason
        else:
            self.done[one] = kept
            self._penalise(one)

    def _penalise(self, one: Handed) -> None:
        """Let what is done follow the late rule, the dates and the extensions as they are now."""
        before = self._counted[one.lesson].get(one.student)
        if before is not None and one not in self.counts:
            now = self._book.settle_penalty(one, before)
            if abs(now - before.score) > 1e-6:
                self.penalised[one] = before.score, now

    def outcomes(self, workers: Any) -> Iterator[tuple[Handed, Graded | WorkFailed]]:
        """Yield (Handed, outcome) of all that waits."""
        shared = self._shared()
        for outcomes in (workers.map(self.tasks()), self._unreadable.items()):
            for one, outcome in outcomes:
                for member in shared[one]:
                    yield member, outcome

    def tasks(self) -> Iterator[tuple[Handed, Task]]:
        """Yield (Handed, Task) for each notebook that waits."""
        for one, members in self._shared().items():
            try:
                task = self._task(one, members)
            except Exception as error:
                raise_if_everyones(error)
                self._unreadable[one] = WorkFailed.by(error)
            else:
                yield one, task

    def _task(self, one: Handed, members: Collection[Handed]) -> Task:
        for member in members:
            self.waiting[member] = self.waiting[member] or self._depends[one.lesson].of(member)
        text = json.dumps(assemble(self._masters[one.lesson], self._course.read(one)))
        how = self._policy, self._limits, self._course.secrets, self._care
        return Task(one.lesson, text, *how)

    def _shared(self) -> dict[Handed, list[Handed]]:
        """Who waits, by whose notebook it is: members of a group have the same."""
        found: dict[Handed, list[Handed]] = {}
        for one in self.waiting:
            own = self.copies.get(one, one)
            found.setdefault(own if own in self.waiting else one, []).append(one)
        return found

    def keep(self, one: Handed, outcome: Graded | WorkFailed) -> Result | None:
        """Write down what a task gave, a Graded or an error; return the Result.

        None where this one cannot be written down; ``unkept`` says why then. Raises what is no
        single submission's: OSError where the disk takes nobody's, GradebookError.
        """
        try:
            return self._keep(one, outcome)
        except Exception as error:
            why = failure("writing it down", error)
            if isinstance(error, OSError):
                why = f"{place(error) or 'a file'}: {error.strerror or error}"
            self.unkept[one] = why
            return None

    def _keep(self, one: Handed, outcome: Graded | WorkFailed) -> Result:
        if isinstance(outcome, WorkFailed):
            notebook, result = self._ungraded(one, outcome)
        else:
            notebook = json.loads(outcome.notebook)
            result = replace(outcome.result, student=one.student)
            result.parts = self.waiting[one]
        path = self._home.autograded(one)
        self._home.write_companions(one)
        records.save(path.parent, notebook, path.stem, result)
        self._store(one, notebook)
        self.done[one] = result
        return result

    def _stale(self, kept: Result, parts: dict[str, str]) -> str:
        """Why a kept Result does not hold any more, or ''."""
        if kept.regrade:
            return "--regrade asks for it"
        if not kept.parts:
            if kept.ungraded:
                return "the grader failed before"
            return "graded by nbgrader or an older version before"
        changed = [words for part, words in PARTS.items() if kept.parts.get(part) != parts[part]]
        if kept.limits != self._limits.as_dict():
            changed.append("the limits")
        if kept.care != self._care:
            changed.append("what care costs")
        if changed:
            return f"{' and '.join(changed)} changed"
        weaker = self._walls == OWN and kept.sandbox == "none"
        return "graded without a sandbox before" if weaker else ""

    def _settled(self, one: Handed, kept: Result) -> str:
        """Write what is missing beside a kept Result; why that cannot be, or ''."""
        if not records.has_companions(self._course.autograded(one).parent):
            self._home.write_companions(one)
        before = self._counted[one.lesson].get(one.student, Counted()).scores.items()
        known = {cell_metadata.exercise_called(name): auto for name, (*_, auto) in before}
        if known != {part.name: part.score for part in kept.exercises}:
            if one.lesson in self._book.new:
                self.restored.append(one)
            try:
                self._store(one, records.read_notebook(self._course.autograded(one)))
            except (OSError, ValueError, KeyError):
                return "the graded notebook is gone or damaged"
        return ""

    def _store(self, one: Handed, notebook: dict[str, Any]) -> None:
        try:
            self.counts[one] = self._book.store(one, notebook)
        except Exception as error:
            records.forget(self._home.autograded(one).parent)  # so that the next run grades it
            if not isinstance(error, GradebookError):
                self._book.undo()
            raise

    def _ungraded(self, one: Handed, error: WorkFailed) -> tuple[dict[str, Any], Result]:
        """No evidence, no points; without digests, the next run tries again."""
        blamed = "" if isinstance(error, WorkerLost) else ", and the grader is to blame"
        reason = f"{UNGRADED}{blamed}: {str(error)[:400]}"
        notebook = assemble(self._masters[one.lesson], Submission(problem=reason))
        exercises = []
        for cell in notebook["cells"]:
            if cell_metadata.run(cell) == cell_metadata.OUTSIDE:
                cell["outputs"] = [error_output("NotGraded", ["This could not be graded."])]
                exercises.append(
                    Exercise(cell_metadata.exercise(cell), 0.0, cell_metadata.points(cell), reason)
                )
        # Where the grader failed is for whoever mends it; the student's feedback has the sentence.
        problem = f"{reason}\n{error.trace}".rstrip()
        return notebook, Result(one.student, one.lesson, exercises, problem)
