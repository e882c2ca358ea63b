"""The folders and the gradebook of a course, as its nbgrader_config.py says."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder import ROOT, CourseError, lessons
from autograder.course import configure
from autograder.grading import companions

CONFIG = "nbgrader_config.py"
MARKUP = '<>"'  # nbgrader's pages put the id of a student in as it is


def cannot_be_an_id(student: str) -> bool:
    """Whether the name of a student's folder would do harm in the gradebook or nbgrader's pages."""
    return not student.isprintable() or any(letter in MARKUP for letter in student)


@dataclass(frozen=True, order=True)
class Handed:
    """One submission: a student's folder for a lesson, which may hold anything."""

    lesson: str
    student: str


class Course:
    """A course on disk. ``root`` is the folder with nbgrader_config.py (default: this one)."""

    def __init__(self, root: Path | str | None = None, db_url: str | None = None) -> None:
        root = Path(root) if root else Path.cwd() if Path(CONFIG).is_file() else ROOT
        self.root = root.resolve()
        self.config = _config(self.root)
        if db_url:
            self.config.CourseDirectory.db_url = db_url
        self._folders = CourseDirectory(config=self.config)
        self.db_url, self.id = self._folders.db_url, self._folders.course_id

    @property
    def handed_in(self) -> Path:
        """The folder with a folder for each student."""
        return self._folder("submitted", Handed("*", "*")).parent.parent

    def master(self, lesson: str) -> Path:
        """Path of the solved notebook of ``lesson``."""
        folder = self._folders.format_path(self._folders.source_directory, ".", lesson)
        return Path(folder) / f"{lesson}.ipynb"

    def submitted(self, handed: Handed) -> Path:
        """Path where the submitted notebook should be."""
        return self._folder("submitted", handed) / f"{handed.lesson}.ipynb"

    def autograded(self, handed: Handed) -> Path:
        """Path where the graded notebook is written."""
        return self._folder("autograded", handed) / f"{handed.lesson}.ipynb"

    def feedback(self, handed: Handed) -> Path:
        """Path of the page of feedback."""
        return self._folder("feedback", handed) / f"{handed.lesson}.html"

    def timestamp(self, handed: Handed) -> str:
        """When it was submitted, as text, or '' if the file is missing or says no time."""
        return companions.timestamp(self._folder("submitted", handed))

    def write_companions(self, handed: Handed) -> None:
        """Write what nbgrader's feedback needs beside the graded notebook."""
        folders = [self._folder(step, handed) for step in ("submitted", "autograded", "feedback")]
        companions.write(*folders)

    def submissions(
        self, names: Collection[str] = (), students: Collection[str] = ()
    ) -> list[Handed]:
        """All submissions, by lesson and student, or only those of some lessons and students.

        Raises CourseError for a lesson or a student that there is not.
        """
        found, chosen = [], lessons.choose(names, self.lessons())
        top = self.handed_in
        known = list(self.root.glob(f"{top.relative_to(self.root)}/*/*"))
        self._refuse_unknown(students, known, top)
        for folder in known:
            handed = Handed(folder.name, folder.parent.name)
            wanted = not students or handed.student in students
            if folder.is_dir() and wanted and handed.lesson in chosen:
                if cannot_be_an_id(handed.student):
                    raise CourseError(f"rename the folder {handed.student!r}: it is no name")
                found.append(handed)
        return sorted(found)

    def lessons(self) -> list[str]:
        """The lessons that have a solved notebook."""
        masters = self.root.glob(str(self.master("*").relative_to(self.root)))
        return [path.stem for path in masters if path.is_file() and path.stem == path.parent.name]

    def _refuse_unknown(self, students: Collection[str], known: Iterable[Path], top: Path) -> None:
        there = {folder.parent.name for folder in known}
        for student in students:
            if student not in there:
                place = top.relative_to(self.root)
                raise CourseError(f"no student is called {student!r}: {place}/ has no such folder")

    def _folder(self, step: str, handed: Handed) -> Path:
        directory = getattr(self._folders, f"{step}_directory")
        return Path(self._folders.format_path(directory, handed.student, handed.lesson))


def _config(root: Path) -> Config:
    if (root / CONFIG).is_file():
        return PyFileConfigLoader(CONFIG, path=str(root)).load_config()
    return configure(Config(), root)
