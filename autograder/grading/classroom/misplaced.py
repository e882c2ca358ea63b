"""Work that lies where the grading does not look for it: what was meant, and where it belongs."""

import errno
import os
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograder import lessons
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook import likely_lesson
from autograder.grading.notebook.filenames import is_notebook, not_an_id
from autograder.grading.notebook.nbgrader_files import TIMESTAMP
from autograder.grading.notebook.result import clean
from autograder.grading.notebook.submission import is_linked, place

CHECKPOINTS = ".ipynb_checkpoints"
DEEPEST, MOST = 6, 1000  # folders in one another, and files, in one student's folder


@dataclass(frozen=True)
class Stray:
    """Work in a wrong place."""

    told: str  # what is wrong, and where
    remedy: str  # what a person may do
    lesson: str = ""  # the one that is probably meant
    file: Path | None = None  # the notebook, where there is one
    target: Handed | None = None  # whose and which it surely is, so that it may be moved there


def misplaced(
    course: Course, names: Collection[str] = (), students: Collection[str] = ()
) -> Iterator[str]:
    """A sentence for each notebook, zip or folder of submissions that is not graded.

    names, students  only what may be of these lessons, and of these students
    """
    for one in _strays(course, names, students):
        if one.target:
            belongs = _shown(course, course.submitted(one.target))
            yield f"{one.told}: it surely is {belongs}, and autograder grade --fix moves it there"
        else:
            meant = f"; probably {one.lesson} is meant" if one.lesson else ""
            yield f"{one.told}{meant}: {one.remedy}"


def fix(
    course: Course, names: Collection[str] = (), students: Collection[str] = ()
) -> Iterator[str]:
    """Move what surely belongs elsewhere; yield a sentence for each notebook, moved or not.

    Nothing is overwritten, removed or unpacked.
    """
    for one in _strays(course, names, students):
        if one.target and one.file:
            path = course.submitted(one.target)
            try:
                _move(one.file, path)
            except OSError as error:
                yield f"not moved: {_shown(course, one.file)}: {error.strerror or error}"
            else:
                yield f"moved: {_shown(course, one.file)} is now {_shown(course, path)}"


