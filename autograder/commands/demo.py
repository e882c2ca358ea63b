"""``autograder demo``: release the lessons, grade a small class and show the results."""

import argparse
import contextlib
import io
import logging
import shutil
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from rich.console import Console
from traitlets.config import Config

from autograder import ROOT
from autograder.building.lesson import Lesson, find, read
from autograder.checking.toolbox import registry
from autograder.commands import cli
from autograder.course import configure
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course
from autograder.reporting import results

DESCRIPTION = (
    "Release all lessons, hand in some for a class of eight (right, careless, wrong, blank and "
    "broken), grade it with nbgrader, print the reason for every lost point, and write feedback, "
    "a CSV and a class report."
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
    console = Console()
    chosen = [read(path) for path in find(options.lessons)]
    lessons = [path.stem for path in find()]
    _prepare(course, lessons)
    api = NbGraderAPI(config=configure(Config(), course))
    _take(api.generate_assignment, lessons)
    console.print(f"Released {len(lessons)} lessons with nbgrader generate_assignment.")
    students = _hand_in(course, chosen)
    slugs = " and ".join(lesson.slug for lesson in chosen)
    console.print(f"Handed in {slugs} for {len(students)} students: {', '.join(students)}.")

    status = cli.main(["grade", "--course", str(course)])
    if not (course / "class" / "autograded").is_dir():  # it has said why
        return status
    for line in results.table(results.graded(Course(course))):
        if line["score"] < line["max"]:
            print(f"{line['student']} · {line['exercise']}")
            print(textwrap.indent(line["reason"], "  "))
    _take(api.generate_feedback, [lesson.slug for lesson in chosen])
    cli.main(["report", "--course", str(course), "--to", str(course / "results")])
    shown = course.relative_to(Path.cwd()) if course.is_relative_to(Path.cwd()) else course
    console.print(
        f"Look at {shown}/results/class.html and scores.csv, and at the feedback in "
        f"{shown}/class/feedback/STUDENT/LESSON/LESSON.html",
        soft_wrap=True,
    )
    return status


def _prepare(course: Path, lessons: list[str]) -> None:
    """An empty course folder: the solved notebooks and nbgrader's configuration."""
    shutil.rmtree(course, ignore_errors=True)
    course.mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", course)
    for slug in lessons:
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


def _take(step: Callable[[str], dict[str, Any]], slugs: list[str]) -> None:
    """Take lessons through a step of nbgrader's, whose log stays off the terminal."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            for slug in slugs:
                outcome = step(slug)
                if not outcome["success"]:
                    raise RuntimeError(outcome.get("error") or outcome.get("log"))
    finally:
        logging.disable(level)
