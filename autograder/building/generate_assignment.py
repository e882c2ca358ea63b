"""Release a solved notebook to students with nbgrader's own generate_assignment."""

import io
import logging
import re
import tempfile
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells
from traitlets.config import Config

from autograder import CourseError
from autograder.course import GENERATE, configure
from autograder.lessons import notebook as notebook_of


class ReleaseError(CourseError):
    """nbgrader refused a solved notebook; str() says which and why."""


def release(notebook: nbformat.NotebookNode, slug: str) -> nbformat.NotebookNode:
    """Return the student's version of the solved ``notebook`` (stubs, no outputs)."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        source = notebook_of(root, "solutions", slug)
        source.parent.mkdir(parents=True)
        nbformat.write(notebook, source)
        config = configure(Config(), root)
        config.CourseDirectory.assignment_id = slug
        # What a student gets does not depend on the gradebook, and leaving it out saves seconds.
        config.GenerateAssignment.preprocessors = [
            step for step in GENERATE if step is not SaveCells
        ]
        said = io.StringIO()
        log = logging.Logger("release", logging.ERROR)
        log.addHandler(logging.StreamHandler(said))
        converter = GenerateAssignment(
            coursedir=CourseDirectory(config=config), config=config, log=log, no_database=True
        )
        try:
            converter.start()
            released = nbformat.read(notebook_of(root, "lessons", slug), as_version=4)
        except (SystemExit, Exception) as error:
            reason = _reason(said.getvalue()) or error
            raise ReleaseError(f"{slug}: nbgrader could not release it: {reason}") from error
    return released


def _reason(said: str) -> str:
    """The first error in nbgrader's log, which is full of tracebacks."""
    errors = re.findall(r"^[\w.]+(?:Error|Exception): (.+)$", said, re.MULTILINE)
    return (errors or said.strip().splitlines() or [""])[0]
