"""``autograder grades``: scores from nbgrader's gradebook in the form that an LMS imports."""

import argparse
import sys
from pathlib import Path

from autograder import CourseError, lessons
from autograder.collecting import grades
from autograder.collecting.grades import Filled, How, Lesson
from autograder.collecting.lms_csv import Table
from autograder.collecting.roster import Roster, Student, of_gradebook
from autograder.commands import add_shared
from autograder.files import write_aside
from autograder.grading.classroom.database import opened
from autograder.grading.classroom.folders import Course
from autograder.grading.notebook.filenames import plain
from autograder.grading.notebook.result import listed

DESCRIPTION = (
    "Write the scores of nbgrader's gradebook, with manual scores, extra credit and penalties, as "
    "a CSV file: one of all students, or the file that Canvas or Moodle gave you (--like), where "
    "only grades are filled in. Rows without a student, students without a row "
    "and lessons without a column are listed, and make the exit status 1."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--to", required=True, metavar="FILE", help="what to write")
    add("--form", choices=("csv", "canvas", "moodle"), default="csv", help="(default: csv)")
    add("--like", metavar="FILE", help="Canvas' exported gradebook or Moodle's grading worksheet")
    add_shared(parser, "--lesson", "--section")
    add("--column", metavar="NAME", help="what the lesson is called in the file of Canvas")
    add("--zeros", action="store_true", help="write 0 for those who handed in nothing")
    add_shared(parser, "--course", "--db-url")


def run(options: argparse.Namespace) -> int:
    """Write; exit status 1 if a row, a student or a lesson was left over."""
    if options.form != "csv" and not options.like:
        raise CourseError(f"--form {options.form} needs --like: the file to be filled in")
    course = Course(options.course, options.db_url)
    with opened(course) as book:
        there = [one.name for one in book.assignments if one.num_submissions]
        slugs = [one for one in lessons.choose(options.lesson, course.lessons()) if one in there]
        if not slugs:
            raise CourseError(f"no score is in the gradebook of {course.root}: grade first")
        if len(slugs) > 1 and (options.form == "moodle" or options.column):
            raise CourseError("this is for one lesson at a time: name it with --lesson")
        found = [grades.of_lesson(book, one) for one in slugs]
        roster = Roster(of_gradebook(book))
    asked = course.in_sections(options.section)
    for one in found:
        one.scores = {who: score for who, score in one.scores.items() if asked(who)}
    ungraded = sum(_leave_out(course, one) for one in found)
    how, to, left = How(options.zeros, asked), Path(options.to), bool(ungraded)
    if options.like:
        table = Table(options.like)
        if to.exists() and to.samefile(table.path):
            raise CourseError(f"--to {to} would replace the export; give another name")
        if options.form == "csv":
            raise CourseError("--like needs --form canvas or --form moodle")
        done = grades.fill(table, options.form, found, roster, how, options.column)
        write_aside(to, table.bytes())
        _tell(to, table, done)
        left |= bool(done.strangers or done.without_row or done.without_column)
    else:
        theirs = [one for one in roster.students.values() if asked(one.id)]
        students = sorted(theirs, key=_by_name)
        write_aside(to, grades.made_anew(students, found, how))
        print(f"{to}: {len(students)} students; {', '.join(slugs)}")
    for one in found:
        if again := sorted(who for who, score in one.scores.items() if score.unfinished):
            print(f"Yet to be graded by hand in formgrader, of {one.slug}: {listed(again)}.")
    return int(left)


def _leave_out(course: Course, lesson: Lesson) -> int:
    """Leave out whose 0 points are nobody's doing, and say so; returns how many they are."""
    ungraded = 0
    for one in course.submissions([lesson.slug]):
        kept, score = course.kept(one), lesson.scores.get(one.student)
        if kept and kept.ungraded and score and not score.points:  # else somebody gave points
            del lesson.scores[one.student]
            why = "it could not be graded. Run autograder grade again"
            print(f"no grade for {one.student}, {one.lesson}: {why}", file=sys.stderr)
            ungraded += 1
    return ungraded


def _by_name(one: Student) -> tuple[str, str, str]:
    return plain(one.last_name or one.first_name), plain(one.first_name), one.id


def _tell(to: Path, table: Table, done: Filled) -> None:
    for slug, place in done.columns.items():
        print(f"{slug}: the column {table.rows[0][place].strip()!r}")
    print(f"{to}: {done.written} grades, {done.changed} of them in place of another one.")
    if done.kept:
        print(f"{done.kept} cells say EX or N/A and stay as they are.")
    for slug in done.without_column:
        print(
            f"{slug}: no column is called like it, so none of its grades is written: name it with "
            f"--lesson {slug.partition('_')[0]} --column 'NAME', or make the assignment in Canvas "
            "and export again",
            file=sys.stderr,
        )
    for one in done.strangers:
        print(f"not filled in: {one}", file=sys.stderr)
    for student in done.without_row:
        print(f"no row is surely theirs: {student}, who has a score", file=sys.stderr)
