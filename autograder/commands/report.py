"""``autograder report``: a page and a table of what a class earned, and why points were lost."""

import argparse
import sys
from pathlib import Path

from autograder.commands import add_shared
from autograder.grading.classroom import database, gradebook
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.misplaced import absent
from autograder.grading.notebook import records
from autograder.reporting import faults, page, results

DESCRIPTION = (
    "Read what `autograder grade` or `nbgrader autograde` left in class/autograded/ and write "
    "class.html and scores.csv: distribution, points by exercise, what went wrong how often and "
    "what no stored mistake explains, who needs help, and the reason for every lost point. The "
    "scores are those that count: what was changed by hand in nbgrader's gradebook is marked. The "
    "page calls students by their ids."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared(parser, "--lesson", "--section", "--course")
    words = "where to write (default: class/report in the course)"
    parser.add_argument("--to", metavar="DIR", help=words)


def run(options: argparse.Namespace) -> int:
    """Write the report; exit status 1 if nothing is graded, or a grading cannot be read."""
    course = Course(options.course)
    asked = course.in_sections(options.section)
    rows = [one for one in results.graded(course, options.lesson) if asked(one.student)]
    if not rows:
        print(f"Nothing is graded in {course.root}: run autograder grade first.", file=sys.stderr)
        return 1
    folder = Path(options.to) if options.to else course.root / "class" / "report"
    folder.mkdir(parents=True, exist_ok=True)
    lessons = results.by_lesson(rows)
    found = {lesson: faults.of_course(course, lesson, own) for lesson, own in lessons.items()}
    missing = {lesson: [*filter(asked, _absent(course, lesson))] for lesson in lessons}
    page.write_html(rows, folder / "class.html", found, missing)
    page.write_csv(rows, folder / "scores.csv")
    count = len({row.student for row in rows})
    print(f"{count} students, {len(rows)} submissions: {folder}/class.html and scores.csv")
    damaged = [one for one in course.submissions(options.lesson) if asked(one.student)]
    damaged = [one for one in damaged if course.is_damaged(one)]
    for one in damaged:
        why = f"its {records.REASONS} is damaged. Run autograder grade again"
        print(f"left out: {one.student}, {one.lesson}: {why}", file=sys.stderr)
    return int(bool(damaged))


def _absent(course: Course, lesson: str) -> list[str]:
    """Ids of the students of the roster who handed in nothing of a lesson."""
    if not database.exists(course):
        return []
    with gradebook.Book(course) as book:
        return absent(book.roster(), course.submissions([lesson]), lesson)
