"""Read what a student handed in, whatever it is, and see whether it is of a lesson."""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder import cell_metadata
from autograder.grading.notebook.filenames import original
from autograder.grading.notebook.result import clean

MAX_BYTES = 50 * 2**20
MAX_CELLS = 2000
MAX_CHARS = 2_000_000  # in all cells together, outputs not counted
FOREIGN = "this notebook has none of the lesson's cells or functions"


class Unreadable(Exception):
    """The submission cannot be graded; str() is the sentence that the student reads."""


@dataclass(frozen=True)
class Cell:
    """One cell of a submission: nothing of it but this is ever used."""

    kind: str  # 'code' or 'markdown'
    source: str
    grade_id: str = ""


@dataclass
class Submission:
    """The cells of a submitted notebook, or why there are none; what it says of itself.

    That is its lesson and the version of Python that it was written with, as 3.12, or ''.
    """

    cells: list[Cell] = field(default_factory=list)
    problem: str = ""
    lesson: str = ""
    python: str = ""


def read(path: Path | str, own_folders: int = 0) -> Submission:
    """Read the notebook at ``path``; a Submission with ``problem`` set if that is impossible.

    A sole notebook beside it that a browser renamed is read in its place. So many folders above it
    are the student's too, and may not be links out of there.
    """
    path = Path(path)
    try:
        if any(folder.is_symlink() for folder in path.parents[:own_folders]):
            raise Unreadable("the submission is a link to another folder")
        path = place(path)
        data = read_bytes(path, MAX_BYTES)
        if data is None:
            raise Unreadable(_missing(path))
        return _submission(_value(data, path.name))
    except Unreadable as reason:
        return Submission(problem=clean(str(reason)))
    except Exception as error:  # whatever trips over a student's folder, the class is graded
        return Submission(problem=f"the submission cannot be read: {type(error).__name__}")


def place(path: Path) -> Path:
    """Where the notebook lies that should be at ``path``.

    That is beside it, where the folder's only notebook has the name that a browser or a desktop
    gives to a copy, as in ``NAME (1).ipynb``.
    """
    if not os.path.lexists(path):
        there = list(path.parent.glob("*.ipynb"))
        if len(there) == 1 and original(there[0].name)[0] == path.stem:
            return there[0]
    return path


def is_linked(folder: Path) -> bool:
    """Whether the folder of a submission, or the student's around it, leads elsewhere."""
    return folder.is_symlink() or folder.parent.is_symlink()


def read_bytes(path: Path | str, limit: int) -> bytes | None:
    """The bytes of a plain file; None for anything else: a link, a pipe, a device, too much."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
            return None
        with open(descriptor, "rb", closefd=False) as stream:
            return stream.read(limit)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def parse(notebook: Any) -> Submission:
    """The Submission of a notebook in memory: the bytes of its file, or its value."""
    try:
        value = _value(notebook, "it") if isinstance(notebook, bytes) else notebook
        return _submission(value)
    except Unreadable as reason:
        return Submission(problem=clean(str(reason)))


def _submission(notebook: Any) -> Submission:
    cells = _cells(notebook)
    said = cell_metadata.notes(notebook, "autograder").get("lesson")
    lesson = clean(said)[:80] if isinstance(said, str) else ""
    version = cell_metadata.notes(notebook, "language_info").get("version")
    python = re.match(r"\d{1,3}\.\d{1,3}", version) if isinstance(version, str) else None
    return Submission(cells, lesson=lesson, python=python[0] if python else "")


def _value(data: bytes, name: str) -> Any:
    if not data.strip():
        raise Unreadable(f"{name} is empty")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Unreadable(f"{name} is not a notebook: it is not valid JSON") from None


def _missing(path: Path) -> str:
    if path.is_file() and not path.is_symlink():
        larger = path.stat().st_size > MAX_BYTES
        what = f"is larger than {MAX_BYTES >> 20} MiB" if larger else "cannot be read"
        return f"{path.name} {what}"
    if os.path.lexists(path):
        return f"{path.name} is not a plain file"
    others = sorted(other.name for other in path.parent.glob("*.ipynb") if other.is_file())
    if others:
        return f"there is no {path.name}, only {others[0]}: it must keep its name"
    return f"there is no {path.name} in the submission"


def _cells(notebook: Any) -> list[Cell]:
    if not isinstance(notebook, dict) or "nbformat" not in notebook:
        raise Unreadable("the file is JSON, but not a notebook")
    if notebook["nbformat"] != 4:
        raise Unreadable(
            f"the notebook is of format {str(notebook['nbformat'])[:20]}: "
            "save it anew with JupyterLab, in format 4"
        )
    _refuse_other_language(notebook)
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise Unreadable("the notebook has no list of cells")
    if len(cells) > MAX_CELLS:
        raise Unreadable(f"the notebook has more than {MAX_CELLS} cells")
    found = [cell for item in cells for cell in _cell(item)]
    if sum(len(cell.source) for cell in found) > MAX_CHARS:
        raise Unreadable(f"the notebook's cells hold more than {MAX_CHARS:,} characters")
    return found


def _refuse_other_language(notebook: dict[str, Any]) -> None:
    kernel = cell_metadata.notes(notebook, "kernelspec")
    language = str(kernel.get("language") or "python")
    if language.lower() != "python":
        name = str(kernel.get("display_name") or kernel.get("name") or language)
        raise Unreadable(f"the notebook's kernel is {name[:40]}, not Python")


def _cell(item: Any) -> Iterator[Cell]:
    """The cell, or nothing where ``item`` is none."""
    if not isinstance(item, dict):
        return
    source = item.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    if not isinstance(source, str) or item.get("cell_type") not in ("code", "markdown", "raw"):
        return
    yield Cell(
        "code" if item["cell_type"] == "code" else "markdown",
        source.encode("utf-8", "replace").decode(),  # half a surrogate pair cannot be written
        cell_metadata.grade_id(item),
    )


def is_of(submission: Submission, master: Mapping[str, Any]) -> bool:
    """Whether a submission has any cell or function of the lesson with the solved notebook."""
    known = [cell for cell in master["cells"] if cell_metadata.is_known(cell)]
    cells = {cell_metadata.grade_id(cell) for cell in known}
    asked = {cell_metadata.exercise(cell) for cell in known if cell_metadata.is_solution(cell)}
    return bool(asked & defined(submission)) or any(
        cell.grade_id in cells for cell in submission.cells
    )


def defined(submission: Submission) -> set[str]:
    """The names of all functions and classes that a submission's code defines."""
    code = (cell.source for cell in submission.cells if cell.kind == "code")
    return {name for source in code for name in cell_metadata.DEFINED.findall(source)}


def below(name: str, cells: Iterable[Mapping[str, Any]]) -> str:
    """What is said of an answer that stands in one of the ``cells`` below its check, or ''."""
    found = (cell["source"] for cell in cells if cell["cell_type"] == "code")
    if any(name in cell_metadata.DEFINED.findall(source) for source in found):
        return "a definition below the check: cells are run from top to bottom, so move it up"
    return ""


def foreign(submission: Submission, master: Mapping[str, Any]) -> str:
    """Why a submission is no notebook of the lesson, a sentence for its author, or ''."""
    if submission.problem or is_of(submission, master):
        return ""
    if not any(cell.source.strip() for cell in submission.cells):
        return "the notebook is empty"
    own = master["metadata"].get("autograder", {}).get("lesson")
    other = submission.lesson if submission.lesson != own else ""
    return f"{FOREIGN}{f': it says that it is of {other}' if other else ''}"
