"""``autograder explain``: why a student lost points in an exercise, with the call that failed."""

import argparse
import json

from autograder.commands import add_shared

DESCRIPTION = (
    "Say why a student lost points in an exercise: the answer that was graded, the verdict, the "
    "call over which it failed as a program to be pasted into the student's notebook, what the "
    "right answer gives there, the check's line, the lesson's text, and how many others lost it "
    "in the same way. The answer is asked once more, in the sandbox. Nothing is written."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("lesson", metavar="LESSON", help="number or name of the lesson")
    add("exercise", metavar="EXERCISE", help="name of the exercise")
    add("--student", metavar="STUDENT", required=True, help="whose answer it is")
    add("--names", action="store_true", help="also name who lost it in the same way")
    add("--json", action="store_true", help="print it as JSON")
    add_shared(parser, "--sandbox", "--course")


def run(options: argparse.Namespace) -> int:
    """Print the explanation; raises CourseError where there is nothing to explain."""
    from autograder.grading.classroom.hand_in_failure import told_as_failure

    with told_as_failure(f"explaining {options.exercise} of {options.student}"):
        told = _told(options)
    print(told, end="")
    return 0


def _told(options: argparse.Namespace) -> str:
    """What is printed."""
    from autograder.commands.report import graded
    from autograder.explaining import explanation, on_record
    from autograder.grading.classroom.folders import Course
    from autograder.sandbox.sandbox import Sandbox
    from autograder.term import groups

    course = Course(options.course)
    handed, kept = on_record.find(course, options.lesson, options.student, options.exercise)
    rows = graded(course, [handed.lesson])
    shared = groups.copies(course.choices)
    copies = {who: whose for (slug, who), whose in shared.items() if slug == handed.lesson}
    case = on_record.case(course, handed, kept, options.exercise, rows, copies)
    with Sandbox(handed.lesson, options.sandbox, secrets=course.secrets) as sandbox:
        made = explanation.explain(case, sandbox)
    if options.json:
        return json.dumps(made.as_dict(options.names), indent=1) + "\n"
    return explanation.text(made, options.names)
