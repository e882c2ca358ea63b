"""The unit of work, the same on this machine and on a cluster: one assembled notebook."""

import traceback
from dataclasses import dataclass, replace
from typing import Any, Self

from autograder.grading.notebook.result import Result, clean, told
from autograder.inside.limits import DEFAULT, Limits
from autograder.settings import USUAL, Care


@dataclass(frozen=True)
class Task:
    """An assembled notebook, as JSON text, and how to run it."""

    lesson: str
    notebook: str
    sandbox: str = "required"
    limits: Limits = DEFAULT
    secrets: tuple[str, ...] = ()  # paths of the class's data, which no student's code may see
    care: Care = USUAL


@dataclass(frozen=True)
class Graded:
    """The notebook with its outputs, as JSON text, and its Result, as yet nobody's."""

    notebook: str
    result: Result


class WorkFailed(Exception):
    """A task could not be graded although it was tried again; str() says why, ``trace`` where."""

    trace = ""

    @classmethod
    def by(cls, error: Exception) -> Self:
        """That the grader failed with ``error``."""
        made = cls(told(error))
        made.trace = clean("".join(traceback.format_exception(error)))
        return made


class WorkerLost(WorkFailed):
    """The workers that were given a task ended before its outcome: whose fault it is, none says."""


class Tries:
    """Decides which outcomes stand, and which tasks are to be tried again, alone."""

    def __init__(self) -> None:
        self.again: list[tuple[Any, Task]] = []  # (key, task)
        self._before: dict[int, str] = {}  # by the task's id: what the first try came to

    def stands(
        self, key: Any, task: Task, outcome: Graded | WorkFailed
    ) -> Graded | WorkFailed | None:
        """The outcome to be kept; None where it may be the machine's doing: it goes into ``again``.

        Where the machine fails a task twice, and the second time without other work of ours beside
        it, nobody loses points: it is not graded.
        """
        trouble = str(outcome) if isinstance(outcome, WorkFailed) else outcome.result.doubt
        first = self._before.pop(id(task), None)
        if first is None:
            if not trouble:
                return outcome
            self._before[id(task)] = trouble
            self.again.append((key, task))
            return None
        if isinstance(outcome, WorkFailed):
            return outcome
        if trouble:
            return WorkerLost(
                f"this machine had too little time or memory for it, twice: {trouble}; grade it "
                "again when less runs here"
            )
        return replace(outcome, result=replace(outcome.result, doubt=first))
