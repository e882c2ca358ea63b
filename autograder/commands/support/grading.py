"""Grade what a class handed in, and say what became of it: ``autograder grade``, once it began."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from autograder import lessons
from autograder.commands.support import STOPPED, group_work
from autograder.commands.support.changed_lessons import set_apart
from autograder.commands.support.preview import preview
from autograder.commands.support.progress import announce, work
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book
from autograder.grading.classroom.misplaced import absent, misplaced, strangers
from autograder.grading.notebook.result import Exercise, Result
from autograder.grading.notebook.submission import FOREIGN
from autograder.grading.running.batch import Batch
from autograder.term import groups

LOST = """\
The gradebook is new, and has the automatic scores of {count} graded notebooks again. Scores and
comments by hand, extra points, more time for single students, names and addresses were in the old
one only: put a copy of it back, or enter these again. This is said once."""


def take_turn(
    course: Course, workers: Any, options: argparse.Namespace, needed: str, around: str
) -> int:
    """Grade, and say who is not graded or not known.

    needed  behind what a result must have been made to stay
    around  what stands around students' code, as a sentence, or ''
    """
    asked = course.in_sections(options.section)
    if not options.preview:
        for sentence in group_work.share(course, lessons.choose(options.lesson, course.lessons())):
            print(sentence, flush=True)
    there = course.submissions(options.lesson, options.student)
    handed = [one for one in there if asked(one.student)]
    if handed and around:
        print(around, flush=True)
    if handed and options.preview:

        def make_batch(copy: Book, chosen: list[Handed], home: Course) -> Batch:
            return _batch(course, copy, chosen, options, needed, home)

        return preview(course, handed, workers, make_batch)
    if handed:
        with Book(course) as book:
            handed, left = set_apart(course, book, handed)
            status = _grade(course, book, handed, workers, options, needed) if handed else 0
            if status == STOPPED:
                return status
            status = _compare(book, handed, asked, options) or status or left
    else:
        print(f"There is no submission to grade in {course.root}.", file=sys.stderr)
        status = 1
    members = [one for name in options.section for one in course.choices.sections[name]]
    elsewhere = misplaced(course, options.lesson, options.student or members)
    return _point_at("not graded: ", elsewhere) or status


def _point_at(what: str, sentences: Iterable[str]) -> int:
    """Print sentences for an instructor to act on; exit status 1 if there is one."""
    status = 0
    for sentence in sentences:
        print(f"{what}{sentence}", file=sys.stderr)
        status = 1
    return status


def _compare(
    book: Book, handed: list[Handed], asked: Callable[[str], bool], options: argparse.Namespace
) -> int:
    """Say how many handed in nothing, and who is not in the roster; exit status 1 for the latter.

    Nobody who handed in nothing is named: what is printed may be kept in a log.
    """
    roster = book.roster()
    if any(roster.values()) and not options.student:
        for lesson in sorted({one.lesson for one in handed}):
            if missing := sum(map(asked, absent(roster, handed, lesson))):
                print(f"{missing} of the roster handed in nothing of {lesson}.")
    return _point_at("graded, but ", strangers(roster, handed))


def _grade(
    course: Course,
    book: Book,
    handed: list[Handed],
    workers: Any,
    options: argparse.Namespace,
    needed: str,
) -> int:
    batch = _batch(course, book, handed, options, needed)
    announce(batch, len(handed), "graded again", "skipped")
    if batch.penalised:
        print(f"Other points for {len(batch.penalised)}, by another late penalty alone:")
        for one, (before, now) in sorted(batch.penalised.items()):
            print(f"  {one.lesson}  {one.student}: {before:g} → {now:g}")
    status = _work(batch, handed, workers)
    if status == STOPPED and options.regrade:
        print("Leave out --regrade then: what it asked for is remembered.")
    return status


def _batch(
    course: Course,
    book: Book,
    handed: list[Handed],
    options: argparse.Namespace,
    needed: str,
    home: Course | None = None,
) -> Batch:
    """What is to be graded, and where that is written if not into the course."""
    shared = groups.copies(course.choices).items()
    how: Any = {"walls": needed, "regrade": options.regrade, "home": home}
    how["copies"] = {Handed(*copy): Handed(copy[0], own) for copy, own in shared}
    return Batch(course, book, handed, options.sandbox, **how)


def _work(batch: Batch, handed: list[Handed], workers: Any) -> int:
    start, total = time.monotonic(), len(batch.waiting)

    def line(number: int, one: Handed, result: Result) -> str:
        told = _line(number, total, result, batch.counts[one])
        own = batch.copies.get(one)
        return f"{told}  (handed in by {own.student})" if own else told

    if not work(batch, workers, "grading", line):
        return STOPPED
    return _sum_up(batch, handed, total, time.monotonic() - start)


def _line(number: int, total: int, result: Result, counts: float) -> str:
    told = []
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


def _lost(one: Exercise) -> str:
    """An exercise in which points were lost, and how many where not all were."""
    return f"{one.name} ({one.max - one.score:g} of {one.max:g})" if one.score else one.name


def _sum_up(batch: Batch, handed: list[Handed], total: int, seconds: float) -> int:
    incomplete = [one for one in handed if one not in batch.done or not batch.done[one].complete]
    if total:
        print(f"{total} graded in {seconds:.1f} s, {total / seconds:.1f} a second.")
    failed = [one for one in handed if one in batch.done and not batch.done[one].parts]
    for one in sorted({*incomplete, *failed}):
        why = batch.unkept.get(one, "see its reasons.json")
        print(f"not graded: {one.student}, {one.lesson}; {why}", file=sys.stderr)
    strange = [one for one in batch.done if batch.done[one].problem.startswith(FOREIGN)]
    for one in sorted(strange):
        print(f"0 points: {one.student}, {one.lesson}: {batch.done[one].problem}", file=sys.stderr)
    if batch.restored:
        print(LOST.format(count=len(batch.restored)), file=sys.stderr)
    return 1 if incomplete or failed or strange or batch.restored else 0
