"""``autograder receive``: hand-ins from an LMS or from mails to where the grading finds them."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from autograder import lessons
from autograder.collecting.dates import read_time, shown_as
from autograder.collecting.receiving import Dates, How, Received, receive
from autograder.collecting.roster import Roster, of_gradebook
from autograder.collecting.search import shown
from autograder.commands import add_shared
from autograder.commands.support import group_work
from autograder.grading.classroom.database import opened
from autograder.grading.classroom.folders import Course
from autograder.grading.notebook.result import listed
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
    chosen = lessons.choose(options.lesson, course.lessons())
    told = [] if options.dry_run else group_work.share(course, chosen)
    if options.dry_run:
        print("Nothing is changed: this is what would be done.")
        _taken(done)
    _counts(done, roster)
    _times(done, dates, bool(at), shown_as(course.choices))
    _attempts(done)
    for one in done.all:
        if one.group:
            print(f"{one.lesson}: the work of group {one.group} is kept as {one.student}'s.")
    for sentence in told:
        print(sentence)
    _missing(course, done, roster, options)
    for line in _grouped(done):
        print(f"not taken: {shown(line, 1000)}", file=sys.stderr)
    return int(bool(done.refused))


def _counts(done: Received, roster: Roster) -> None:
    for lesson in sorted({one.lesson for one in done.all}):
        kinds = (done.new, done.replacing, done.same)
        new, replacing, same = (sum(one.lesson == lesson for one in kind) for kind in kinds)
        print(f"{lesson}: {new} new, {replacing} in place of an earlier one, {same} as before.")
    if done.replacing:
        print("Earlier hand-ins are kept in class/replaced/STUDENT/LESSON/.")
    if damaged := [one.student for one in done.all if one.damage]:
        be = "is" if len(damaged) == 1 else "are"
        told = f"{len(damaged)} of them cannot be read, or {be} empty ({listed(sorted(damaged))})"
        print(f"{told}; grading will say why.")
    if done.junk:
        were = "was" if done.junk == 1 else "were"
        print(f"{_files(done.junk)} of the system's or Jupyter's own {were} passed over.")
    if not roster.students:
        print("There is no roster, so ids were taken from names: see autograder roster.")
    if done.refused:
        were = "was" if len(done.refused) == 1 else "were"
        print(f"{_files(len(done.refused))} {were} not taken: see below.")


def _files(count: int) -> str:
    return f"{count} file" + "s" * (count != 1)


def _taken(done: Received) -> None:
    """Say which file goes to whom."""
    for one in sorted(done.all, key=lambda one: one.file.name):
        print(f"  {one.file.name} goes to {one.student}, {one.lesson}")


def _times(done: Received, dates: Dates, at: bool, shown: Callable[[datetime], str]) -> None:
    """Say which times were taken, and who is late."""
    if not done.all:
        return
    by_lms = sum(one.clues.late is not None for one in done.all)
    print("The time of hand-in is " + ("the one that you gave." if at else "that of each file."))
    if by_lms and not at:
        come = "comes" if by_lms == 1 else "come"
        print(
            f"{by_lms} {come} from Canvas, whose zip has the time of the download: late is who is "
            "marked LATE there. It does not say how late; for a late rule they are so by a second."
        )
    for lesson, late in sorted(done.late.items()):
        due = dates.due[lesson]
        be, who = "is" if len(late) == 1 else "are", f" ({listed(sorted(late))})" if late else ""
        print(f"{len(late)} of {lesson} {be} late{who}; due {shown(due) if due else ''}.")
    for lesson in sorted({one.lesson for one in done.all} - done.late.keys()):
        print(f"{lesson} has no due date, so nobody is late: set it, and receive the same again.")


def _attempts(done: Received) -> None:
    if done.several:
        print(f"{len(done.several)} handed in more than once; the latest is taken:")
    for last, earlier in done.several:
        names = ", ".join(one.file.name for one in earlier)
        print(f"  {last.file.name}, not {names}")


def _missing(course: Course, done: Received, roster: Roster, options: argparse.Namespace) -> None:
    if not roster.students:
        return
    before = [one for one in course.submissions() if place(course.submitted(one)).exists()]
    there = {(one.lesson, one.student) for one in before}
    there |= {(one.lesson, one.student) for one in done.all}
    # What a dry run does not copy to the others of a group counts for them all the same.
    there |= {
        (lesson, one)
        for lesson, student in there
        for members in course.choices.together(lesson).values()
        if student in members
        for one in members
    }
    asked = options.lesson or [one.lesson for one in done.all]
    for lesson in lessons.choose(asked, course.lessons()) if asked else ():
        missing = sorted(one for one in roster.students if (lesson, one) not in there)
        told = f": {', '.join(missing)}" if options.missing and missing else ""
        total = len(roster.students)
        have = "has" if len(missing) == 1 else "have"
        print(f"{len(missing)} of {total} {have} handed in nothing of {lesson}{told}.")


def _grouped(done: Received) -> list[str]:
    """A line for each file, or for many of one kind in one folder."""
    kinds = [(one.parts[0] if len(one.parts) > 1 else "", one.why) for one in done.refused]
    counts, lines = Counter(kinds), []
    for one, kind in zip(done.refused, kinds, strict=True):
        if counts[kind] <= SHOWN or not kind[0]:
            lines.append(f"{one.name}: {one.why}")
    for (folder, why), count in counts.items():
        if count > SHOWN and folder:
            lines.append(f"{shown(folder)}/ and below, {count} files: {why}")
    return lines
