"""Release a solved notebook to students with nbgrader's own generate_assignment."""

import logging
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.course import configure


class ReleaseError(RuntimeError):
    """nbgrader refused a solved notebook; str() says which and why."""


def release(notebook, slug):
    """Return the student's version of the solved ``notebook`` (stubs, no outputs)."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        source = root / "solutions" / slug / f"{slug}.ipynb"
        source.parent.mkdir(parents=True)
        (root / "autograder").mkdir()
        nbformat.write(notebook, source)
        config = configure(Config(), root)
        config.CourseDirectory.assignment_id = slug
        log = logging.getLogger("autograder.release")
        log.setLevel(logging.CRITICAL)
        converter = GenerateAssignment(
            coursedir=CourseDirectory(config=config), config=config, parent=None, log=log
        )
        try:
            converter.start()
            released = nbformat.read(root / "lessons" / slug / f"{slug}.ipynb", as_version=4)
        except (SystemExit, Exception) as error:
            raise ReleaseError(f"{slug}: nbgrader could not release it: {error}") from error
        finally:
            shutil.rmtree(root / "autograder", ignore_errors=True)
    return released
