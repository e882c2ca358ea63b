"""``autograder report``: a page and a table of what a class earned, and why points were lost."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.commands import add_shared
from autograder.grading.classroom import database, gradebook, results_table
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.unexpected_names import absent
from autograder.grading.notebook import records
from autograder.reporting import page, unexplained

DESCRIPTION = (
    "Read what `autograder grade` or `nbgrader autograde` left in class/autograded/ and write "
    "class.html and scores.csv: distribution, points by exercise, what went wrong how often, what "
    "no stored mistake explains, time to grade, who needs help, and the reason for every lost "
    "point. The scores are those that count: what was changed by hand in nbgrader's gradebook is "
    "marked. The page calls students by their ids."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_shared(parser, "--lesson", "--section", "--course")
    add("--to", metavar="DIR", help="where to write (default: class/report in the course)")
    words = "write anonymous.html, a page to be shown: it names nobody; no table"
    add("--anonymous", action="store_true", help=words)


def run(options: argparse.Namespace) -> int:
    """Write the report; exit status 1 if nothing is graded, or a grading cannot be read."""
    course = Course(options.course)
    asked = course.in_sections(options.section)
    results = [one for one in graded(course, options.lesson) if asked(one["student"])]
    if not results:
        print(f"Nothing is graded in {course.root}: run autograder grade first.", file=sys.stderr)
        return 1
    folder = Path(options.to) if options.to else course.root / "class" / "report"
    folder.mkdir(parents=True, exist_ok=True)
    found = unexplained.of_course(course, results)
    if options.anonymous:
        written = "anonymous.html"
        page.write_html(results, folder / written, found, anonymous=True)
    else:
        written = "class.html and scores.csv"
        missing = {lesson: [*filter(asked, _absent(course, lesson))] for lesson in found}
        page.write_html(results, folder / "class.html", found, missing)
        results_table.write_csv(results, folder / "scores.csv")
    count = len({result["student"] for result in results})
    print(f"{count} students, {len(results)} submissions: {folder}/{written}")
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


def graded(course: Course, lessons: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What is kept of each graded submission of a course, with the scores that count.

    See ``results_table``, and its ``counting``.
    """
    handed = course.submissions(lessons)
    kept = map(course.kept, handed)
    results = [result.as_dict() for result in kept if result is not None]
    if not database.exists(course):
        return results
    with gradebook.Book(course) as book:
        counted = {lesson: book.counted(lesson) for lesson in {one.lesson for one in handed}}
    return [
        results_table.counting(one, counted[one["lesson"]].get(one["student"])) for one in results
    ]
