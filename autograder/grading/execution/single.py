"""Grade one notebook."""

import time
from pathlib import Path
from typing import Any

from autograder.grading.execution.assemble import assemble
from autograder.grading.execution.execute import execute
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Result
from autograder.grading.notebook.submission import Submission, read
from autograder.inside.limits import DEFAULT, Limits
from autograder.sandbox.sandbox import Sandbox


def grade_notebook(
    master_path: Path | str,
    submitted_path: Path | str,
    sandbox: str = "required",
    limits: Limits = DEFAULT,
) -> Result:
    """Grade the notebook at ``submitted_path`` against the solved one; return a Result.

    ``sandbox`` is 'required', 'auto' or 'off'. Nothing is written.
    """
    master_path = Path(master_path)
    master = records.read_notebook(master_path)
    with Sandbox(master_path.stem, sandbox, limits) as box:
        _, result = grade_submission(master, read(submitted_path), box)
    result.student, result.lesson = Path(submitted_path).stem, master_path.stem
    return result


def grade_submission(
    master: dict[str, Any], submission: Submission, box: Sandbox
) -> tuple[dict[str, Any], Result]:
    """Grade a Submission in a Sandbox; return (graded notebook, Result without names)."""
    start = time.monotonic()
    notebook = assemble(master, submission)
    exercises, doubt = execute(notebook, box)
    result = Result("", "", exercises, submission.problem, doubt=doubt)
    result.seconds = round(time.monotonic() - start, 3)
    return notebook, result
