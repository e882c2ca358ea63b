"""``autograder explain``: why a student lost points in an exercise, with the call that failed."""

import argparse

from autograder.commands import add_shared

DESCRIPTION = (
    "Say why a student lost points in an exercise: the answer that was graded, the reason, a call "
    "that tells it from the course's own answer, as a program to be pasted into the student's "
    "notebook, what both print, and the check's line. The answer is judged once more, in the "
    "sandbox. Nothing is written."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("lesson", metavar="LESSON", help="number or name of the lesson")
    add("exercise", metavar="EXERCISE", help="name of the exercise")
    add("--student", metavar="STUDENT", required=True, help="whose answer it is")
    add_shared(parser, "--sandbox", "--course")


def run(options: argparse.Namespace) -> int:
    """Print the explanation; raises CourseError where there is nothing to explain."""
    from autograder.explaining import explanation
    from autograder.grading.classroom.folders import Course
    from autograder.grading.classroom.hand_in_failure import told_as_failure
    from autograder.sandbox.sandbox import Sandbox

    course = Course(options.course)
    with told_as_failure(f"explaining {options.exercise} of {options.student}"):
        asked = options.lesson, options.student, options.exercise
        handed, part = explanation.find(course, *asked)
        with Sandbox(handed.lesson, options.sandbox, secrets=course.secrets) as sandbox:
            told = explanation.explain(course, handed, part, sandbox)
    print(told, end="")
    return 0
