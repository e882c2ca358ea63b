"""nbgrader's gradebook, written by one process over one connection."""

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import nbformat
from nbgrader import utils
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Notebook,
    SourceCell,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties

from autograder import cell_metadata
from autograder.grading.classroom.database import (
    LOG,
    GradebookError,
    agree,
    raise_faults,
    roster,
    usable,
)
from autograder.grading.classroom.deadline_extensions import due_for, handed_in
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook import records
from autograder.temporary import Temporary


class ChangedExercises(GradebookError):
    """A lesson has other exercises than when it was handed in; str() says which."""

    def __init__(self, lesson: str, gone: Collection[str], new: Collection[str]) -> None:
        parts = {"without": gone, "with": new}
        said = (f"{word} {', '.join(sorted(names))}" for word, names in parts.items() if names)
        super().__init__(
            f"{lesson} is another than when the class handed it in: {' and '.join(said)}"
        )


@dataclass
class Counted:
    """What counts of one submission, with changes by hand, extra points and the late penalty."""

    # By cell: points, points there are, and what its check gave (None: nothing).
    scores: dict[str, tuple[float, float, float | None]] = field(default_factory=dict)
    comments: dict[str, str | None] = field(default_factory=dict)  # the instructor's, or nbgrader's
    penalty: float = 0.0
    handed_in: datetime | None = None  # in UTC without a zone; so is when it was due for them
    due: datetime | None = None
    unsettled: bool = False  # somebody is to look at it again

    @property
    def score(self) -> float:
        """All points together, less the penalty."""
        return sum(score for score, _, _ in self.scores.values()) - self.penalty

    @property
    def seconds_late(self) -> float:
        """By how much it came too late, or 0."""
        if self.due is None or self.handed_in is None:
            return 0.0
        return max(0.0, (self.handed_in - self.due).total_seconds())

    @property
    def most(self) -> float:
        """All points that there are."""
        return sum(most for _, most, _ in self.scores.values())


