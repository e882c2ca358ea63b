"""``autograder receive``: hand-ins from an LMS or from mails to where the grading finds them."""

import argparse
import sys
from collections import Counter

from autograder import CourseError, lessons
from autograder.collecting.grades import participants
from autograder.collecting.lms_csv import Table
from autograder.collecting.receiving import Dates, How, Received, due_of, receive
from autograder.collecting.roster import Roster, of_gradebook
from autograder.collecting.search import shown
from autograder.commands import add_shared
from autograder.commands.support import group_work
from autograder.grading.classroom.database import opened
from autograder.grading.classroom.deadline_extensions import dates
from autograder.grading.classroom.folders import Course
from autograder.grading.notebook.result import listed
from autograder.grading.notebook.submission import place
from autograder.term.course_file import Choices, late_by, read_time

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
        help="whose a file is, from its path: (?P<student_id>…) holds an id, an address or a name",
    )
    words = "Moodle's grading worksheet of this assignment: it tells namesakes apart"
    add("--like", metavar="FILE", help=words)
    add("--dry-run", action="store_true", help="only say what would be done")
    add_shared(parser, "--course", "--db-url")


def run(options: argparse.Namespace) -> int:
    """Receive; exit status 1 if something was not taken."""
    course = Course(options.course, options.db_url)
    at = read_time(options.at, course.choices.timezone) if options.at else None
    with opened(course) as book:
        roster, due = Roster(of_gradebook(book)), dates(book)
    if not roster.students:
        raise CourseError("nobody is in the gradebook: say who is in the class, autograder roster")
    if options.like:
        roster.participants = participants(Table(options.like), roster)
    how = How(options.lesson, at, options.pattern, options.dry_run)
    done = receive(course, options.source, roster, due, how)
    chosen = lessons.choose(options.lesson, course.lessons())
    told = [] if options.dry_run else group_work.share(course, chosen)
    if options.dry_run:
        print("Nothing is changed: this is what would be done.")
        for one in sorted(done.all, key=lambda one: one.file.name):
            came = course.choices.shown(done.times[one.lesson, one.student])
            print(f"  {one.file.name} goes to {one.student}, {one.lesson}: {came}")
    _counts(done)
    _times(done, due, bool(at), course.choices)
    for last, earlier in done.several:
        print(
            f"{last.student} handed in several times: the latest is {last.file.name}, not "
            f"{', '.join(one.file.name for one in earlier)}"
        )
    for one in done.all:
        if one.group:
            print(f"{one.lesson}: the work of group {one.group} is kept as {one.student}'s.")
    for sentence in told:
        print(sentence)
    asked = options.lesson or [one.lesson for one in done.all]
    for lesson in lessons.choose(asked, course.lessons()) if asked else ():
        missing = sorted(roster.students.keys() - _handed_in(course, done, lesson))
        named = f": {listed(missing)}" if missing else ""
        print(f"Handed in nothing of {lesson}: {len(missing)} of {len(roster.students)}{named}.")
    if not options.like and any(one.why.startswith("it may be") for one in done.refused):
        print("Moodle's grading worksheet, given with --like, tells namesakes apart.")
    for line in _refused(done):
        print(f"not taken: {shown(line, 1000)}", file=sys.stderr)
    return int(bool(done.refused))


def _counts(done: Received) -> None:
    for lesson in sorted({one.lesson for one in done.all}):
        kinds = (done.new, done.replacing, done.same)
        new, replacing, same = (sum(one.lesson == lesson for one in kind) for kind in kinds)
        print(f"{lesson}: {new} new, {replacing} in place of an earlier one, {same} as before.")
    if done.replacing:
        print("Earlier hand-ins are kept in class/replaced/STUDENT/LESSON/.")
    if damaged := sorted(one.student for one in done.all if one.damage):
        print(f"Empty, or not to be read; grading will say why: {listed(damaged)}.")
    if done.refused:
        print(f"Files that were not taken: {len(done.refused)}, see below.")


def _times(done: Received, dues: Dates, at: bool, choices: Choices) -> None:
    """Say when they came in, and who is late."""
    if not done.all:
        return
    first, last = min(done.times.values()), max(done.times.values())
    print(f"They came in from {choices.shown(first)} to {choices.shown(last)}.")
    by_lms = sum(one.clues.late is not None for one in done.all)
    if by_lms and not at:
        print(
            f"From Canvas: {by_lms}. Its zip has the time of the download: late is who is marked "
            "LATE there. It does not say how late; for a late rule they are so by a second."
        )
        known = (one for one in done.all if one.clues.late and (one.lesson, one.student) in dues)
        if more := sorted(one.student for one in known):
            print(f"Marked LATE, and in time with the extension that they have: {listed(more)}.")
    for lesson in sorted({one.lesson for one in done.all}):
        if usual := due_of(dues, lesson):
            late = [
                f"{who} ({choices.shown(when)}, {late_by((when - due).total_seconds())})"
                for (slug, who), when in sorted(done.times.items())
                if slug == lesson and (due := due_of(dues, slug, who)) and when > due
            ]
            print(f"Late with {lesson}, due {choices.shown(usual)}: {listed(late) or 'nobody'}.")
        else:
            print(
                f"{lesson} has no due date, so nobody is late: set it, and receive the same again."
            )


def _handed_in(course: Course, done: Received, lesson: str) -> set[str]:
    """Who has handed in a lesson, now or before; in a dry run, what a group would share counts."""
    before = [one for one in course.submissions([lesson]) if place(course.submitted(one)).exists()]
    found = {one.student for one in before}
    found |= {one.student for one in done.all if one.lesson == lesson}
    for members in course.choices.together(lesson).values():
        found |= set(members) if found & set(members) else set()
    return found


def _refused(done: Received) -> list[str]:
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
