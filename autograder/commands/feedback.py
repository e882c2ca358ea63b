"""``autograder feedback``: make the pages that students read, and give them back."""

import argparse
import sys
import time
from pathlib import Path

from rich.progress import track

from autograder.commands import add_shared
from autograder.grading.classroom import database
from autograder.grading.classroom.folders import Course
from autograder.grading.feedback import return_format
from autograder.grading.feedback.exporter import Pages
from autograder.grading.notebook.result import listed

DESCRIPTION = (
    "Make class/feedback/<student>/<lesson>/<lesson>.html for what is graded, as nbgrader "
    "generate_feedback does. With --to, write the pages into a folder, or a zip if "
    "the name ends in .zip: as <student>/<lesson>.html (pages), under the names of an LMS, by "
    "which it takes feedback back (canvas, moodle), or as one file a student (mail). Exit status 0 "
    "if everyone graded has a page."
)

UNKNOWN = """\
{lms} cannot tell whose these pages are: {names}.
Their work did not come from it under a name of its own: another member of a group handed it in, or
two files had one name. Send each of them the page yourself: --form mail --student NAME."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_shared(parser, "--lesson", "--student", "--section")
    add("--to", type=Path, metavar="FOLDER|ZIP", help="where to write the pages for students")
    forms = ("pages", "canvas", "moodle", "mail")
    add("--form", choices=forms, default="pages", help="how they go back (default: pages)")
    add_shared(parser, "--db-url", "--course")


def run(options: argparse.Namespace) -> int:
    """Make the pages and give them back; returns the exit status."""
    course = Course(options.course, options.db_url)
    asked = course.in_sections(options.section)
    there = course.submissions(options.lesson, options.student)
    handed = [one for one in there if asked(one.student)]
    graded = [one for one in handed if course.autograded(one).is_file()]
    if not graded or not database.exists(course):
        what = f"of {', '.join(options.lesson)} " if options.lesson else ""
        print(
            f"Nothing {what}is graded in {course.root}: run autograder grade first.",
            file=sys.stderr,
        )
        return 1
    return_format.refuse(options.form, options.to, {one.lesson for one in graded})
    pages, start = Pages(course, handed), time.monotonic()
    silent = not sys.stdout.isatty()
    for _ in track(pages.make(), "pages", total=len(pages.waiting), transient=True, disable=silent):
        pass
    print(f"{len(pages.made)} pages made in {time.monotonic() - start:.1f} s.")
    if options.to:
        gone = [one for one in handed if one not in {*pages.made}]
        unknown = return_format.hand_back(course, options.form, options.to, pages.made, gone)
        print(f"{options.to}: {len(pages.made)} pages")
        if unknown:
            lms = options.form.capitalize()
            print(UNKNOWN.format(lms=lms, names=listed(unknown)))
    if pages.ungraded:
        print(f"{pages.ungraded} are not graded yet and get no page.")
    if pages.unsettled:
        named = listed([f"{one.student}, {one.lesson}" for one in pages.unsettled])
        print(f"To be looked at again, as formgrader's needs manual grade says: {named}.")
    for one, why in sorted(pages.failed.items()):
        print(f"no page for {one.student}, {one.lesson}: {why}", file=sys.stderr)
    return 1 if pages.failed else 0
