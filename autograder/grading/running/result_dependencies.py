"""What a result depends on: it is made again exactly when some of this has changed.

The parts are kept apart, so that a run can say why it grades somebody again. Two more are kept in
words beside them: the limits, and whether there was a sandbox.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder import ROOT, lessons
from autograder.grading.classroom.folders import Course, Handed
from autograder.imports import digest_of, modules, of_lesson
from autograder.sandbox import visible_files
from autograder.settings import COURSE

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
# Patterns, for a student's cell need not be Python, and a hostile one may be too much for a parser.
FROM = re.compile(
    rf"^[ \t]*from[ \t]+({COURSE.library}[\w.]*)[ \t]+import[ \t]*(\([^)]{{0,2000}}\)|[^\n]*)",
    re.MULTILINE,
)
IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n]*)", re.MULTILINE)


class Dependencies:
    """What the results of one lesson depend on. ``master`` is its solved notebook."""

    def __init__(self, course: Course, lesson: str, master: dict[str, Any]) -> None:
        self._course, self._lesson = course, lesson
        self._cells = [(cell["cell_type"], cell["source"]) for cell in master["cells"]]
        metadata = [cell["metadata"] for cell in master["cells"]]
        self._notebook = _digest(json.dumps([self._cells, metadata], sort_keys=True).encode())
        # Digests of libraries, most of which are the same.
        self._seen: dict[frozenset[Path], dict[str, str]] = {}

    def of(self, handed: Handed) -> dict[str, str]:
        """A digest for each of PARTS, of one submission."""
        submission = self._course.read(handed)
        texts = [[cell.kind, cell.source, cell.grade_id] for cell in submission.cells]
        said = [self._course.timestamp(handed), submission.problem, texts]
        known = {source for kind, source in self._cells}
        written = [text for kind, text, _ in texts if kind == "code" and text not in known]
        own = {name for text in written for name in _imports(text)}
        return {
            **self._code,
            **self._used(frozenset({*self._library, *self._inside(own)})),
            "submission": _digest(json.dumps(said).encode()),
            "notebook": self._notebook,
        }

    @cached_property
    def _outside(self) -> list[Path]:
        """The modules that decide outside the sandbox."""
        return of_lesson(lessons.name_of(self._lesson), ROOT, GRADING)

    @cached_property
    def _code(self) -> dict[str, str]:
        """Digests of the modules of ``autograder`` that decide, by part."""
        top = ROOT / "autograder"
        copied = [*(top / "inside").rglob("*.py"), *(top / name for name in visible_files.SHARED)]
        found = {*self._outside, *copied}  # into the sandbox
        files: dict[str, set[Path]] = {part: set() for part in ("grading", *PLACES.values())}
        for path in found:
            if path.is_relative_to(top):
                files[PLACES.get(path.relative_to(top).parts[0], "grading")].add(path)
        return {part: digest_of(paths, ROOT) for part, paths in files.items()}

    @cached_property
    def _library(self) -> set[Path]:
        """The modules of the library that the lesson and its checks use."""
        sources = [source for kind, source in self._cells if kind == "code"]
        used = self._inside({name for source in sources for name in _imports(source)})
        top = ROOT / COURSE.library
        return {*used, *(path for path in self._outside if path.is_relative_to(top))}

    def _inside(self, names: Iterable[str]) -> list[Path]:
        """The modules that a student's process gets when its cells import ``names``."""
        return modules(names, ROOT, hidden=self._hidden, by_name=True)

    @cached_property
    def _hidden(self) -> set[Path]:
        return visible_files.hidden(ROOT / COURSE.library, self._lesson)

    def _used(self, library: frozenset[Path]) -> dict[str, str]:
        """Digests of these modules, and of data/ where one of them reads it."""
        if library not in self._seen:
            reads = any('"data"' in path.read_text(encoding="utf-8") for path in library)
            data = digest_of((ROOT / "data").rglob("*"), ROOT) if reads else ""
            self._seen[library] = {"library": digest_of(library, ROOT), "data": data}
        return self._seen[library]


def _imports(source: str) -> set[str]:
    """Dotted names of what a cell may import of the library."""
    found = set()
    for start, names in FROM.findall(source):
        found |= {start, *(f"{start}.{name}" for name in re.findall(r"\w+", names))}
    for names in IMPORT.findall(source):
        found |= set(re.findall(rf"\b{COURSE.library}[\w.]*", names))
    return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
