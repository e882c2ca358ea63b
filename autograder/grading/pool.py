"""Workers on this machine: processes that outlive no one and may die at any time."""

import contextlib
import itertools
import multiprocessing
import signal
import sys
import time
import traceback
import types
import warnings
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.forkserver import ensure_running
from typing import Any, Self

from autograder import temporary
from autograder.grading.own_memory import MachineShort
from autograder.grading.task import Graded, Task
from autograder.inside import isolation
from autograder.sandbox.policy import SandboxRefused

TRIES = 2
SPARE_SECONDS = 60  # for the checks' own work, beyond the student's limit
SWEEP_SECONDS = 2.0  # for sandboxes that end a little after their worker

Job = tuple[Any, Task, int]  # a key of the caller's, the task, and which try it is


class WorkFailed(Exception):
    """A task could not be graded although it was tried again; str() says why, ``trace`` where."""

    trace = ""

    @classmethod
    def by(cls, error: Exception) -> Self:
        """That a worker failed with ``error``, in one line."""
        made = cls(" ".join("".join(traceback.format_exception_only(error)).split()))
        made.trace = "".join(traceback.format_exception(error))
        return made


class WorkerLost(WorkFailed):
    """The workers that were given a task ended before its outcome: whose fault it is, none says."""


class Pool:
    """Runs tasks on ``count`` worker processes.

    A worker that dies or hangs over a task is replaced, and the task tried once more.
    """

    def __init__(self, count: int) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["autograder.grading.preload"])
        temporary.for_processes()
        with _without_main():
            ensure_running()  # it imports while the caller still looks for work
        self._count = count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        # Their sandboxes' folders: a killed process removes nothing.
        temporary.sweep(patience=SWEEP_SECONDS)

    def map(self, tasks: Iterable[tuple[Any, Task]]) -> Iterator[tuple[Any, Graded | WorkFailed]]:
        """Yield (key, Graded or WorkFailed) for each (key, task) as it ends, in no fixed order."""
        waiting: Iterator[Job] = ((*pair, 1) for pair in tasks)
        ready: list[Job] = []  # those to be tried again, then some for workers that are soon free
        while self._give_out(waiting, ready):
            ready += itertools.islice(waiting, max(0, self._count - len(ready)))
            ended: list[tuple[Any, Graded | WorkFailed]] = []
            for worker in self._ended():
                assert worker.job is not None
                key, task, tries = worker.job
                outcome = worker.outcome()
                if isinstance(outcome, SandboxRefused):
                    yield from ended
                    raise outcome
                if isinstance(outcome, WorkFailed) and tries < TRIES:
                    ready.insert(0, (key, task, tries + 1))
                else:
                    ended.append((key, outcome))
            self._give_out(waiting, ready)  # nobody waits while the caller writes outcomes down
            yield from ended

    def _give_out(self, waiting: Iterator[Job], ready: list[Job]) -> bool:
        """Give every free worker a job; return whether anyone works."""
        self._workers = [worker for worker in self._workers if worker.alive]
        while self._busy() < self._count:
            job = ready.pop(0) if ready else next(waiting, None)
            if job is None:
                break
            self._free().give(job)
        return self._busy() > 0

    def _busy(self) -> int:
        return sum(worker.job is not None for worker in self._workers)

    def _free(self) -> "_Worker":
        """A worker without a job, a new one if need be."""
        free = next((worker for worker in self._workers if worker.job is None), None)
        if free is None:
            free = _Worker(self._context)
            self._workers.append(free)
        return free

    def _ended(self) -> set["_Worker"]:
        """The workers that have an outcome: an answer, an end, or too long a silence."""
        busy = {worker.connection: worker for worker in self._workers if worker.job}
        ready = wait(list(busy), timeout=1.0)
        late = [worker for worker in busy.values() if worker.late]
        return {*late, *(busy[connection] for connection in ready)}


class _Worker:
    """One worker process and the job it has, a triple (key, task, tries)."""

    def __init__(self, context: Any) -> None:
        self.connection, theirs = context.Pipe()
        self.job: Job | None = None
        self.alive = True
        self._deadline = 0.0
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _without_main():
            self._process.start()
        theirs.close()

    @property
    def late(self) -> bool:
        """Whether the job takes longer than any student can make it."""
        return time.monotonic() > self._deadline

    def give(self, job: Job) -> None:
        """Start a job."""
        self.job = job
        self._deadline = time.monotonic() + job[1].limits.notebook_seconds + SPARE_SECONDS
        with contextlib.suppress(OSError):  # it is dead: outcome will say so
            self.connection.send(job[1])

    def outcome(self) -> Graded | WorkFailed | SandboxRefused:
        """Take the job's outcome: Graded, WorkFailed or SandboxRefused."""
        self.job = None
        try:
            if self.connection.poll():
                return self.connection.recv()
            reason = "a worker that took too long was ended"
        except (EOFError, OSError):
            self._process.join()
            reason = f"its worker was ended {_how(self._process.exitcode)}"
        self.end()
        return WorkerLost(f"{reason}, twice (is this machine short of memory?); grade it again")

    def end(self) -> None:
        """Kill the worker, and with it the sandbox."""
        self.alive = False
        self._process.kill()
        self._process.join()
        self.connection.close()


def _how(status: int | None) -> str:
    """'by SIGKILL', say, from the exit status of a process."""
    if status is None or status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"by signal {-status}"


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Keep multiprocessing from importing the caller's script again in every worker."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(connection: Connection) -> None:
    """A worker's life: grade what comes until nobody is there to ask."""
    from autograder.grading import worker
    from autograder.sandbox.policy import UnprotectedWarning

    warnings.simplefilter("ignore", UnprotectedWarning)  # the main process says so, once
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    isolation.end_with_parent()
    with contextlib.suppress(EOFError, OSError):
        while True:
            received = connection.recv()
            try:
                answer: Graded | Exception = worker.run(received)
            except SandboxRefused as error:
                answer = error
            except MachineShort as error:
                answer = WorkerLost(str(error))
            except Exception as error:
                answer = WorkFailed.by(error)
            connection.send(answer)
    worker.close()
