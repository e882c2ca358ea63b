"""Grade many submissions: find them, skip what is done, keep every outcome."""

import json

from autograder.grading import companions, records
from autograder.grading.assemble import OUTSIDE, RUN, assemble, error_output, exercise_of
from autograder.grading.result import Exercise, Result
from autograder.grading.submission import Submission, read
from autograder.grading.task import Task


class Batch:
    """The submissions of a course that are to be graded, and the book that takes their scores."""

    def __init__(self, course, book, handed, policy="required", limits=None, regrade=False):
        self._course, self._book = course, book
        self._options = {"sandbox": policy, **({"limits": limits} if limits else {})}
        self._masters, self._scores = {}, {}
        for lesson in sorted({one.lesson for one in handed}):
            book.register(lesson)
            self._masters[lesson] = records.read_notebook(course.master(lesson))
            self._scores[lesson] = book.scores(lesson)
        self.done, self.waiting = {}, {}
        for one in handed:
            mark = records.digest(course, one)
            kept = None if regrade else records.load(course.autograded(one).parent)
            if kept is None or kept.digest != mark or not self._settled(one, kept):
                self.waiting[one] = mark
            else:
                self.done[one] = kept

    def tasks(self):
        """Yield (Handed, Task) for each submission that waits."""
        for one in self.waiting:
            text = json.dumps(self._assemble(one))
            yield one, Task(one.lesson, text, **self._options)

    def keep(self, one, outcome):
        """Write down what a task gave, a Graded or an error; return the Result."""
        if isinstance(outcome, Exception):
            notebook, result = self._ungraded(one, outcome)
        else:
            notebook = json.loads(outcome.notebook)
            problem = notebook["metadata"]["autograder"]["problem"]
            result = Result("", "", outcome.exercises, problem, outcome.seconds, self.waiting[one])
        result.student, result.lesson = one.student, one.lesson
        path = self._course.autograded(one)
        self._course.write_companions(one)
        records.save(path.parent, notebook, path.stem, result)
        self._book.store(one, notebook)
        self.done[one] = result
        return result

    def _assemble(self, one):
        return assemble(self._masters[one.lesson], read(self._course.submitted(one), own_folders=2))

    def _settled(self, one, kept):
        """Whether all is there beside a kept Result; what is missing is written now."""
        if not companions.complete(self._course.autograded(one).parent):
            self._course.write_companions(one)
        known = self._scores[one.lesson].get(one.student, {})
        if known == {part.name: part.score for part in kept.exercises}:
            return True
        try:
            notebook = records.read_notebook(self._course.autograded(one))
            self._book.store(one, notebook)
        except (OSError, ValueError, KeyError):
            return False
        return True

    def _ungraded(self, one, error):
        """No evidence, no points; without a digest, the next run tries again."""
        reason = (
            f"this could not be graded, and the grader is to blame: {str(error).strip()[-400:]}"
        )
        notebook = assemble(self._masters[one.lesson], Submission(problem=reason))
        exercises = []
        for cell in notebook["cells"]:
            if cell["metadata"].get("autograder", {}).get(RUN) == OUTSIDE:
                cell["outputs"] = [error_output("NotGraded", ["This could not be graded."])]
                name, points = exercise_of(cell)
                exercises.append(Exercise(name, 0.0, points, reason))
        return notebook, Result("", "", exercises, reason)
