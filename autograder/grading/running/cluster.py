"""Workers on other machines: the same work, sent to a Dask cluster."""

import itertools
import logging
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Self

from autograder import CourseError
from autograder.grading.execution.task import Graded, Task, Tries, WorkerLost, WorkFailed
from autograder.sandbox.sandbox import SandboxRefused

CONNECT_SECONDS = 120
IN_FLIGHT = 3  # tasks sent ahead for each thread of the cluster, so that none waits for the next

_one_at_a_time = threading.Lock()  # a worker process has one sandbox, however many threads


class ClusterError(CourseError):
    """The cluster cannot be used; str() says why and what to do."""


class Cluster:
    """Runs tasks on the Dask cluster whose scheduler is at ``address``, as 'tcp://host:8786'.

    A task whose worker dies is given to another by the scheduler. Raises ClusterError.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError("--cluster needs Dask: pip install distributed") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we say it in one sentence
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {address} ({type(error).__name__}): start one with "
                "`dask scheduler`, and a `dask worker` on every machine"
            ) from None
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            self._client.close()
            raise ClusterError(
                f"the cluster at {address} has no worker: start `dask worker {address}`"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def map(self, tasks: Iterable[tuple[Any, Task]]) -> Iterator[tuple[Any, Graded | WorkFailed]]:
        """Yield (key, Graded or WorkFailed) for each (key, task) as it ends, in no fixed order."""
        from distributed import as_completed

        waiting, tries = iter(tasks), Tries()
        jobs: dict[Any, tuple[Any, Task]] = {}
        ended = as_completed(loop=self._client.loop, raise_errors=False)

        def send(count: int) -> None:
            for key, task in itertools.islice(waiting, count):
                future = self._client.submit(grade, task, pure=False)
                jobs[future] = key, task
                ended.add(future)

        send(IN_FLIGHT * max(1, sum(self._client.nthreads().values())))
        for future in ended:
            key, task = jobs.pop(future)
            kept = tries.stands(key, task, _outcome(future))
            if kept is not None:
                yield key, kept
            send(1)
        for key, task in tries.again:
            kept = tries.stands(key, task, _outcome(self._client.submit(grade, task, pure=False)))
            assert kept is not None  # no task is tried three times
            yield key, kept


def grade(task: Task) -> Graded | WorkFailed:
    """Grade a task in a worker of the cluster."""
    from autograder.grading.execution import execute

    with _one_at_a_time:
        return execute.outcome(task)


def _outcome(future: Any) -> Graded | WorkFailed:
    """What an ended task gave; waits again where a worker was lost with what it had done."""
    try:
        return future.result()
    except SandboxRefused:
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            return WorkerLost("each worker of the cluster that had it was ended; grade it again")
        return WorkFailed.by(error)
