"""``autograder mistake``: a student's wrong answer as the beginning of a stored mistake."""

import argparse
from dataclasses import asdict
from pathlib import Path

from autograder import CourseError, lessons
from autograder.checking.toolbox import registry
from autograder.commands import add_shared
from autograder.explaining import as_card, replay
from autograder.grading.classroom import item_analysis
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.hand_in_failure import told_as_failure
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Exercise
from autograder.reporting import mistake_template
from autograder.sandbox.sandbox import Sandbox
from autograder.settings import count, own_folder

DESCRIPTION = (
    "Print a card made of what a student handed in for an exercise: the edit of the right answer "
    "that replies as it does. Where no small edit does, print a function @mistake(…) with all that "
    "the answer uses. Either is pasted into the file that it names once its hint is written. What "
    "`autograder report` writes says for which answers this is worth while. The answer runs in the "
    "sandbox."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("lesson", metavar="LESSON", help="number or name of the lesson")
    add("exercise", metavar="EXERCISE", help="name of the exercise")
    add("--from", dest="student", metavar="STUDENT", required=True, help="whose answer it is")
    add_shared(parser, "--sandbox", "--course")


def run(options: argparse.Namespace) -> int:
    """Print a card or a stub; raises CourseError where there is no such submission or answer."""
    with told_as_failure(f"reading {options.exercise} of {options.student}"):
        text = _text(options)
    print(text, end="")
    return 0


def _text(options: argparse.Namespace) -> str:
    course = Course(options.course)
    handed = course.submissions([options.lesson], [options.student])
    if not handed:
        raise CourseError(f"{options.student!r} handed in nothing for lesson {options.lesson}")
    (one,) = handed
    submission = course.read(one)
    if submission.problem:
        raise CourseError(f"this submission holds no answers: {submission.problem}")
    notebook = assemble(records.read_notebook(course.master(one.lesson)), submission)
    into, stored = _place(lessons.name_of(one.lesson))
    mistake_template.parts(notebook, options.exercise)  # refuses what is no exercise, or not there
    cells = replay.sources(notebook, options.exercise)
    cards = str(
        Path(into or f"autograder/mistakes/{lessons.name_of(one.lesson)}").with_suffix(".md")
    )
    with Sandbox(one.lesson, options.sandbox, secrets=course.secrets) as sandbox:
        text = as_card.text(registry.find(options.exercise), sandbox, cells, cards)
    if not text:
        text = mistake_template.stub(notebook, one.lesson, options.exercise, stored, into)
    graded = course.kept(one)
    for exercise in graded.exercises if graded else ():
        if exercise.name == options.exercise:
            text = _no_mistake(exercise) + text
    return text


def _no_mistake(one: Exercise) -> str:
    """A comment above an answer that the check took for right: it is no mistake; else ''."""
    kind = item_analysis.kind(asdict(one))
    if kind not in (item_analysis.RIGHT, item_analysis.CARELESS):
        return ""
    besides = " but for care" if kind == item_analysis.CARELESS else ""
    earned = f"{one.score:g} of {count(one.max)}"
    return f"# The check took this answer for right{besides}: {earned}.\n"


def _place(lesson: str) -> tuple[str, str]:
    """The file into which the mistake is to be pasted, '' for the course's, and what it says.

    Whoever has a folder of their own keeps there what no update of the course shall touch.
    """
    folder = own_folder()
    if folder is None or lesson.startswith(lessons.OWN):
        return "", registry.source_of_answers(lesson)
    path = folder / "mistakes" / f"{lessons.OWN_ANSWERS}{lesson}.py"
    return str(path), path.read_text(encoding="utf-8") if path.is_file() else ""
