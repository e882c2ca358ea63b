"""Work that lies where the grading does not look for it: in words, with what to do."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from autograder import lessons
from autograder.grading.filenames import is_notebook, original
from autograder.grading.folders import Course, Handed
from autograder.grading.result import clean
from autograder.grading.submission import place


def misplaced(
    course: Course, names: Collection[str] = (), students: Collection[str] = ()
) -> Iterator[str]:
    """A sentence for each notebook or zip in the folder of submissions that is not graded.

    names, students  only what may be of these lessons, and of these students
    """
    known = course.lessons()
    others = set(known) - set(lessons.choose(names, known))
    remedy = f"put it into {_shown(course, course.handed_in)}/STUDENT/LESSON/LESSON.ipynb, or give "
    remedy += "the folder to `autograder receive`"
    for path in _entries(course.handed_in):
        if _is_work(path) and original(path.name)[0] not in others:
            yield f"{_shown(course, path)} lies in no student's folder: {remedy}"
        elif path.is_dir() and (not students or path.name in students):
            for inner in _entries(path):
                if inner.name not in others and original(inner.name)[0] not in others:
                    yield from _of_student(course, inner, set(known), remedy)


def _of_student(course: Course, path: Path, known: set[str], remedy: str) -> Iterator[str]:
    """What lies in a student's folder and is no submission, and notebooks of another name."""
    shown = _shown(course, path)
    if _is_work(path):
        yield f"{shown} lies in no lesson's folder: {remedy}"
    elif path.is_dir() and path.name not in known:
        if any(_is_work(inner) for inner in _entries(path)):
            yield f"{shown}/ holds work, but no lesson is called so: rename it, or {remedy}"
    elif path.is_dir():
        expected = course.submitted(Handed(path.name, path.parent.name))
        others = [inner for inner in _entries(path) if _is_work(inner)]
        if others and not os.path.lexists(place(expected)):
            named = ", ".join(_one_line(inner.name) for inner in others[:3])
            yield f"{shown}/ holds {named}, but no {expected.name}: rename it, and grade again"


def _is_work(path: Path) -> bool:
    return is_notebook(path.name) or path.suffix.lower() == ".zip"


def _entries(folder: Path) -> list[Path]:
    """What lies in a folder, without links and hidden files; nothing if it cannot be read."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in found if not path.name.startswith(".") and not path.is_symlink()]


def _shown(course: Course, path: Path) -> str:
    return _one_line(str(path.relative_to(course.root)))


def _one_line(name: str) -> str:
    """A name as it may be printed: a student who chose it begins no line of the terminal."""
    return " ".join(clean(name).split())
