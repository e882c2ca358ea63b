"""``autograder roster``: the students of a class, from a CSV file into nbgrader's gradebook."""

import argparse

from autograder.collecting.roster import Student, enrol, from_csv
from autograder.commands import add_shared
from autograder.grading.classroom.database import opened, refuse_strangers
from autograder.grading.classroom.folders import Course

DESCRIPTION = (
    "Read students from a CSV file (id, first_name, last_name, email, lms_user_id; what Canvas and "
    "Moodle export is understood) and put them into nbgrader's gradebook. Say who is new, who "
    "changed and who is in the gradebook only. Nobody is removed."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("csv", metavar="CSV", help="the file; commas, semicolons or tabs")
    add("--id", metavar="COLUMN", help="the column with the ids (default: found by its name)")
    add_shared(parser, "--course", "--db-url")


def run(options: argparse.Namespace) -> int:
    """Enrol; exit status 0."""
    students = from_csv(options.csv, options.id)
    return take(students, options.csv, Course(options.course, options.db_url))


def take(students: list[Student], path: str, course: Course) -> int:
    """Enrol students whom the file ``path`` names, and say what that changed; exit status 0."""
    with opened(course, agreed=False) as book:  # whom the file misses may be among these
        changes = enrol(book, students)
    print(f"{len(students)} students in {path}.")
    _list("new", changes.new)
    _list("changed", changes.changed)
    _list("in the gradebook only, with work handed in: they stay", changes.kept)
    _list("in the gradebook only; who is to go: nbgrader db student remove ID", changes.left)
    refuse_strangers(course)
    return 0


def _list(what: str, students: list[str]) -> None:
    """Print how many, and their ids where they can be read at a glance."""
    if students:
        shown = ", ".join(students[:20]) + (", …" if len(students) > 20 else "")
        print(f"{len(students)} {what}: {shown}")