def _move(file: Path, path: Path) -> None:
    """Move a notebook, and its time where there is none yet; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):  # handed in meanwhile
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    os.rename(file, path)
    time, beside = file.with_name(TIMESTAMP), path.with_name(TIMESTAMP)
    if time.is_file() and not os.path.lexists(beside):
        os.rename(time, beside)


def _strays(course: Course, names: Collection[str], students: Collection[str]) -> list[Stray]:
    """All work in wrong places that may be of these lessons and students."""
    known = course.lessons()
    others = set(known) - set(lessons.choose(names, known))
    found = [one for one in _Search(course, known).all(students) if one.lesson not in others]
    claims = Counter(one.target for one in found)
    return [one if claims[one.target] == 1 else replace(one, target=None) for one in found]


class _Search:
    """Finds strays: ``known`` are the lessons."""

    def __init__(self, course: Course, known: Collection[str]) -> None:
        self._course, self._known, self._contents = course, known, course.contents()
        self._remedy = (
            f"put it into {_shown(course, course.handed_in)}/STUDENT/LESSON/LESSON.ipynb, or give "
            "the folder to `autograder receive`"
        )

    def all(self, students: Collection[str]) -> Iterator[Stray]:
        for path in _entries(self._course.handed_in):
            shown = _shown(self._course, path)
            if path.is_symlink() and not path.exists():
                yield Stray(f"{shown} is a link that leads nowhere", self._remedy)
            elif _is_work(path) and not path.is_dir():
                lesson = likely_lesson.lesson([path.name], self._known).lesson
                yield Stray(f"{shown} lies in no student's folder", self._remedy, lesson)
            elif not path.is_dir() or path.name == CHECKPOINTS:
                continue
            elif swapped := self._lesson_outside(path):
                yield from self._swapped(path, swapped, students)
            elif not students or path.name in students:
                yield from self._of_student(path)

    def _lesson_outside(self, path: Path) -> str:
        """The lesson that a folder in a student's place is called by, or ''."""
        if any(inner.name in self._known for inner in _entries(path)):
            return ""  # a student of that name
        return likely_lesson.exactly(path.name, self._known, numbers=False)

    def _swapped(self, path: Path, lesson: str, students: Collection[str]) -> Iterator[Stray]:
        """LESSON/STUDENT/ in place of STUDENT/LESSON/."""
        for inner in _entries(path):
            shown = _shown(self._course, inner)
            if _is_work(inner) and not inner.is_dir():
                yield Stray(f"{shown} lies in no student's folder", self._remedy, lesson)
            elif inner.is_dir() and _work(inner) and (not students or inner.name in students):
                told = f"{shown}/ has the lesson's folder outside and the student's inside"
                there = (self._course.handed_in / inner.name).is_dir()
                one = self._guess(told, self._remedy, _work(inner), inner.name, lesson)
                yield one if there else replace(one, target=None)

    def _of_student(self, folder: Path) -> Iterator[Stray]:
        shown, student = _shown(self._course, folder), folder.name
        if why := not_an_id(student):
            if _work(folder):
                yield Stray(f"{shown}/ cannot be a student's folder: {why}", "rename it")
            return
        entries = _entries(folder)
        for path in entries:
            yield from self._of_lesson(path, student)
        if not _work(folder) and not any(path.name in self._known for path in entries):
            what = "no notebook" if entries else "nothing"
            if not any(path.is_symlink() for path in entries):
                yield Stray(f"{shown}/ holds {what}", "ask for the work, or remove the folder")

    def _of_lesson(self, path: Path, student: str) -> Iterator[Stray]:
        """What lies in a student's folder and is no submission, and notebooks of another name."""
        shown = _shown(self._course, path)
        if path.is_symlink() and not path.exists():
            yield Stray(f"{shown} is a link that leads nowhere", self._remedy)
        elif path.is_symlink():
            return  # graded, with the reason that links are not followed
        elif not path.is_dir():
            if _is_work(path):
                told = f"{shown} lies in no lesson's folder"
                yield self._guess(told, self._remedy, [path], student, "")
        elif path.name not in self._known:
            if work := _work(path):
                told = f"{shown}/ holds work, but no lesson is called so"
                yield self._guess(told, f"rename it, or {self._remedy}", work, student, "")
        elif work := _work(path):
            expected = self._course.submitted(Handed(path.name, student))
            if not os.path.lexists(place(expected)):
                named = ", ".join(_one_line(str(one.relative_to(path))) for one in work[:3])
                told = f"{shown}/ holds {named}, but no {expected.name}"
                yield self._guess(told, "rename it, and grade again", work, student, path.name)

    def _guess(self, told: str, remedy: str, work: list[Path], student: str, lesson: str) -> Stray:
        """A stray with the lesson that its folder names, or else its notebook and its name.

        Its target is sure where there is one notebook, of one lesson, and nothing in its place.
        """
        own = [path for path in work if CHECKPOINTS not in path.parts]
        if not own:
            told += " (a checkpoint copy may be older than the work)"
        names = [lesson] if lesson else [work[0].name, work[0].parent.name]
        sole = own[0] if len(own) == 1 else None
        found = likely_lesson.lesson(names, self._known, sole, self._contents)
        if not (found.sure and len(own) == 1):
            return Stray(told, remedy, "" if lesson == found.lesson else found.lesson)
        target = Handed(found.lesson, student)
        path = self._course.submitted(target)
        if is_linked(path.parent) or os.path.lexists(place(path)) or not_an_id(student):
            return Stray(told, remedy, found.lesson)
        return Stray(told, remedy, found.lesson, own[0], target)


def _work(folder: Path, depth: int = 0) -> list[Path]:
    """The notebooks and zips in a folder and in those within it; what is hidden is no work."""
    found: list[Path] = []
    for path in _entries(folder) if depth < DEEPEST else ():
        if path.is_symlink():
            continue
        if path.is_dir():
            found += _work(path, depth + 1)
        elif _is_work(path):
            found.append(path)
    return found[:MOST]


def _is_work(path: Path) -> bool:
    return is_notebook(path.name) or path.suffix.lower() == ".zip"


def _entries(folder: Path) -> list[Path]:
    """What lies in a folder, without hidden files; nothing if it cannot be read."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in found if not path.name.startswith(".") or path.is_dir()]


def _shown(course: Course, path: Path) -> str:
    return _one_line(course.shown(path))


def _one_line(name: str) -> str:
    """A name as it may be printed: a student who chose it begins no line of the terminal."""
    return " ".join(clean(name).split())
