"""Build the notebooks: source + library → executed solutions/ → lessons/."""

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

from autograder import ROOT, CourseError
from autograder.building import alt_text
from autograder.building.generate_assignment import release
from autograder.building.lesson import Lesson, find, read
from autograder.building.notebook import make
from autograder.building.source import Cell
from autograder.files import write_aside
from autograder.lessons import notebook

CELL_TIMEOUT = 3600  # seconds: no lesson needs one, but a build without anyone there must end

Progress = Callable[[str, int, int], None]  # called with a lesson, cells done, and cells in all


class BuildError(CourseError):
    """A lesson's solved notebook does not run cleanly; str() names the lesson and the cell."""


@dataclass
class Report:
    """What a build did: files written (or, with check, files that differ), and lessons executed.

    ``leftovers`` are generated notebooks whose source is gone; nobody but their owner deletes them.
    """

    changed: list[Path] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)


def build(
    names: Collection[str] = (),
    check: bool = False,
    root: Path = ROOT,
    progress: Progress | None = None,
) -> Report:
    """Build the lessons that ``names`` select, all if empty; returns a Report.

    With ``check`` nothing is executed and nothing written: ``changed`` lists what differs. Raises
    SourceError, BuildError or ReleaseError before anything of that lesson is written.
    """
    report = Report()
    lessons = [read(path) for path in find(names, root)]
    for lesson in lessons:
        solved = make(lesson)
        path = notebook(root, "solutions", lesson.slug)
        if not _reuse_outputs(solved, path):
            report.executed.append(lesson.slug)
            if not check:
                execute(solved, lesson, progress)
        released = release(solved, lesson.slug)
        _settle(path, solved, check, report)
        _settle(notebook(root, "lessons", lesson.slug), released, check, report)
    known = {path.stem for path in find((), root)}
    generated = sorted([*root.glob("solutions/*/*.ipynb"), *root.glob("lessons/*/*.ipynb")])
    report.leftovers = [path for path in generated if path.parent.name not in known]
    return report


def _settle(path: Path, notebook: NotebookNode, check: bool, report: Report) -> None:
    content = (nbformat.writes(notebook) + "\n").encode()
    if path.is_file() and path.read_bytes() == content:
        return
    report.changed.append(path)
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, content)


def _reuse_outputs(solved: NotebookNode, path: Path) -> bool:
    """Take the outputs of the notebook at ``path`` if nothing they depend on has changed."""
    try:
        old = nbformat.read(path, as_version=4)
        known = old.metadata.autograder
        outputs = {cell.id: cell.outputs for cell in old.cells if cell.cell_type == "code"}
    except Exception:  # missing, damaged or foreign: nbformat raises a dozen classes
        return False
    made = solved.metadata.autograder
    if (known.get("digest"), known.get("outputs")) != (made.digest, _outputs_digest(old)):
        return False
    cells = [cell for cell in solved.cells if cell.cell_type == "code"]
    if [cell.id for cell in cells] != list(outputs):
        return False
    for cell in cells:
        cell.outputs = outputs[cell.id]
    alt_text.describe_outputs(cells)  # the sentence below a plot may be another one
    made["outputs"] = _outputs_digest(solved)
    return True


def _outputs_digest(notebook: NotebookNode) -> str:
    """A digest of all outputs, which shows whether someone ran or edited the notebook since."""
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()[:16]


def execute(solved: NotebookNode, lesson: Lesson, progress: Progress | None = None) -> None:
    """Run the solved notebook in a kernel and keep its outputs, cleaned of all that varies.

    ``progress(slug, done, total)`` is called before each cell and at the end. Raises BuildError
    for a cell that fails or writes to stderr: nbgrader would score it 0.
    """
    total, lines = len(solved.cells), list[int]()

    def begins(cell: NotebookNode, cell_index: int) -> None:
        lines.append(lesson.cells[cell_index].line)
        if progress:
            progress(lesson.slug, cell_index, total)

    metadata = solved.metadata.copy()
    problem = _run_cells(solved, begins)
    if problem:
        place = ":".join([f"source/{lesson.slug}.py", *map(str, lines[-1:])])
        raise BuildError(f"{place}: {problem}")
    if progress:
        progress(lesson.slug, total, total)
    solved.metadata = metadata
    for cell, source in zip(solved.cells, lesson.cells, strict=True):
        if cell.cell_type == "code":
            _clean(cell, lesson, source)
    alt_text.describe_outputs(solved.cells)
    solved.metadata.autograder["outputs"] = _outputs_digest(solved)


def _run_cells(solved: NotebookNode, begins: Callable[..., None]) -> str:
    """Run all cells in a kernel; returns '' or what went wrong in the last cell that began."""
    client = nbclient.NotebookClient(
        solved,
        timeout=CELL_TIMEOUT,
        startup_timeout=CELL_TIMEOUT,
        iopub_timeout=CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        force_raise_errors=True,  # although the cells are tagged to let a student's Run All go on
        coalesce_streams=True,  # else the pieces of printed text vary from run to run
        on_cell_execute=begins,
    )
    environment = {**os.environ, "AUTOGRADER_SEED": "1", "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as folder:
        client.resources = {"metadata": {"path": folder}}
        try:
            # The kernel warns about its transport on stderr, before the first cell.
            client.execute(env=environment, stderr=subprocess.DEVNULL)
        except CellExecutionError as error:
            return f"the cell raises {error.ename}: {error.evalue}"
        except CellTimeoutError:
            return f"the cell takes more than {CELL_TIMEOUT} s"
        except Exception as error:  # a dead kernel, say: nbclient has a class for each
            return f"the kernel stopped: {error}"
    return ""


def _clean(cell: NotebookNode, lesson: Lesson, source: Cell) -> None:
    cell.execution_count = None
    cell.metadata.pop("execution", None)
    place, scored = f"source/{lesson.slug}.py:{source.line}", "which nbgrader scores as 0"
    for output in cell.outputs:
        if output.output_type == "error":  # shown, though the kernel did not call it a failure
            error = f"{output.ename}: {output.evalue}"
            raise BuildError(f"{place}: the cell shows an error, {scored}: {error}")
        if output.output_type == "stream" and output.name == "stderr":
            said = output.text.strip()[:200]
            raise BuildError(f"{place}: the cell writes to stderr, {scored}: {said}")
        if "execution_count" in output:
            output.execution_count = None
