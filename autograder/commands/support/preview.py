"""``autograder grade --preview``: say what a grading would change, and change nothing."""

import sys
from collections.abc import Callable, Collection
from typing import Any

from autograder.commands.support import STOPPED
from autograder.commands.support.changed_lessons import HINT
from autograder.commands.support.progress import announce, work
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book, ChangedExercises
from autograder.grading.running.batch import Batch
from autograder.grading.running.preview import Preview, lines


def preview(
    course: Course,
    handed: Collection[Handed],
    workers: Any,
    make_batch: Callable[[Book, list[Handed], Course], Batch],
) -> int:
    """Grade beside the class, say what would be other points; returns the exit status."""
    print(f"A preview: no score, page or graded notebook is changed in {course.root}.")
    with Preview(course, handed) as found:
        batch = make_batch(found.book, found.handed, found.home)
        announce(batch, len(found.handed), "would be graded again", "they would be skipped")
        if not work(batch, workers, "preview"):
            return STOPPED
        found.compare(batch)
        for line in lines(found):
            print(line)
    return _refused(found)


def _refused(found: Preview) -> int:
    """Say of whom nothing could be told; exit status 1 if there is somebody."""
    for lesson, error in found.refused.items():
        if isinstance(error, ChangedExercises):
            print(f"{error}. Its graded submissions would stay as they are; {HINT}")
            continue
        print(f"autograder grade would stop and grade nothing: {lesson}: {error}", file=sys.stderr)
    for one, why in sorted(found.unsaid.items()):
        print(f"nothing can be said of {one.student}, {one.lesson}: {why}", file=sys.stderr)
    told = all(isinstance(error, ChangedExercises) for error in found.refused.values())
    return 1 if found.unsaid or not told else 0
