"""Workers on this machine: processes that outlive no one and may die at any time."""

import contextlib
import gc
import itertools
import multiprocessing
import signal
import sys
import time
import types
import warnings
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.forkserver import ensure_running
from typing import Any, Self

from autograder import temporary
from autograder.grading.execution.task import Graded, Task, Tries, WorkerLost, WorkFailed
from autograder.inside import isolation
from autograder.sandbox.bubblewrap import SandboxRefused

SPARE_SECONDS = 600  # for the checks' own work, beyond what students' code is waited for
LOOK_SECONDS = 1.0
SWEEP_SECONDS = 2.0  # for sandboxes that end a little after their worker

Job = tuple[Any, Task]  # a key of the caller's, and the task


class Pool:
    """Runs tasks on ``count`` worker processes.

    A worker that dies or hangs over a task is replaced. What may be the machine's doing is tried
    once more when all else is done, by one worker alone.
    """

    def __init__(self, count: int) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["autograder.grading.execution.execute"])
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
        tries = Tries()
        yield from self._round(iter(tasks), self._count, tries)
        yield from self._round(iter(tries.again), 1, tries)

    def _round(
        self, waiting: Iterator[Job], count: int, tries: Tries
    ) -> Iterator[tuple[Any, Graded | WorkFailed]]:
        """Let ``count`` workers do what waits."""
        ready: list[Job] = []  # for workers that are soon free
        while self._give_out(waiting, ready, count):
            ready += itertools.islice(waiting, max(0, count - len(ready)))
            ended: list[tuple[Any, Graded | WorkFailed]] = []
            for worker in self._ended():
                assert worker.job is not None
                key, task = worker.job
                outcome = worker.outcome()
                if isinstance(outcome, SandboxRefused):
                    yield from ended
                    raise outcome
                kept = tries.stands(key, task, outcome)
                if kept is not None:
                    ended.append((key, kept))
            self._give_out(waiting, ready, count)  # nobody waits while the caller writes them down
            yield from ended

    def _give_out(self, waiting: Iterator[Job], ready: list[Job], count: int) -> bool:
        """Give every free worker a job; return whether anyone works."""
        self._workers = [worker for worker in self._workers if worker.alive]
        while self._busy() < count:
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
        start = time.monotonic()
        ready = wait(list(busy), timeout=LOOK_SECONDS)
        waited = min(time.monotonic() - start, 2 * LOOK_SECONDS)  # more is a machine that slept
        late = [worker for worker in busy.values() if worker.late(waited)]
        return {*late, *(busy[connection] for connection in ready)}


class _Worker:
    """One worker process and the job it has, a pair (key, task)."""

    def __init__(self, context: Any) -> None:
        self.connection, theirs = context.Pipe()
        self.job: Job | None = None
        self.alive = True
        self._patience = 0.0  # seconds that its outcome is still waited for
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _without_main():
            self._process.start()
        theirs.close()

    def late(self, waited: float) -> bool:
        """Whether the job takes longer than any student can make it, after so much more waiting."""
        self._patience -= waited
        return self._patience < 0

    def give(self, job: Job) -> None:
        self.job = job
        limits = job[1].limits
        self._patience = limits.patience * limits.notebook_seconds + SPARE_SECONDS
        with contextlib.suppress(OSError):  # it is dead: outcome will say so
            self.connection.send(job[1])

    def outcome(self) -> Graded | WorkFailed | SandboxRefused:
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
    from autograder.grading.execution import execute
    from autograder.sandbox.bubblewrap import UnprotectedWarning

    warnings.simplefilter("ignore", UnprotectedWarning)  # the main process says so, once
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    isolation.end_with_parent()
    gc.freeze()  # a collection would copy every page that it shares with the other workers
    with contextlib.suppress(EOFError, OSError):
        while True:
            received = connection.recv()
            try:
                connection.send(execute.outcome(received))
            except SandboxRefused as error:
                connection.send(error)
    execute.close()
