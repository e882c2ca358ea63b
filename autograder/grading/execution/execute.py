"""Grade an assembled notebook: the student's cells run inside, the checks out here.

``execute`` does it in a sandbox; ``run`` is what a worker does with a Task, here or on a cluster.
"""

import contextlib
import functools
import json
import os
import random
import sys
import time
import warnings
from typing import Any

import torch

from autograder import cell_metadata
from autograder.checking.asking.right_answer import asked
from autograder.checking.run_check import OutOfOwnTime, run_check
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.failure import CheckFailed, imported, not_defined
from autograder.grading.execution.assemble import error_output
from autograder.grading.execution.check_limits import OwnTime, Waiting, own_memory
from autograder.grading.execution.task import Graded, Task, WorkFailed
from autograder.grading.notebook.result import Exercise, Result, clean
from autograder.grading.notebook.submission import below
from autograder.inside.limits import Limits, out_of_memory
from autograder.inside.server import one_line
from autograder.sandbox.bubblewrap import SandboxRefused
from autograder.sandbox.clock import Allowance, OutOfTime
from autograder.sandbox.process import StudentLost, StudentProcess
from autograder.sandbox.sandbox import Sandbox
from autograder.settings import USUAL, Care, earned

REASON_CHARS = 4000  # a student's own words may stand in a reason: they must not fill a report
# What newer Python, or older, may have and this one has not.
OF_ANOTHER_PYTHON = ("SyntaxError", "ImportError", "ModuleNotFoundError", "AttributeError")
OUT_OF_TIME = "the notebook used up its time"
# The sandbox of this worker; at most one, of the lesson graded last.
_boxes: dict[tuple[str, str, Limits, tuple[str, ...], int], Sandbox] = {}


def execute(
    notebook: dict[str, Any], sandbox: Sandbox, care: Care = USUAL
) -> tuple[list[Exercise], str]:
    """Run ``notebook`` (see ``assemble``) and fill in its outputs; return its exercises.

    Whatever goes wrong costs only the exercise it happened in. The second value is '' or says what
    may be the machine's doing: then the notebook is to be graded once more, when nothing else is.
    """
    problem = notebook["metadata"]["autograder"]["problem"]
    session = _Session(sandbox, care, notebook["metadata"]["autograder"].get("python", ""))
    graded, taken = [], dict[str, float]()
    for place, cell in enumerate(notebook["cells"]):
        run, start = cell_metadata.run(cell), time.monotonic()
        if run == cell_metadata.INSIDE and not problem:
            cell["outputs"] = session.run(cell)
        elif run == cell_metadata.OUTSIDE:
            name, points = cell_metadata.exercise(cell), cell_metadata.points(cell)
            failure = CheckFailed.of(name, problem) if problem else session.check(name)
            if failure is not None:
                failure.points = points
                if failure.is_stub or failure.got == cell_metadata.MISSING:
                    failure.got = below(name, notebook["cells"][place:]) or failure.got
            graded.append(_exercise(name, points, failure, bool(problem)))
            cell["outputs"] = _verdict(graded[-1])
        name = cell_metadata.exercise(cell)
        taken[name] = taken.get(name, 0.0) + time.monotonic() - start
    sandbox.stop()
    for one in graded:
        one.seconds = round(taken[one.name], 3)
    return graded, session.doubt


@functools.cache
def _seed(name: str) -> int:
    """The seed of an exercise's check in this process: drawn once, for what it gives is kept."""
    return random.SystemRandom().randrange(1, 10**6)


