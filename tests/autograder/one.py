"""Grade one notebook, as a worker does."""

import time

from autograder.grading.execution.assemble import assemble
from autograder.grading.execution.execute import execute
from autograder.grading.notebook.result import Result


def grade_submission(master, submission, box):
    """Grade a Submission in a Sandbox; return (graded notebook, Result without names)."""
    start = time.monotonic()
    notebook = assemble(master, submission)
    exercises, doubt = execute(notebook, box)
    result = Result("", "", exercises, submission.problem, doubt=doubt)
    result.seconds = round(time.monotonic() - start, 3)
    return notebook, result
