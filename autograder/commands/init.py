"""``autograder init``: write class/course.toml, in which a class chooses what it has."""

import argparse
from datetime import date
from pathlib import Path

from autograder import ROOT, CourseError
from autograder.collecting.roster import from_csv
from autograder.commands import add_shared, roster
from autograder.grading.classroom.folders import CONFIG, Course
from autograder.term import course_file, plan

DESCRIPTION = (
    "Write class/course.toml, with comments: the file in which a class chooses its lessons and "
    "exercises, their points, dates, the late rule, sections and groups. A ready plan fills in "
    "lessons, and --start their dates. A file that is there stays as it is. --roster says who is "
    "in the class."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--plan", metavar="NAME", help=f"begin with a ready plan: {', '.join(plan.PLANS)}")
    add("--start", metavar="DAY", help="when the first week begins, as 2026-10-05; needs --plan")
    add(
        "--timezone",
        metavar="ZONE",
        help="the zone of the class, as Europe/Berlin; --start needs it",
    )
    add("--roster", metavar="CSV", help="who is in the class, as autograder roster takes it")
    add_shared(parser, "--course", "--db-url")


def run(options: argparse.Namespace) -> int:
    """Write; exit status 0."""
    root = Path(options.course or "").resolve()
    lessons = course_file.there(root)
    if not lessons or not (options.course or (root / CONFIG).is_file()):
        raise CourseError(
            f"{root} is no course: go to the folder with {CONFIG}, or name it, as --course {ROOT}"
        )
    path = root / course_file.NAME
    start = _day(options.start) if options.start else None
    if start and not options.plan:
        raise CourseError("--start fills in the dates of a ready plan: name one with --plan")
    if start and not options.timezone:
        raise CourseError("--start fills in dates: give their zone, as --timezone Europe/Berlin")
    text = plan.text(options.plan, start, options.timezone)
    course_file.parse(path, text, lessons)
    students = from_csv(options.roster) if options.roster else []
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CourseError(f"{path} is there: change it, or move it away first") from None
    print(f"{path}: read it, change it, then see the term with: autograder plan")
    if options.roster:
        return roster.take(students, options.roster, Course(options.course, options.db_url))
    return 0


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise CourseError(f"--start {text!r} is no day: write it as 2026-10-05") from None