class Book:
    """The scores of a course. ``store`` does to the database what ``nbgrader autograde`` does."""

    def __init__(self, course: Course) -> None:
        self._course = course
        with usable(course):
            self._book = Gradebook(course.db_url, course.id)
            agree(self._book, course)
        self._names: dict[str, str] = {}  # of graded and solution cells, by id
        self._checksums: dict[str, dict[str, str]] = {}
        self.new: set[str] = set()  # lessons that the gradebook did not know until they came here

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._book.close()

    def register(self, lesson: str) -> None:
        """Make sure that the gradebook knows ``lesson`` as it is now, as generate_assignment would.

        Raises ChangedExercises where exercises came or went since work was handed in, and
        GradebookError where nbgrader refuses.
        """
        if lesson in self._checksums:
            return
        master = records.read_notebook(self._course.master(lesson))
        with usable(self._course):
            try:
                known = self._knows(lesson, master["cells"])
            except MissingEntry:
                known = False
                self.new.add(lesson)
        if not known:
            try:
                _register(self._course, lesson)
            except (SystemExit, Exception) as error:
                raise_faults(self._course, error)
                raise GradebookError(
                    f"{lesson}: the gradebook has other exercises than the solved notebook, and "
                    f"nbgrader does not accept these: {error}"
                ) from error
            self._book.db.expire_all()
        with usable(self._course):
            notebook = self._book.find_notebook(lesson, lesson)
            graded = [*notebook.grade_cells, *notebook.solution_cells, *notebook.task_cells]
            self._names |= {cell.id: cell.name for cell in graded}
            self._checksums[lesson] = {cell.name: cell.checksum for cell in notebook.source_cells}

    def _knows(self, lesson: str, cells: list[dict[str, Any]]) -> bool:
        """Whether the gradebook has exactly these cells; nbgrader may be killed between two.

        Where work was handed in, nbgrader takes no notebook with other cells. So those that are
        given to all, and that an update of the course added or removed, are added or removed here.
        """
        notebook = self._book.find_notebook(lesson, lesson)
        now = {cell_metadata.grade_id(cell): cell for cell in filter(cell_metadata.is_known, cells)}
        checks = {
            name: cell_metadata.points(cell)
            for name, cell in now.items()
            if cell_metadata.is_check(cell)
        }
        answers = {name for name, cell in now.items() if cell_metadata.is_solution(cell)}
        old = {one.name: one.max_score for one in notebook.grade_cells}
        known = {one.name: one for one in notebook.source_cells}
        gone, new = known.keys() - now.keys(), now.keys() - known.keys()
        if notebook.submissions:
            if old.keys() != checks.keys():
                lists = old.keys() - checks.keys(), checks.keys() - old.keys()
                called = cell_metadata.exercise_called
                raise ChangedExercises(lesson, *({*map(called, names)} for names in lists))
            for name in gone:
                self._book.db.delete(known[name])
            for name in new:
                facts = {key: now[name][key] for key in ("cell_type", "source")}
                self._book.db.add(SourceCell(name=name, notebook=notebook, **facts))
            self._book.db.commit()
        same_answers = answers == {one.name for one in notebook.solution_cells}
        return old == checks and same_answers and not gone and not new

    def roster(self) -> dict[str, bool]:
        """Ids of all students, and whether more is known of them than the id."""
        with usable(self._course):
            return roster(self._book)

    def counted(self, lesson: str) -> dict[str, Counted]:
        """What counts of each submission of ``lesson``, by student; {} for a lesson not there."""
        found: dict[str, Counted] = {}
        columns = (Grade.score, Grade.max_score, Grade.auto_score, Grade.needs_manual_grade)
        late = SubmittedNotebook.late_submission_penalty
        dates = SubmittedAssignment.timestamp, Assignment.duedate, SubmittedAssignment.extension
        rows = self._rows(lesson, Grade, *columns, late, *dates)
        for student, name, *scores, again, penalty, when, usual, more in rows:
            told = Counted(penalty=penalty or 0, handed_in=when, due=due_for(usual, more))
            one = found.setdefault(student, told)
            one.scores[name] = tuple(scores)
            one.unsettled = one.unsettled or again
        for student, name, text in self._rows(lesson, Comment, Comment.comment):
            found.setdefault(student, Counted()).comments[name] = text
        return found

    def _rows(self, lesson: str, kind: type[Grade] | type[Comment], *columns: Any) -> Iterable[Any]:
        """Tuples (student, cell, *columns) of each grade or comment in a lesson."""
        with usable(self._course):
            return (
                self._book.db.query(SubmittedAssignment.student_id, BaseCell.name, *columns)
                .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
                .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
                .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
                .join(kind, kind.notebook_id == SubmittedNotebook.id)
                .join(BaseCell, BaseCell.id == kind.cell_id)
                .filter(Assignment.name == lesson, Notebook.name == lesson, handed_in())
                .all()
            )

    def store(self, handed: Handed, notebook: dict[str, Any]) -> float:
        """Record the scores of a graded notebook, the hint 'No response.', and any penalty.

        Returns the points that count now: what somebody changed by hand stays. Raises
        GradebookError where the penalty cannot be worked out, or the database takes nothing.
        """
        book, lesson = self._book, handed.lesson
        with usable(self._course):
            book.update_or_create_student(handed.student)
            timestamp = self._course.timestamp(handed)
            more = {"timestamp": timestamp} if timestamp else {}
            submission = book.update_or_create_submission(lesson, handed.student, **more)
            late = submission.total_seconds_late > 0
            submitted = book.find_submission_notebook(lesson, lesson, handed.student)
            named = [cell for cell in notebook["cells"] if cell_metadata.grade_id(cell)]
            cells = {cell_metadata.grade_id(cell): nbformat.from_dict(cell) for cell in named}
            for grade in book.db.query(Grade).filter(Grade.notebook_id == submitted.id):
                grade.auto_score = utils.determine_grade(cells[self._names[grade.cell_id]], LOG)[0]
                grade.needs_manual_grade = grade.manual_score is not None
            for comment in book.db.query(Comment).filter(Comment.notebook_id == submitted.id):
                cell = cells[self._names[comment.cell_id]]
                untouched = self._checksums[lesson][cell_metadata.grade_id(cell)]
                same = utils.compute_checksum(cell) == untouched
                comment.auto_comment = "No response." if same else None
            submitted.late_submission_penalty = None
            book.db.commit()
            if late:
                self._penalise(handed)
            book.db.refresh(submitted)
            return float(submitted.score - (submitted.late_submission_penalty or 0))

    def settle_penalty(self, handed: Handed, counted: Counted) -> float:
        """Take off for lateness what rule and dates ask for now; returns the points that count.

        counted  what counted until now
        """
        book, lesson = self._book, handed.lesson
        if not counted.penalty and not counted.seconds_late:
            return counted.score
        with usable(self._course):
            self._penalise(handed)
            submitted = book.find_submission_notebook(lesson, lesson, handed.student)
            return float(submitted.score - (submitted.late_submission_penalty or 0))

    def undo(self) -> None:
        """Forget what ``store`` began and did not end."""
        self._book.db.rollback()

    def _penalise(self, handed: Handed) -> None:
        names = {"notebook": handed.lesson, "assignment": handed.lesson}
        names |= {"student": handed.student, "db_url": self._course.db_url}
        folder = str(self._course.root)
        sys.path.insert(0, folder)  # for a plugin beside nbgrader_config.py, as nbgrader finds it
        try:
            step = AssignLatePenalties(config=self._course.config, log=LOG)
            step.preprocess(nbformat.v4.new_notebook(), {"nbgrader": names})  # it reads no cell
        except Exception as error:  # a plugin may be anyone's
            raise GradebookError(
                f"{handed.lesson}: the late penalty of {handed.student} cannot be worked out "
                f"({type(error).__name__}: {error}); see c.AssignLatePenalties.plugin_class in "
                "nbgrader_config.py. Everyone graded before stays graded."
            ) from error
        finally:
            sys.path.remove(folder)
        self._book.db.expire_all()


def _register(course: Course, lesson: str) -> None:
    """Run nbgrader's generate_assignment, with the released notebook going to nowhere."""
    with Temporary() as folder:
        config: Any = course.config.copy()
        config.CourseDirectory.assignment_id = lesson
        config.CourseDirectory.release_directory = str(folder)
        config.CourseDirectory.db_url = course.db_url
        folders = CourseDirectory(config=config)
        named: Any = {"coursedir": folders, "config": config, "log": LOG}
        GenerateAssignment(**named, create_assignment=True).start()
