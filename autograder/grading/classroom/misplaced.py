"""Work that lies where the grading does not look for it."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from autograder import lessons
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.notebook.filenames import is_notebook, not_an_id
from autograder.grading.notebook.result import clean
from autograder.grading.notebook.submission import place


def misplaced(
    course: Course, names: Collection[str] = (), students: Collection[str] = ()
) -> Iterator[str]:
    """A sentence for each place below class/submitted/ that holds work which is not graded.

    names, students  but for what is of other lessons, or of other students, than these
    """
    top, known = course.handed_in, course.lessons()
    others = set(known) - set(lessons.choose(names, known))
    told = set[tuple[str, ...]]()
    for path in _work(top):
        parts = path.relative_to(top).parts
        student, lesson = parts[0], parts[1] if len(parts) > 2 else ""
        if parts[:2] in told or lesson in others or students and student not in students:
            continue
        told.add(parts[:2])
        shown = " ".join(clean(course.shown(path)).split())  # on one line, whatever it is called
        if len(parts) > 1 and (why := not_an_id(student)):
            yield f"{shown} is in no student's folder, for {why}: rename {clean(student)!r}"
        elif lesson not in known or not _is_there(course, Handed(lesson, student)):
            yield (
                f"{shown} lies where no work is looked for: put it into "
                f"{course.shown(top)}/STUDENT/LESSON/LESSON.ipynb, or give the folder to "
                "`autograder receive`"
            )


def _is_there(course: Course, one: Handed) -> bool:
    """Whether a submission has a notebook, or a link, where the grading looks for it."""
    return os.path.lexists(place(course.submitted(one)))


def _work(top: Path) -> Iterator[Path]:
    """The notebooks and zips in a folder and in those within it, without hidden ones."""
    for folder, inner, files in os.walk(top):
        depth = len(Path(folder).relative_to(top).parts)
        # A student's folder whose name begins with a dot is told of.
        inner[:] = sorted(one for one in inner if depth == 0 or not one.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            is_work = is_notebook(name) or path.suffix.lower() == ".zip"
            if is_work and not name.startswith(".") and not path.is_symlink():
                yield path
