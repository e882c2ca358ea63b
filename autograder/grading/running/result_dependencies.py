"""What a result depends on: it is made again exactly when something of this has changed.

The parts are kept apart, so that a run can say why it grades somebody again. Two more are kept in
words beside them: the limits, and whether there was a sandbox.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from autograder import ROOT, lessons
from autograder.grading.classroom.folders import Course, Handed
from autograder.imports import digest_of, of_lesson
from autograder.sandbox import visible_files
from autograder.settings import COURSE, FILE

# What a run calls each part.
PARTS = {
    "submission": "the submission",
    "notebook": "the solved notebook or its points",
    "checks": "the checks",
    "mistakes": "the named mistakes",
    "checking": "the code that checks",
    "sandbox": "the sandbox",
    "grading": "the code that grades",
    "library": "the library",
    "data": "the data",
}
PLACES = {name: name for name in ("checks", "mistakes", "checking", "sandbox")}
PLACES["inside"] = "sandbox"
GRADING = [f"autograder.grading.execution.{name}" for name in ("assemble", "execute")]


class Dependencies:
    """What the results of one lesson depend on. ``master`` is its solved notebook."""

    def __init__(self, course: Course, lesson: str, master: dict[str, Any]) -> None:
        self._course = course
        cells = [[cell["cell_type"], cell["source"], cell["metadata"]] for cell in master["cells"]]
        self._shared = {**_code(lesson), "notebook": _digest(json.dumps(cells, sort_keys=True))}

    def of(self, handed: Handed) -> dict[str, str]:
        """A digest for each of PARTS, of one submission."""
        submission = self._course.read(handed)
        texts = [[cell.kind, cell.source, cell.grade_id] for cell in submission.cells]
        said = [self._course.timestamp(handed), submission.problem, texts]
        return {**self._shared, "submission": _digest(json.dumps(said))}


def _code(lesson: str) -> dict[str, str]:
    """Digests of the code and the data that decide over a lesson, by part.

    A cell of a student's may import and read all that is in the sandbox.
    """
    top, library = ROOT / "autograder", ROOT / COURSE.library
    copied = [*(top / "inside").rglob("*.py"), *(top / name for name in visible_files.SHARED)]
    seen = {*library.rglob("*.py")} - visible_files.hidden(library, lesson)
    files: dict[str, set[Path]] = {part: set() for part in ("grading", "library", *PLACES.values())}
    for path in {*of_lesson(lessons.name_of(lesson), ROOT, GRADING), *copied, *seen}:
        room = path.relative_to(top).parts[0] if path.is_relative_to(top) else ""
        files[PLACES.get(room, "grading") if room else "library"].add(path)
    files["grading"].add(ROOT / FILE)  # it says from which lesson on a kind of care costs
    files["data"] = {*(ROOT / "data").rglob("*")}
    return {part: digest_of(paths, ROOT) for part, paths in files.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
