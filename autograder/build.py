"""Build the notebooks: source + library → executed solutions/ → lessons/."""

import contextlib
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError

from autograder import ROOT, CourseError
from autograder.lesson import find, read
from autograder.notebook import make
from autograder.release import release

CELL_TIMEOUT = 120  # seconds


class BuildError(CourseError):
    """A lesson's solved notebook does not run cleanly; str() names the lesson and the cell."""


@dataclass
class Report:
    """What a build did: files written (or, with check, files that differ), and lessons executed."""

    changed: list[Path] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)


def build(names=(), check=False, root=ROOT, progress=None):
    """Build the lessons that ``names`` select, all if empty; returns a Report.

    With ``check`` nothing is executed and nothing written: ``changed`` lists what differs. Raises
    SourceError, BuildError or ReleaseError before anything of that lesson is written.
    """
    report = Report()
    lessons = [read(path) for path in find(names, root)]
    for lesson in lessons:
        solved = make(lesson)
        path = root / "solutions" / lesson.slug / f"{lesson.slug}.ipynb"
        if not _reuse_outputs(solved, path):
            report.executed.append(lesson.slug)
            if not check:
                execute(solved, lesson, progress)
        student_path = root / "lessons" / lesson.slug / path.name
        _settle(path, solved, check, report)
        _settle(student_path, release(solved, lesson.slug), check, report)
    report.changed += _leftovers(root)
    return report


def _leftovers(root):
    """Generated notebooks whose source is gone."""
    known = {path.stem for path in find((), root)}
    generated = [*root.glob("solutions/*/*.ipynb"), *root.glob("lessons/*/*.ipynb")]
    return [path for path in generated if path.stem not in known]


def _settle(path, notebook, check, report):
    """Write the notebook if the file differs, or only report it."""
    text = nbformat.writes(notebook) + "\n"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    report.changed.append(path)
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(aside, 0o644)  # mkstemp makes files that only their owner may read
        os.replace(aside, path)


def _reuse_outputs(solved, path):
    """Take the outputs of the notebook at ``path`` if nothing they depend on has changed."""
    try:
        old = nbformat.read(path, as_version=4)
    except (OSError, ValueError):
        return False
    if old.metadata.get("autograder", {}).get("digest") != solved.metadata.autograder.digest:
        return False
    outputs = {cell.id: cell.outputs for cell in old.cells if cell.cell_type == "code"}
    for cell in solved.cells:
        if cell.cell_type == "code":
            cell.outputs = outputs.get(cell.id, [])
    return True


def execute(solved, lesson, progress=None):
    """Run the solved notebook in a kernel and keep its outputs, cleaned of all that varies.

    ``progress(slug, done, total)`` is called after each cell. Raises BuildError for a cell that
    fails or writes to stderr: nbgrader would score it 0.
    """
    total = len(solved.cells)

    def ended(cell, cell_index, **_):
        if progress:
            progress(lesson.slug, cell_index + 1, total)

    metadata = solved.metadata.copy()
    client = nbclient.NotebookClient(
        solved,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        on_cell_executed=ended,
    )
    with tempfile.TemporaryDirectory() as folder:
        client.resources = {"metadata": {"path": folder}}
        environment = {**os.environ, "AUTOGRADER_SEED": "1", "PYTHONHASHSEED": "0"}
        try:
            # The kernel warns about its transport there, before the first cell.
            client.execute(env=environment, stderr=subprocess.DEVNULL)
        except CellExecutionError as error:
            raise BuildError(f"{_place(lesson, solved)}: {error.ename}: {error.evalue}") from None
        except Exception as error:  # a dead kernel, a time-out: nbclient has a class for each
            raise BuildError(f"{_place(lesson, solved)}: {error}") from error
    solved.metadata = metadata
    for cell, source in zip(solved.cells, lesson.cells, strict=True):
        if cell.cell_type == "code":
            _clean(cell, lesson, source)


def _place(lesson, solved):
    """The line of the source cell in which execution stopped."""
    for cell, source in zip(solved.cells, lesson.cells, strict=True):
        failed = cell.cell_type == "code" and any(
            out.output_type == "error" for out in cell.outputs
        )
        if failed:
            return f"source/{lesson.slug}.py:{source.line}"
    return f"source/{lesson.slug}.py"


def _clean(cell, lesson, source):
    cell.execution_count = None
    cell.metadata.pop("execution", None)
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            raise BuildError(
                f"source/{lesson.slug}.py:{source.line}: the cell writes to stderr, "
                f"which nbgrader scores as 0: {output.text.strip()[:200]}"
            )
        if "execution_count" in output:
            output.execution_count = None


def run(options):
    """``autograder build``: exit status 0, or 1 with one line for each file or error."""
    from autograder.progress import cells_progress

    with cells_progress() if not options.check else contextlib.nullcontext() as progress:
        try:
            report = build(options.lessons, check=options.check, progress=progress)
        except (SourceError, BuildError) as error:
            print(error)
            return 1
    for path in report.changed:
        print(f"{'differs' if options.check else 'wrote'}  {path.relative_to(ROOT)}")
    if options.check and report.changed:
        print("Generated notebooks do not match their source: run `autograder build`.")
        return 1
    if not report.changed:
        print("Everything is up to date.")
    return 0