class _Session:
    """A student's process that is replaced when it is lost."""

    def __init__(self, sandbox: Sandbox, care: Care = USUAL, python: str = "") -> None:
        self._sandbox, self._care, self._python = sandbox, care, python
        self._limits = sandbox.limits
        self._left = Allowance(self._limits.notebook_seconds, self._limits.patience)
        self.doubt = ""  # why the machine, and not the student, may be to blame for a loss
        self._process: StudentProcess | None = None
        self._sources: list[str] = []  # of the cells that define the namespace now, in order
        self._mishaps: dict[str, str] = {}  # by exercise: why its cell defines nothing
        self._room = self._limits.notebook_chars

    def run(self, cell: dict[str, Any]) -> list[dict[str, Any]]:
        """Run one of the student's cells; return its outputs."""
        name = cell_metadata.exercise(cell)
        if missing := cell_metadata.missing(cell):
            self._mishaps[name] = missing
        try:
            outputs = self._ready().run(cell["source"])
        except StudentLost as lost:
            self._lose(lost)
            self._mishaps[name] = f"its cell had to be stopped: {lost}"
            return [error_output("Stopped", [clean(f"This cell had to be stopped: {lost}.")])]
        self._sources.append(cell["source"])
        if "error" in outputs:
            stops = "its cell stops with " + clean(one_line(outputs["error"]))
            self._mishaps[name] = stops + self._versions(outputs["error"]["name"])
        if magic := cell_metadata.magic(cell["source"]):
            self._mishaps[name] = magic
        return self._kept(_notebook_outputs(outputs))

    def _versions(self, kind: str) -> str:
        """Both versions of Python, where an error of this kind may come of their difference."""
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        if kind not in OF_ANOTHER_PYTHON or self._python in ("", own):
            return ""
        return f" (the notebook was run with Python {self._python}; here it is Python {own})"

    def _kept(self, outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The outputs of a cell, as long as there is room for them in the graded notebook."""
        self._room -= sum(len(str(output)) for output in outputs)
        if self._room >= 0 or not outputs:
            return outputs
        return [_stream("stderr", "The notebook prints too much: this output is not shown.\n")]

    def check(self, name: str) -> CheckFailed | None:
        """Run the check of an exercise; return None, or the CheckFailed that the student reads."""
        try:
            return self._judge(registry.find(name))
        except StudentLost as lost:
            self._lose(lost)
            return CheckFailed.of(name, "your code had to be stopped", str(lost))
        except OutOfOwnTime:
            allowed = self._limits.exceeded("own_seconds")
            return CheckFailed.of(name, "the check takes too long over your results", allowed)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            allowed = self._limits.exceeded("own_bytes")
            return CheckFailed.of(
                name, "the check takes too much memory over your results", allowed
            )

    def _judge(self, item: registry.Check) -> CheckFailed | None:
        name, limits, process = item.name, self._limits, self._ready()
        process.allow(limits.check_seconds)
        found = process.resolve(name)
        if found is None:
            why = self._mishaps.get(name) or cell_metadata.defines_another(name)
            return not_defined(name, why)
        answer, module = found
        if module != "__main__":
            return imported(name, module)
        seed = _seed(name)
        asked(item, seed)  # what the right answer replies takes no room of this one's
        bounded = own_memory(limits.own_bytes), OwnTime(limits.own_seconds)
        with warnings.catch_warnings(), bounded[0], bounded[1] as clock:
            warnings.simplefilter("ignore")
            return run_check(item, Waiting(answer, clock), seed, rule=self._care)

    def _ready(self) -> StudentProcess:
        """The student's process; a new one has run the earlier cells, save those that end it."""
        if self._process is not None and self._process.lost:
            self._process = None  # while a failing answer was asked on
        while self._process is None:
            if self._left.spent:
                raise StudentLost(OUT_OF_TIME)
            process, sources, self._sources = self._start(), self._sources, []
            try:
                for source in sources:
                    process.run(source)
                    self._sources.append(source)
                self._process = process
            except StudentLost as lost:
                self._lose(lost)
                self._sources += sources[len(self._sources) + 1 :]
        return self._process

    def _start(self) -> StudentProcess:
        """A new process, whose start counts as waiting: a notebook may lose as many as it likes."""
        start = time.monotonic()
        process = self._sandbox.start(self._left)
        with contextlib.suppress(OutOfTime):  # whoever asks next is told
            self._left.charge(0.0, 0.0, time.monotonic() - start)
        return process

    def _lose(self, lost: StudentLost) -> None:
        self._process = None
        if lost.doubtful:
            self.doubt = self.doubt or str(lost)


def _exercise(name: str, points: float, failure: CheckFailed | None, unread: bool) -> Exercise:
    """What an exercise earned. A cell that is missing is as open as one that was left alone."""
    if failure is None:
        return Exercise(name, points, points)
    reason = clean(str(failure))[:REASON_CHARS]
    made = Exercise(name, earned(points, failure.cost), points, reason, failure.is_careless)
    made.lost = list(failure.lost)
    made.is_open = unread or failure.is_stub or failure.got == cell_metadata.MISSING
    return made


def _verdict(made: Exercise) -> list[dict[str, Any]]:
    """The outputs of a check.

    A number as a cell's last value is what nbgrader takes for a part of its points.
    """
    if not made.reason:
        return [_stream("stdout", f"{made.name}: correct.\n")]
    if not made.score:
        return [error_output("CheckFailed", made.reason.splitlines())]
    return [_stream("stdout", f"{made.reason}\n"), _shown(f"{made.score:.10g}")]


def _stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def _shown(text: str) -> dict[str, Any]:
    """A cell's last value."""
    plain = {"data": {"text/plain": text}, "metadata": {}}
    return {"output_type": "execute_result", "execution_count": None, **plain}


def _notebook_outputs(outputs: dict[str, Any]) -> list[dict[str, Any]]:
    names = [name for name in ("stdout", "stderr") if outputs[name]]
    made = [_stream(name, clean(outputs[name])) for name in names]
    if outputs["shown"]:
        made.append(_shown(clean(outputs["shown"])))
    if "error" in outputs:
        error = outputs["error"]
        head = clean(f"{error['name']}: {error['message']}").splitlines()
        lines = ["  " + clean(line) for line in error["lines"]]
        made.append(error_output(clean(error["name"]), [*head, *lines]))
    return made


def run(task: Task) -> Graded:
    """Grade ``task.notebook``; keeps a sandbox running for the next one of the same lesson."""
    torch.set_num_threads(1)
    start = time.monotonic()
    notebook = json.loads(task.notebook)
    box = _box(task)
    exercises, doubt = execute(notebook, box, task.care)
    result = Result("", task.lesson, exercises, notebook["metadata"]["autograder"]["problem"])
    result.seconds, result.sandbox = round(time.monotonic() - start, 3), box.kind
    result.limits = task.limits.as_dict()
    result.care = task.care
    result.doubt = doubt
    return Graded(json.dumps(notebook), result)


def outcome(task: Task) -> Graded | WorkFailed:
    """What ``run`` gives, or why it fails. Raises SandboxRefused, which is no fault of the task."""
    try:
        return run(task)
    except SandboxRefused:
        raise
    except Exception as error:
        return WorkFailed.by(error)


def close() -> None:
    """End this worker's sandbox."""
    while _boxes:
        _boxes.popitem()[1].close()


def _box(task: Task) -> Sandbox:
    key = task.lesson, task.sandbox, task.limits, task.secrets, os.getpid()
    if key not in _boxes:
        close()
        _boxes[key] = Sandbox(task.lesson, task.sandbox, task.limits, task.secrets)
    return _boxes[key]
