"""A run with --regrade: one that was stopped is taken up by the next that is asked for the same."""

import json
from datetime import UTC, datetime
from typing import Any

from attention.provided.files import write_aside
from autograder.grading.classroom.folders import Course

MARKER = "regrading.json"


class Regrading:
    """A run that grades again what is graded, named by the time at which it began.

    A file in class/ keeps the name until the run has ended, and each result says in which it was
    made. ``chosen`` is what was asked for: its lessons, students and sections; whoever asks for
    something else begins anew. A preview is not to ``begin`` it: it asks what the name would be.
    """

    def __init__(self, course: Course, chosen: Any, begin: bool = True) -> None:
        self._path = course.root / "class" / MARKER
        begun = self._begun()
        self.resumed = begun.get("chosen") == chosen
        self.name = begun["name"] if self.resumed else datetime.now(UTC).isoformat(" ")
        if begin and not self.resumed:
            self._path.parent.mkdir(exist_ok=True)
            write_aside(self._path, json.dumps({"chosen": chosen, "name": self.name}).encode())

    def end(self) -> None:
        """All is graded: the next run begins anew."""
        self._path.unlink(missing_ok=True)

    def _begun(self) -> dict[str, Any]:
        """The run that has not ended, or {}."""
        try:
            begun = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return begun if isinstance(begun, dict) and "name" in begun else {}
