"""``autograder mistake``: a student's wrong answer as the beginning of a stored mistake."""

import argparse
import sys

from autograder import CourseError, lessons
from autograder.checking.toolbox import registry
from autograder.commands import add_shared
from autograder.grading.classroom.folders import Course
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook import records
from autograder.reporting import mistake_template
from autograder.settings import own_folder

DESCRIPTION = (
    "Print a function @mistake(…) made of what a student handed in for an exercise, with all that "
    "it uses, to be pasted into the file that it names once its hint is written. What "
    "`autograder report` writes says for which answers this is worth while. Nothing is run."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("lesson", metavar="LESSON", help="number or name of the lesson")
    add("exercise", metavar="EXERCISE", help="name of the exercise")
    add("--from", dest="student", metavar="STUDENT", required=True, help="whose answer it is")
    add_shared(parser, "--course")


def run(options: argparse.Namespace) -> int:
    """Print the stub; raises CourseError where there is no such submission or answer."""
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
    text = mistake_template.stub(notebook, one.lesson, options.exercise, stored, into)
    graded = course.kept(one)
    for exercise in graded.exercises if graded else ():
        if exercise.name == options.exercise and exercise.score == exercise.max:
            earned = f"{exercise.score:g} of {exercise.max:g} points"
            print(f"The check took this answer for right: {earned}.", file=sys.stderr)
    print(text, end="")
    return 0


def _place(lesson: str) -> tuple[str, str]:
    """The file into which the mistake is to be pasted, '' for the course's, and what it says.

    Whoever has a folder of their own keeps there what no update of the course shall touch.
    """
    folder = own_folder()
    if folder is None or lesson.startswith(lessons.OWN):
        return "", registry.source_of_answers(lesson)
    path = folder / "mistakes" / f"{lessons.OWN_ANSWERS}{lesson}.py"
    return str(path), path.read_text(encoding="utf-8") if path.is_file() else ""
