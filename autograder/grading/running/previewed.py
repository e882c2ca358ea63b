"""What a preview has graded, kept in a folder of its own until ``autograder grade`` takes it over.

An outcome is kept as those of the class are, with the digests of what it depends on: one that is
half written is none, and one that is outdated is seen to be.
"""

import json
import shutil

from autograder.grading.classroom.folders import PREVIEW, Course, Handed
from autograder.grading.execution.task import Graded
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Result


class Previewed:
    """The outcomes of previews of a course. ``course`` is the one into which they are written."""

    def __init__(self, course: Course) -> None:
        self.course = course.previewed()
        self._folder = course.root / PREVIEW

    def start(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._forget_gradebook()

    def stop(self) -> None:
        """Remove the copy of the gradebook."""
        self._forget_gradebook()
        self.tidy()

    def _forget_gradebook(self) -> None:
        for path in self._folder.glob("gradebook.db*"):  # its journal, too, if it was killed
            path.unlink()

    def kept(self, one: Handed) -> Result | None:
        """The Result of a submission, if a preview has graded it."""
        return self.course.kept(one)

    def outcome(self, one: Handed) -> Graded | None:
        """What a worker gave for a submission, or None where that is gone or damaged."""
        result = self.kept(one)
        try:
            notebook = json.dumps(records.read_notebook(self.course.autograded(one)))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Graded(notebook, result) if result else None

    def drop(self, one: Handed) -> None:
        """Remove what is kept of a submission, the reasons first: the rest is nothing alone."""
        folder = self.course.autograded(one).parent
        if folder.is_dir():
            records.forget(folder)
            shutil.rmtree(folder, ignore_errors=True)

    def tidy(self) -> None:
        """Remove the folder once no outcome in it is left to be taken over."""
        if not any(self._folder.glob(f"results/*/*/{records.REASONS}")):
            shutil.rmtree(self._folder, ignore_errors=True)
