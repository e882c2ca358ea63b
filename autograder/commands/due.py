"""``autograder due``: when a lesson has to be handed in."""

import argparse
from datetime import UTC, datetime

HELP = "set or show when lessons are due"
DESCRIPTION = (
    "Set the due date of a lesson in nbgrader's gradebook, from which nbgrader and this course say "
    "what is late; without a time, show it, and without a lesson, show all. A penalty for late "
    "work is chosen in nbgrader_config.py. Work that is graded already gets it with --regrade."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the lesson, the time and the options."""
    add = parser.add_argument
    add("lesson", nargs="?", metavar="LESSON", help="number or name of a lesson")
    add("time", nargs="?", metavar="TIME", help="as 2026-12-01T23:59+01:00, or 'never'")
    add("--course", metavar="DIR", help="folder with nbgrader_config.py (default: this one)")
    add("--db-url", metavar="URL", help="the gradebook (default: that of nbgrader_config.py)")


def run(options: argparse.Namespace) -> int:
    """Set or show; exit status 0."""
    from autograder import lessons
    from autograder.collecting.times import read_time, shown
    from autograder.grading.folders import Course
    from autograder.grading.gradebook import opened

    course = Course(options.course, options.db_url)
    chosen = lessons.choose([options.lesson] if options.lesson else [], course.lessons())
    with opened(course) as book:
        if options.time:
            due = None if options.time == "never" else read_time(options.time)
            book.update_or_create_assignment(chosen[0], duedate=due)
        known = {one.name: one for one in book.assignments}
        for lesson in chosen:
            due = known[lesson].duedate if lesson in known else None
            over = "  (has passed)" if due and due < datetime.now(UTC).replace(tzinfo=None) else ""
            print(f"{lesson:<34}{shown(due) if due else 'no due date'}{over}")
        graded = known[chosen[0]].num_submissions if chosen and chosen[0] in known else 0
        if options.time and graded:
            print(
                f"{graded} of it are in the gradebook already. Penalties follow the new date with: "
                f"autograder grade --lesson {chosen[0]} --regrade"
            )
    return 0
