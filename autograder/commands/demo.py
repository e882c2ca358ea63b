"""``autograder demo``: hand in for a small class, grade it and show the results."""

import argparse
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from autograder import ROOT
from autograder.building.lesson import Lesson, find, read
from autograder.checking.toolbox import registry
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course
from autograder.reporting import page, results

DESCRIPTION = (
    "Hand in lessons for a class of eight (right, careless, wrong, blank and broken), grade it, "
    "print the reason for every lost point, and write feedback, a CSV and a class report."
)
LOOP = """
    while True:
        pass
"""
DEATH = """
    import os
    os._exit(1)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lessons",
        nargs="*",
        metavar="LESSON",
        default=["00", "01"],
        help="number or name of a lesson to hand in (default: 00 and 01)",
    )
    parser.add_argument("--folder", default=".demo", help="where to work (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Demonstrate; exit status 0 if all was graded."""
    course = Path(options.folder).resolve()
    chosen = [read(path) for path in find(options.lessons)]
    _prepare(course, [lesson.slug for lesson in chosen])
    students = _hand_in(course, chosen)
    slugs = " and ".join(lesson.slug for lesson in chosen)
    print(f"Handed in {slugs} for {len(students)} students: {', '.join(students)}.", flush=True)
    here = ["--course", str(course)]
    status = cli.main(["grade", *here])
    if not (course / "class" / "autograded").is_dir():  # it has said why
        return status
    for line in page.table(results.graded(Course(course))):
        if line["score"] < line["max"]:
            print(f"{line['student']} · {line['exercise']}")
            print(textwrap.indent(line["reason"], "  "))
    cli.main(["feedback", *here])
    cli.main(["report", *here, "--to", str(course / "results")])
    shown = course.relative_to(Path.cwd()) if course.is_relative_to(Path.cwd()) else course
    print(
        f"Look at {shown}/results/class.html and scores.csv, and at the feedback in "
        f"{shown}/class/feedback/STUDENT/LESSON/LESSON.html"
    )
    return status


def _prepare(course: Path, slugs: list[str]) -> None:
    """An empty course folder: the solved notebooks and nbgrader's configuration."""
    shutil.rmtree(course, ignore_errors=True)
    course.mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", course)
    for slug in slugs:
        shutil.copytree(ROOT / "solutions" / slug, course / "solutions" / slug)


def _hand_in(course: Path, lessons: list[Lesson]) -> list[str]:
    students: set[str] = set()
    for lesson in lessons:
        for student, notebook in _class(lesson):
            sample_class.submit(notebook, course, student, lesson.slug)
            students.add(student)
    return sorted(students)


def _class(lesson: Lesson) -> Iterator[tuple[str, NotebookNode]]:
    """Pairs (student, notebook): one for each way in which a submission can go."""
    names, checks = list(lesson.exercises), registry.of_lesson(lesson.name)
    mistakes = {name: sample_class.wrong(name) for name in names[-3:]}
    others = {name: registry.alternatives(checks[name])[0] for name in names}
    careless = {
        name: found[0] for name in names if (found := registry.careless_answers(checks[name]))
    }
    first = names[0]
    cells = {
        "eve-syntax-error": f"def {first}(:\n    return",
        "finn-endless-loop": f"def {first}(*args, **kwargs):{LOOP}",
        "gil-kernel-dies": f"def {first}(*args, **kwargs):{DEATH}",
    }
    yield "ada-perfect", sample_class.handed_in(lesson.slug)
    yield "ben-three-mistakes", sample_class.handed_in(lesson.slug, mistakes)
    yield "cleo-other-way", sample_class.handed_in(lesson.slug, others)
    yield "dan-blank", sample_class.blank(lesson.slug)
    for student, cell in cells.items():
        yield student, sample_class.handed_in(lesson.slug, {first: cell})
    yield "hal-careless", sample_class.handed_in(lesson.slug, careless)
