"""``autograder mistake``: a student's wrong answer as the beginning of a stored mistake."""

import argparse
from dataclasses import asdict

from autograder import CourseError, cell_metadata, lessons
from autograder.checking.toolbox import registry
from autograder.commands import add_shared
from autograder.explaining import as_card, replay
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.hand_in_failure import told_as_failure
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Exercise
from autograder.reporting import results
from autograder.reporting.faults import bare, printable
from autograder.sandbox.sandbox import Sandbox
from autograder.settings import count, own_folder

DESCRIPTION = (
    "Print a card made of what a student handed in for an exercise: the edit of the right answer "
    "that replies as it does. Where no small edit does, print the answer, to be stored as a "
    "function. What `autograder report` writes says for which answers this is worth while. The "
    "answer runs in the sandbox."
)
AS_FUNCTION = """\
# No edit in one place replies as this does. Read it before you store it: stored mistakes run
# without a sandbox. In {place}.py, give it a name that says what is wrong, the helpers
# that it uses, and the line @mistake("{exercise}", hint="…") above it.
"""


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
    cells = replay.sources(notebook, options.exercise)
    place = _place(lessons.name_of(one.lesson))
    with Sandbox(one.lesson, options.sandbox, secrets=course.secrets) as sandbox:
        item = registry.find(options.exercise)
        text = as_card.text(item, sandbox, cells, f"{place}.md")
    if not text:
        note = AS_FUNCTION.format(exercise=options.exercise, place=place)
        answers = [cell for cell in notebook["cells"] if cell_metadata.is_solution(cell)]
        own = [cell for cell in answers if cell_metadata.exercise(cell) == options.exercise]
        text = note + printable("\n".join(bare(cell["source"]) for cell in own)) + "\n"
    graded = course.kept(one)
    for exercise in graded.exercises if graded else ():
        if exercise.name == options.exercise:
            text = _no_mistake(exercise) + text
    return text


def _no_mistake(one: Exercise) -> str:
    """A comment above an answer that the check took for right: it is no mistake; else ''."""
    kind = results.kind(asdict(one))
    if kind not in (results.RIGHT, results.CARELESS):
        return ""
    besides = " but for care" if kind == results.CARELESS else ""
    earned = f"{one.score:g} of {count(one.max)}"
    return f"# The check took this answer for right{besides}: {earned}.\n"


def _place(lesson: str) -> str:
    """The files into which the mistake is to be pasted, without their ending.

    Whoever has a folder of their own keeps there what no update of the course shall touch.
    """
    folder = own_folder()
    if folder is None or lesson.startswith(lessons.OWN):
        return f"autograder/mistakes/{lesson}"
    return str(folder / "mistakes" / f"{lessons.OWN_ANSWERS}{lesson}")
