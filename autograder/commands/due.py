"""``autograder due``: when a lesson has to be handed in."""

import argparse
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from nbgrader.api import Gradebook

from autograder import CourseError, lessons
from autograder.commands import add_shared
from autograder.grading.classroom.database import opened
from autograder.grading.classroom.deadline_extensions import dates, grant, who_handed_in
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book
from autograder.term.course_file import People, read_time

DESCRIPTION = (
    "Set the due date of a lesson in nbgrader's gradebook, from which nbgrader and this course say "
    "what is late; without a time, show it, and without a lesson, show all. With --student, set a "
    "later one for that student alone. Dates that stand in class/course.toml are changed there. "
    "What is graded already follows at the next autograder grade."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("lesson", nargs="?", metavar="LESSON", help="number or name of a lesson")
    add("time", nargs="?", metavar="TIME", help="as 2026-12-01T23:59+01:00, or 'never'")
    add(
        "--student",
        action="append",
        metavar="ID",
        help="only for this student, who may be given more time; 'usual' in place of the time "
        "takes it back; may be given several times",
    )
    add_shared(parser, "--course", "--db-url")


def run(options: argparse.Namespace) -> int:
    """Set or show; exit status 0."""
    course = Course(options.course, options.db_url)
    chosen = lessons.choose([options.lesson] if options.lesson else [], course.lessons())
    if options.student and not options.time:
        raise CourseError("--student needs a lesson and a time, or 'usual' in place of the time")
    none = options.time == ("usual" if options.student else "never")
    zone = course.choices.timezone
    due = read_time(options.time, zone) if options.time and not none else None
    if options.student:
        with Book(course) as registering:
            registering.register(chosen[0])
    named = course.choices.lessons[chosen[0]].due if options.time and not options.student else None
    if named is not None:
        raise CourseError(
            f"{course.choices.path} says when {chosen[0]} is due, "
            f"{course.choices.shown(named)}: change it there"
        )
    shown = course.choices.shown
    with opened(course) as book:
        if options.student:
            grant(book, chosen[0], options.student, due, shown)
        elif options.time:
            book.update_or_create_assignment(chosen[0], duedate=due)
        _show(book, chosen, shown)
        graded = who_handed_in(book, chosen[0]) if options.time else set()
        if options.student:
            graded &= set(options.student)
            _point_at_groups(course.choices.together(chosen[0]), options.student)
        if graded:
            print(
                f"{len(graded)} in the gradebook already: penalties follow the new date with: "
                f"autograder grade --lesson {chosen[0]}"
            )
    return 0


def _point_at_groups(groups: People, students: Collection[str]) -> None:
    """Name the other members of these students' groups: for them a shared hand-in may be late."""
    for name, members in groups.items():
        others = [one for one in members if one not in students]
        if others and len(others) < len(members):
            print(f"Group {name} hands in together; not changed for: {', '.join(others)}.")


def _show(book: Gradebook, chosen: list[str], shown: Callable[[datetime], str]) -> None:
    found = dates(book)
    for lesson in chosen:
        due = found.get((lesson, ""))
        over = "  (has passed)" if due and due < datetime.now(UTC).replace(tzinfo=None) else ""
        print(f"{lesson:<34}{shown(due) if due else 'no due date'}{over}")
        for (slug, student), later in sorted(found.items()):
            if student and later and slug == lesson:
                print(f"  {student:<32}{shown(later)}")
