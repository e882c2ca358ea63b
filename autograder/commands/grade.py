"""``autograder grade``: grade what a class handed in, in a sandbox, on all cores."""

import argparse
import collections
import os
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder import CourseError
from autograder.commands import add_shared
from autograder.commands.support import STOPPED
from autograder.commands.support.lock import alone
from autograder.inside.limits import NONE, OWN
from autograder.sandbox.policy import UnprotectedWarning, walls

if TYPE_CHECKING:  # slow to import
    from autograder.grading.classroom.folders import Course, Handed
    from autograder.grading.classroom.gradebook import Book
    from autograder.grading.notebook.result import Exercise, Result
    from autograder.grading.running.batch import Batch
    from autograder.grading.running.regrading import Regrading

DESCRIPTION = (
    "Grade the submissions in class/submitted/<student>/<lesson>/: students' code runs in a "
    "sandbox, the checks outside. Scores go into nbgrader's gradebook, graded notebooks and "
    "reasons into class/autograded/. What is graded is skipped until something changes that the "
    "result depends on; a run that was stopped is taken up by the next. The exit status is 0 if "
    "every submission has a score and a reason, and no work in class/submitted/ lies in "
    "a wrong place or is of nobody on the roster. With --preview, it is 0 if "
    "the preview covers every submission."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_shared(parser, "--lesson", "--student", "--section")
    add("--workers", type=int, metavar="N", help="submissions at a time (default: all cores)")
    add("--regrade", action="store_true", help="grade again what is graded and unchanged")
    words = "take lessons whose exercises came or went since work was handed in as they are now"
    add("--adopt", action="store_true", help=words)
    add("--preview", action="store_true", help="say who would gain and lose points; change nothing")
    add(
        "--notes", type=Path, metavar="FOLDER", help="with --preview: a note for each of them, here"
    )
    add_shared(parser, "--sandbox")
    add("--cluster", metavar="URL", help="send the work to this Dask scheduler, as tcp://host:8786")
    add_shared(parser, "--db-url", "--course")


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    if options.course and not os.path.isdir(options.course):
        raise CourseError(f"there is no folder {options.course}: --course names it")
    if options.notes and not options.preview:
        raise CourseError("--notes writes down what a preview finds: add --preview")
    warnings.showwarning = _warn
    needed = _walls(options)
    with _workers(options) as workers:
        # Slow to import, here as below; the workers start meanwhile.
        from autograder.grading.classroom.folders import Course

        course = Course(options.course, options.db_url)
        with alone(course.root / "class"):
            return _take_turn(course, workers, options, needed)


def _take_turn(course: "Course", workers: Any, options: argparse.Namespace, needed: str) -> int:
    """Grade, and say who is not graded or not known."""
    from autograder.commands.support import group_work
    from autograder.grading.classroom.gradebook import Book
    from autograder.grading.classroom.misplaced import misplaced

    if not options.preview:
        for sentence in group_work.share(course):
            print(sentence, flush=True)
    asked = course.in_sections(options.section)
    there = course.submissions(options.lesson, options.student)
    handed = [one for one in there if asked(one.student)]
    if handed and options.preview:
        from autograder.commands.support.preview import preview

        def make_batch(copy: "Book", chosen: "list[Handed]") -> "Batch":
            return _batch(course, copy, chosen, options, needed)[0]

        return preview(course, handed, workers, make_batch, options)
    if handed:
        from autograder.commands.support.changed_lessons import set_apart

        with Book(course) as book:
            handed, left = set_apart(course, book, handed, options.adopt)
            status = _grade(course, book, handed, workers, options, needed) if handed else 0
            if status == STOPPED:
                return status
            status = _compare(book, handed, options) or status or left
    else:
        print(f"There is no submission to grade in {course.root}.", file=sys.stderr)
        status = 1
    return _point_at("not graded: ", misplaced(course, options.lesson, options.student)) or status


def _point_at(what: str, sentences: Iterable[str]) -> int:
    """Print sentences for an instructor to act on; exit status 1 if there is one."""
    status = 0
    for sentence in sentences:
        print(f"{what}{sentence}", file=sys.stderr)
        status = 1
    return status


def _compare(book: "Book", handed: "list[Handed]", options: argparse.Namespace) -> int:
    """Say how many handed in nothing, and who is not in the roster; exit status 1 for the latter.

    Nobody who handed in nothing is named: what is printed may be kept in a log.
    """
    from autograder.grading.classroom.unexpected_names import absent, strangers

    roster = book.roster()
    if any(roster.values()) and not options.student:
        for lesson in sorted({one.lesson for one in handed}):
            if missing := len(absent(roster, handed, lesson)):
                print(f"{missing} of the roster handed in nothing of {lesson}.")
    return _point_at("graded, but ", strangers(roster, handed))


def _walls(options: argparse.Namespace) -> str:
    """Behind what a result must have been made to stay; says where there is less than asked for."""
    if options.cluster:  # its machines may have more or less than this one
        return OWN if options.sandbox == "required" else NONE
    return walls(options.sandbox)  # refuses or warns before any work is begun


def _workers(options: argparse.Namespace) -> Any:
    if options.cluster:
        from autograder.grading.running.cluster import Cluster

        return Cluster(options.cluster)
    from autograder.grading.running.pool import Pool

    return Pool(max(1, options.workers or cores()))


def _grade(
    course: "Course",
    book: "Book",
    handed: "list[Handed]",
    workers: Any,
    options: argparse.Namespace,
    needed: str,
) -> int:
    from autograder.grading.running.previewed import Previewed

    batch, again = _batch(course, book, handed, options, needed)
    _announce(batch, len(handed), again)
    status = _work(batch, handed, workers)
    if status != STOPPED:
        if again:
            again.end()
        Previewed(course).tidy()
    return status


def _batch(
    course: "Course",
    book: "Book",
    handed: "list[Handed]",
    options: argparse.Namespace,
    needed: str,
) -> "tuple[Batch, Regrading | None]":
    """What is to be graded, and the run of which it is a part where all is graded again."""
    from autograder.grading.classroom.folders import Handed
    from autograder.grading.running.batch import Batch
    from autograder.grading.running.regrading import Regrading
    from autograder.term import groups

    chosen = [
        sorted(names) for names in (options.lesson, options.student, options.section) if names
    ]
    again = Regrading(course, chosen, begin=not options.preview) if options.regrade else None
    how: Any = {"walls": needed, "regrading": again.name if again else ""}
    how["preview"] = options.preview
    shared = groups.copies(course.choices).items()
    how["copies"] = {Handed(*copy): Handed(copy[0], own) for copy, own in shared}
    batch = Batch(course, book, handed, options.sandbox, **how)
    return batch, again


def _announce(batch: "Batch", count: int, again: "Regrading | None") -> None:
    """Say who is skipped, and why others are graded again."""
    if again and again.resumed:
        print(f"The regrading that began on {again.name[:19]} UTC goes on.")
    if batch.done:
        print(f"{len(batch.done)} of {count} are graded and unchanged: skipped.")
    for reason, number in collections.Counter(batch.reasons.values()).most_common():
        print(f"{number} of {count} graded again: {reason}.")
    if batch.taken:
        print(
            f"{len(batch.taken)} of {count} taken over from the preview: nothing has changed since."
        )
    for reason, number in collections.Counter(batch.outdated.values()).most_common():
        print(f"{number} of {count} previewed, and yet graded afresh: {reason}.")
    sys.stdout.flush()


def _work(batch: "Batch", handed: "list[Handed]", workers: Any) -> int:
    from autograder.commands.support.progress import work
    from autograder.grading.running import changed_points

    start, total = time.monotonic(), len(batch.waiting)

    def line(number: int, one: "Handed", result: "Result") -> str:
        gained = changed_points.gain(batch, one)
        told = _line(number, total, result, batch.counts[one], gained)
        own = batch.copies.get(one)
        return f"{told}  (handed in by {own.student})" if own else told

    if not work(batch, workers, "grading", line):
        return STOPPED
    return _sum_up(batch, handed, total, time.monotonic() - start)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _line(number: int, total: int, result: "Result", counts: float, gained: float) -> str:
    told = [f"was {result.score - gained:g}"] if gained else []
    if abs(counts - result.score) > 1e-6:  # by hand, or for being late
        told.append(f"counts as {counts:g}")
    if result.problem:
        told.append(result.problem.splitlines()[0])
    elif lost := ", ".join(_lost(one) for one in result.exercises if one.score < one.max):
        told.append(f"lost: {lost}")
    if result.doubt:
        told.append(f"graded again, alone: {result.doubt}")
    place = f"{number:>{len(str(total))}}/{total}"
    score, why = f"{result.score:g}/{result.max:g}", "; ".join(told)
    return f"{place}  {result.lesson}  {result.student:<16} {score:>7}  {why}".rstrip()


def _lost(one: "Exercise") -> str:
    """An exercise in which points were lost, and how many where not all were."""
    return f"{one.name} ({one.max - one.score:g} of {one.max:g})" if one.score else one.name


def _sum_up(batch: "Batch", handed: "list[Handed]", total: int, seconds: float) -> int:
    from autograder.grading.notebook.lesson_by_content import FOREIGN
    from autograder.grading.running import changed_points

    incomplete = [one for one in handed if one not in batch.done or not batch.done[one].complete]
    if total:
        print(f"{total} graded in {seconds:.1f} s, {total / seconds:.1f} a second.")
    for sentence in changed_points.sentences(batch):
        print(sentence)
    failed = [one for one in handed if one in batch.done and not batch.done[one].parts]
    for one in sorted({*incomplete, *failed}):
        why = batch.unkept.get(one, "see its reasons.json")
        print(f"not graded: {one.student}, {one.lesson}; {why}", file=sys.stderr)
    strange = [one for one in batch.done if batch.done[one].problem.startswith(FOREIGN)]
    for one in sorted(strange):
        print(f"0 points: {one.student}, {one.lesson}: {batch.done[one].problem}", file=sys.stderr)
    return 1 if incomplete or failed or strange else 0


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, UnprotectedWarning):  # the rest is nbgrader's and no one's concern
        print(f"WARNING: {message}", file=sys.stderr, flush=True)
