"""``autograder receive``: hand-ins from an LMS or from mails to where the grading finds them."""

import argparse
import sys
from collections import Counter

from autograder import lessons
from autograder.collecting.dates import read_time, shown
from autograder.collecting.hand_in import NO_NOTEBOOK
from autograder.collecting.receiving import Dates, How, Received, receive
from autograder.collecting.roster import Roster, of_gradebook
from autograder.collecting.search import NotOpened
from autograder.commands import add_shared
from autograder.commands.support import group_work
from autograder.grading.classroom.database import opened
from autograder.grading.classroom.folders import Course
from autograder.grading.notebook.result import clean
from autograder.grading.notebook.submission import place

DESCRIPTION = (
    "Put the notebooks in a folder or zip into class/submitted/STUDENT/LESSON/: what Canvas and "
    "Moodle let you download, files that were mailed, zips in folders, copies that a browser "
    "renamed. An earlier, different hand-in is moved into class/replaced/. Everything that is not "
    "taken is listed with the reason, and makes the exit status 1."
)
SHOWN = 5  # files of one kind in one folder that are listed one by one


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", metavar="FROM", help="a zip, or a folder of what came back")
    add_shared(parser, "--lesson")
    add("--at", metavar="TIME", help="when it was handed in (default: the files' times)")
    add(
        "--pattern",
        metavar="REGEX",
        help="whose a file is, from its path: with groups as (?P<student_id>…) or (?P<name>…)",
    )
    add("--missing", action="store_true", help="list the students who handed in nothing")
    add("--dry-run", action="store_true", help="only say what would be done")
    add_shared(parser, "--course", "--db-url")


def run(options: argparse.Namespace) -> int:
    """Receive; exit status 1 if something was not taken."""
    course = Course(options.course, options.db_url)
    at = read_time(options.at, course.choices.timezone) if options.at else None
    with opened(course) as book:
        known, dates = of_gradebook(book), Dates(book)
    # Whoever is there by the id alone was graded, and is not enrolled.
    roster = Roster(known if any(one.details() for one in known) else ())
    how = How(options.lesson, at, options.pattern, options.dry_run)
    done = receive(course, options.source, roster, dates, how)
    told = [] if options.dry_run else group_work.share(course)
    if options.dry_run:
        print("Nothing is changed: this is what would be done.")
    _counts(done, roster)
    _times(done, dates, bool(at))
    _attempts(done)
    for sentence in told:
        print(sentence)
    _missing(course, done, roster, options)
    for line in _grouped(done):
        print(f"not taken: {line}", file=sys.stderr)
    return int(bool(done.refused))


def _counts(done: Received, roster: Roster) -> None:
    for lesson in sorted({one.lesson for one in done.all}):
        kinds = (done.new, done.replacing, done.same)
        new, replacing, same = (sum(one.lesson == lesson for one in kind) for kind in kinds)
        print(f"{lesson}: {new} new, {replacing} in place of an earlier one, {same} as before.")
    if done.replacing:
        print("Earlier hand-ins are kept in class/replaced/STUDENT/LESSON/.")
    if damaged := sum(bool(one.damage) for one in done.all):
        print(f"{damaged} of them cannot be read, or are empty; grading will say why.")
    if done.junk:
        print(f"{done.junk} files of the system's or Jupyter's own were passed over.")
    if not roster.students:
        print("There is no roster, so ids were taken from names: see autograder roster.")
    if done.refused:
        print(f"{len(done.refused)} files were not taken: see below.")


def _times(done: Received, dates: Dates, at: bool) -> None:
    """Say which times were taken, and how many are late."""
    if not done.all:
        return
    by_lms = sum(one.clues.late is not None for one in done.all)
    print("The time of hand-in is " + ("the one that you gave." if at else "that of each file."))
    if by_lms and not at:
        print(
            f"{by_lms} come from Canvas, whose zip has the time of the download: late is who is "
            "marked LATE there."
        )
    for lesson, late in sorted(done.late.items()):
        due = dates.due[lesson]
        print(f"{late} of {lesson} are late; due {shown(due) if due else ''}.")
    for lesson in sorted({one.lesson for one in done.all} - done.late.keys()):
        print(f"{lesson} has no due date, so nobody is late: see autograder due.")
    if by_lms and not at and len(done.late) < len({one.lesson for one in done.all}):
        print(
            f"Canvas marks {done.unknown_late} as LATE. Set the due date and receive the same zip "
            "again, so that these count as late and the others do not."
        )


def _attempts(done: Received) -> None:
    if done.several:
        print(f"{len(done.several)} handed in more than once; the latest is taken:")
    for last, earlier in done.several:
        names = ", ".join(_printable(one.file.name) for one in earlier)
        print(f"  {_printable(last.file.name)}, not {names}")


def _missing(course: Course, done: Received, roster: Roster, options: argparse.Namespace) -> None:
    if not roster.students:
        return
    before = [one for one in course.submissions() if place(course.submitted(one)).exists()]
    there = {(one.lesson, one.student) for one in before}
    there |= {(one.lesson, one.student) for one in done.all}
    asked = options.lesson or [one.lesson for one in done.all]
    for lesson in lessons.choose(asked, course.lessons()) if asked else ():
        missing = sorted(one for one in roster.students if (lesson, one) not in there)
        told = f": {', '.join(missing)}" if options.missing and missing else ""
        total = len(roster.students)
        print(f"{len(missing)} of {total} have handed in nothing of {lesson}{told}.")


def _grouped(done: Received) -> list[str]:
    """A line for each file, or for many of one kind in one folder.

    Figures and data beside notebooks that were taken are one line: they would hide what is lost.
    """
    beside = _beside(done)
    refused = [one for one in done.refused if one not in beside]
    kinds = [(one.parts[0] if len(one.parts) > 1 else "", one.why) for one in refused]
    counts, lines = Counter(kinds), []
    for one, kind in zip(refused, kinds, strict=True):
        if counts[kind] <= SHOWN or not kind[0]:
            lines.append(f"{_printable('/'.join(one.parts))}: {one.why}")
    for (folder, why), count in counts.items():
        if count > SHOWN and folder:
            lines.append(f"{_printable(folder)}/ and below, {count} files: {why}")
    if beside:
        lines.append(f"beside notebooks that were taken, {len(beside)} files: {beside[0].why}")
    return lines


def _beside(done: Received) -> list[NotOpened]:
    """What is no notebook and lies in a folder or zip of one student's whose work was taken.

    None if they are few.
    """
    whose = dict[tuple[str, ...], set[str]]()
    for taken in done.all:
        for depth in range(1, len(taken.file.parts)):
            whose.setdefault(taken.file.parts[:depth], set()).add(taken.student)
    found = [
        one
        for one in done.refused
        if one.why == NO_NOTEBOOK
        and any(len(whose.get(one.parts[:depth], ())) == 1 for depth in range(1, len(one.parts)))
    ]
    return found if len(found) > SHOWN else []


def _printable(text: str) -> str:
    return clean(text)[:300]
