"""Check a student's own notebook on their machine, without a sandbox."""

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder import ROOT, cell_metadata, lessons
from autograder.check import check_quietly, refuse_imported
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.failure import not_defined
from autograder.grading.notebook.result import said
from autograder.grading.notebook.submission import below
from autograder.inside.server import describe, one_line
from autograder.inside.server import shell as quiet_shell
from autograder.settings import earned

CELL_SECONDS = 30  # of processor time
PATIENCE = 300  # in all: for what sleeps, or waits for somebody


class NotebookError(ValueError):
    """A file is no notebook of this course; str() is one sentence that says why and what to do."""


@dataclass
class Line:
    """One exercise of the table: points earned, points there are, and what the check said."""

    name: str
    earned: float
    points: float
    message: str = ""
    parts: dict[str, str] = field(default_factory=dict)  # what, got, expected, likely, place, costs
    is_careless: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the answer is right, with or without care; an optional one has 0 points."""
        return self.is_careless or not self.message

    def as_dict(self) -> dict[str, Any]:
        """For a program: name, points, what the check said, and its parts."""
        scores = {"exercise": self.name, "earned": self.earned, "points": self.points}
        return {**scores, "message": self.message, **self.parts}


def check_notebook(path: Path | str, root: Path = ROOT) -> list[Line]:
    """Run the notebook at ``path`` here and check its exercises; returns a Line for each.

    Demonstrations that the student left unchanged are skipped. Raises NotebookError.
    """
    notebook = read_notebook(path)
    released = nbformat.read(_released(path, notebook, root), as_version=4)
    demos = {cell.source for cell in released.cells if cell_metadata.is_demo(cell)}
    graded = [cell for cell in released.cells if cell_metadata.is_check(cell)]
    points = {cell_metadata.exercise(cell): cell_metadata.points(cell) for cell in graded}
    identities = {cell_metadata.grade_id(cell) for cell in graded}
    checks = registry.of_lesson(lessons.name_of(released.metadata.autograder.lesson))
    shell, lines, problems = quiet_shell(), dict[str, Line](), dict[str, str]()
    shell.reset(new_session=False)  # the notebook before may have defined what this one lacks
    shell.user_ns["__spec__"] = None  # as in a kernel: whoever starts a process is asked for it
    is_code = [one.cell_type == "code" for one in notebook.cells]  # prose is no answer
    names = [cell_metadata.grade_id(one) * is_code[n] for n, one in enumerate(notebook.cells)]
    blank = cell_metadata.blank_copies(names, [one.source for one in notebook.cells])
    cells = [one for place, one in enumerate(notebook.cells) if place not in blank]
    early = cell_metadata.early_checks([cell_metadata.grade_id(one) for one in cells])
    for place, cell in enumerate(cells):
        name = cell_metadata.exercise(cell)
        if cell_metadata.grade_id(cell) in identities:
            if place in early:
                continue  # its answer comes below, and so does another check, or the end
            kept = lines.get(name)
            lines[name] = kept or _check(checks[name], points[name], shell, problems, cells, place)
        elif cell.cell_type == "code" and cell.source not in demos:
            problem = _run_cell(shell, cell.source)
            if why := cell_metadata.magic(cell.source) or problem:
                problems[name] = why
    for name in points.keys() - lines.keys():  # the student deleted the check's cell
        lines[name] = _check(checks[name], points[name], shell, problems, cells, len(cells))
    return [lines[name] for name in points]


def read_notebook(path: Path | str) -> NotebookNode:
    """Read a notebook; raises NotebookError for whatever is wrong with the file."""
    path = Path(path)
    if not path.is_file():
        raise NotebookError(f"{path}: there is no such file")
    if path.stat().st_size == 0:
        raise NotebookError(f"{path}: the file is empty; take a new copy from lessons/")
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat raises a dozen classes for one meaning
        reason = str(error).split("\n")[0][:120]
        raise NotebookError(f"{path}: this is not a notebook ({reason})") from None
    kernel = notebook.metadata.get("kernelspec", {})
    if kernel.get("language", "python") != "python":
        raise NotebookError(
            f"{path}: its kernel is {kernel.get('display_name') or kernel.get('name')!r}; "
            "choose Python 3 in JupyterLab and save it"
        )
    return notebook


def _released(path: Path | str, notebook: NotebookNode, root: Path) -> Path:
    """Path of the lesson that the notebook is a copy of, by its metadata or its file name."""
    slug = notebook.metadata.get("autograder", {}).get("lesson") or Path(path).stem
    folder = lessons.handed_out(root)
    try:
        (name,) = lessons.choose([slug], [found.name for found in folder.glob("*_*")])
    except lessons.UnknownLesson:
        raise NotebookError(
            f"{path}: this is no lesson of the course; its file name or metadata should say which"
        ) from None
    return lessons.notebook(folder, "", name)


def _run_cell(shell: Any, source: str) -> str:
    """Run one cell; return '' or what stops it, in one line."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        _time_limit(),
    ):
        result = shell.run_cell(source, store_history=False)
    error = result.error_before_exec or result.error_in_exec
    return f"its cell stops with {one_line(describe(error, source))}" if error else ""


def _check(
    item: registry.Check,
    points: float,
    shell: Any,
    problems: dict[str, str],
    cells: Sequence[NotebookNode],
    place: int,
) -> Line:
    """Judge one answer; ``place`` is that of its check among the ``cells``."""
    if item.name not in shell.user_ns:
        kinds = [(cell_metadata.grade_id(cell), cell.cell_type) for cell in cells]
        missing = below(item.name, cells[place:]) or cell_metadata.why_missing(item.name, kinds)
        return Line(
            item.name, 0, points, str(not_defined(item.name, problems.get(item.name) or missing))
        )
    answer = shell.user_ns[item.name]
    try:
        with _time_limit():
            failure = refuse_imported(item, answer) or check_quietly(item, answer)
    except TimeoutError as error:
        return Line(item.name, 0, points, f"{item.name}: {error}.")
    if failure is None:
        return Line(item.name, points, points)
    if failure.is_stub:
        failure.got = below(item.name, cells[place:])
    failure.points, left = points, earned(points, failure.cost)
    parts = {
        key: str(getattr(failure, key)) for key in ("what", "got", "expected", "likely", "place")
    }
    parts["costs"] = said(str(failure)).costs
    told = {key: text for key, text in parts.items() if text}
    return Line(item.name, left, points, str(failure), told, failure.is_careless)


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Interrupt what takes CELL_SECONDS of processor time, where the system has such an alarm.

    A computer that is busy, or sleeps in between, takes no time away. Who swallows an alarm is
    rung again each second.
    """
    if not hasattr(signal, "SIGPROF"):
        yield
        return
    why = {
        signal.SIGPROF: f"it took more than {CELL_SECONDS} s of processor time",
        signal.SIGALRM: f"it was not done after {PATIENCE} s: does it wait for something?",
    }

    def ring(number: int, _: object) -> None:
        raise TimeoutError(why[signal.Signals(number)])

    before = {one: signal.signal(one, ring) for one in why}
    signal.setitimer(signal.ITIMER_PROF, CELL_SECONDS, 1)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, 1)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        for one, handler in before.items():
            signal.signal(one, handler)
