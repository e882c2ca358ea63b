"""The folders and the gradebook of a course, as its nbgrader_config.py says."""

import copy
import glob
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder import ROOT, CourseError, lessons
from autograder.course import configure
from autograder.grading.notebook import records
from autograder.grading.notebook.filenames import not_an_id
from autograder.grading.notebook.result import Result
from autograder.grading.notebook.submission import Submission, read
from autograder.term import course_file
from autograder.term.course_file import Choices

CONFIG = "nbgrader_config.py"


@dataclass(frozen=True, order=True)
class Handed:
    """One submission: a student's folder for a lesson, which may hold anything."""

    lesson: str
    student: str


class Course:
    """A course on disk. ``root`` is the folder with nbgrader_config.py (default: this one).

    folders, config  nbgrader's own directory and configuration, of one of its programs, in place
                     of what nbgrader_config.py says
    """

    def __init__(
        self,
        root: Path | str | None = None,
        db_url: str | None = None,
        folders: CourseDirectory | None = None,
        config: Config | None = None,
    ) -> None:
        if folders is not None:
            root = folders.root
        self.root = Path(root or (Path.cwd() if Path(CONFIG).is_file() else ROOT)).resolve()
        try:
            self.config = _config(self.root) if config is None else config
        except SystemExit as error:  # so nbgrader's programs end: see autograder/course.py
            raise CourseError(str(error)) from None
        if db_url:
            self.config.CourseDirectory.db_url = db_url
        self._folders = folders or CourseDirectory(config=self.config)
        self.db_url, self.id = self._folders.db_url, self._folders.course_id

    @cached_property
    def choices(self) -> Choices:
        """What the class has of the course."""
        return course_file.read(self.root)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Paths of what no student's code may see.

        The course's folder and, wherever they are, solutions, submissions, grades and feedback.
        """
        places = {Path(self._folders.root), self.root}
        for step in ("source", "submitted", "autograded", "feedback"):
            places.add(self._folder(step, Handed("*", "*")).parent.parent)  # STEP/STUDENT/LESSON
        scheme, _, path = self.db_url.partition(":///")
        if scheme == "sqlite":
            places.add(Path(self._folders.root) / path)
        return tuple(sorted(map(str, places)))

    def copy(self, folder: Path) -> "Course":
        """The same course with graded notebooks and a gradebook of their own, in ``folder``."""
        config = copy.deepcopy(self.config)
        config.CourseDirectory.root = self._folders.root
        config.CourseDirectory.autograded_directory = str(folder / "autograded")
        return Course(self.root, f"sqlite:///{folder / 'gradebook.db'}", config=config)

    @property
    def handed_in(self) -> Path:
        """The folder that holds one for each student."""
        return self._folder("submitted", Handed("*", "*")).parent.parent

    def master(self, lesson: str) -> Path:
        """Path of the solved notebook of ``lesson``."""
        folder = self._folders.format_path(self._folders.source_directory, ".", lesson)
        return Path(folder) / f"{lesson}.ipynb"

    def submitted(self, handed: Handed) -> Path:
        """Path where the submitted notebook should be."""
        return self._folder("submitted", handed) / f"{handed.lesson}.ipynb"

    def read(self, handed: Handed) -> Submission:
        """What was handed in. The student's folders may not be links out of there."""
        return read(self.submitted(handed), own_folders=2)

    def kept(self, handed: Handed) -> Result | None:
        """What is kept of its grading, if it is graded."""
        found = records.load(self.autograded(handed).parent)
        return found and replace(found, student=handed.student, lesson=handed.lesson)

    def is_damaged(self, handed: Handed) -> bool:
        """Whether what is kept of its grading cannot be read."""
        reasons = self.autograded(handed).parent / records.REASONS
        return os.path.lexists(reasons) and self.kept(handed) is None

    def autograded(self, handed: Handed) -> Path:
        """Path where the graded notebook is written."""
        return self._folder("autograded", handed) / f"{handed.lesson}.ipynb"

    def feedback(self, handed: Handed) -> Path:
        """Path of the page of feedback."""
        return self._folder("feedback", handed) / f"{handed.lesson}.html"

    def timestamp(self, handed: Handed) -> str:
        """When it was submitted, as text, or '' if the file is missing or says no time."""
        return records.timestamp(self._folder("submitted", handed), self.choices.timezone)

    def write_companions(self, handed: Handed) -> None:
        """Write what nbgrader's feedback needs beside the graded notebook."""
        folders = [self._folder(step, handed) for step in ("submitted", "autograded", "feedback")]
        records.write_companions(*folders)

    def submissions(
        self, names: Collection[str] = (), students: Collection[str] = ()
    ) -> list[Handed]:
        """All submissions, by lesson and student, or only those of some lessons and students.

        None in a folder whose name the gradebook could not take: ``misplaced`` tells of those.
        Raises CourseError for a lesson or a student that there is not.
        """
        chosen, top = lessons.choose(names, self.lessons()), self.shown(self.handed_in)
        # Of these, unlike Path.glob, a link that leads to no possible path raises nothing.
        names_of = glob.glob("*/*", root_dir=self.handed_in, include_hidden=True)
        folders = [self.handed_in / name for name in names_of]
        there = {folder.parent.name for folder in folders}
        for student in students:
            if student not in there:
                raise CourseError(f"no student is called {student!r}: {top}/ has no such folder")
        found = [Handed(one.name, one.parent.name) for one in folders if os.path.isdir(one)]
        return sorted(
            one
            for one in found
            if one.lesson in chosen
            and (not students or one.student in students)
            and not not_an_id(one.student)
        )

    def in_sections(self, names: Collection[str]) -> Callable[[str], bool]:
        """Whether a student is in one of these sections; without a name, everybody is.

        Raises CourseError for a section that class/course.toml does not name.
        """
        known = self.choices.sections
        for name in names:
            if name not in known:
                there = ", ".join(known) or "none"
                raise CourseError(
                    f"{self.choices.path} has no section {name!r}; there are: {there}"
                )
        members = {student for name in names for student in known[name]}
        return lambda student: not names or student in members

    def lessons(self) -> list[str]:
        """The lessons that have a solved notebook."""
        masters = self.root.glob(self.shown(self.master("*")))
        return [path.stem for path in masters if path.is_file() and path.stem == path.parent.name]

    def shown(self, path: Path) -> str:
        """A path as it is shown to an instructor: from the course's folder."""
        return os.path.relpath(path, self.root)

    def _folder(self, step: str, handed: Handed) -> Path:
        directory = getattr(self._folders, f"{step}_directory")
        return Path(self._folders.format_path(directory, handed.student, handed.lesson))


def _config(root: Path) -> Config:
    if (root / CONFIG).is_file():
        return PyFileConfigLoader(CONFIG, path=str(root)).load_config()
    return configure(Config(), root)
