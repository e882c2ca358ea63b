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

DESCRIPTION = (
    "Print a function @mistake(…) made of what a student handed in for an exercise, with all that "
    "it uses, to be pasted into autograder/mistakes/LESSON.py once its hint is written. What "
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
    stored = registry.source_of_answers(lessons.name_of(one.lesson))
    text = mistake_template.stub(notebook, one.lesson, options.exercise, stored)
    graded = course.kept(one)
    for exercise in graded.exercises if graded else ():
        if exercise.name == options.exercise and exercise.score == exercise.max:
            earned = f"{exercise.score:g} of {exercise.max:g} points"
            print(f"The check took this answer for right: {earned}.", file=sys.stderr)
    print(text, end="")
    return 0
