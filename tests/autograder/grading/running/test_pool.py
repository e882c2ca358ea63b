"""A pool outlives its workers: one that dies or hangs is replaced, and all others are graded."""

import dataclasses
import multiprocessing
import os
import signal
import time
from types import SimpleNamespace

import pytest

from autograder.grading.execution.task import Graded, Task, WorkerLost
from autograder.grading.notebook.result import Result
from autograder.grading.running import pool
from autograder.inside.limits import DEFAULT

GOOD, HANGS = "good", "hangs"  # notebooks
DIES, REAL_TIME = signal.SIGKILL, 40  # notebooks that end their worker so
HOPELESS = dataclasses.replace(DEFAULT, patience=0.0)


def serve(connection):
    """A worker's life without the grading: what it does with a task, its notebook says."""
    while True:
        task = connection.recv()
        if isinstance(task.notebook, int):
            os.kill(os.getpid(), task.notebook)
        time.sleep(3 * (task.notebook == HANGS))
        connection.send(Graded(task.notebook, Result("", task.lesson)))


@pytest.fixture
def forked(monkeypatch):
    """Let the workers be copies of this process, which import nothing, and be looked at often."""
    context = multiprocessing.get_context("fork")
    monkeypatch.setattr(pool, "multiprocessing", SimpleNamespace(get_context=lambda _: context))
    monkeypatch.setattr(pool, "ensure_running", lambda: None)
    monkeypatch.setattr(pool, "_serve", serve)
    monkeypatch.setattr(pool, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(pool, "SPARE_SECONDS", 0.1)


@pytest.mark.parametrize(
    ("notebook", "limits", "why"),
    [
        (DIES, DEFAULT, "its worker was ended by SIGKILL, twice"),
        (REAL_TIME, DEFAULT, "its worker was ended by signal 40, twice"),
        (HANGS, HOPELESS, "a worker that took too long was ended, twice"),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_is_lost_takes_nobody_along(forked, notebook, limits, why, count):
    given = [(name, Task("", GOOD)) for name in ("ada", "cleo", "dan")]
    given.insert(1, ("ben", Task("", notebook, limits=limits)))
    with pool.Pool(count) as workers:
        found = dict(workers.map(given))
        assert not [worker for worker in workers._workers if worker.job]
    lost = found.pop("ben")
    assert isinstance(lost, WorkerLost) and why in str(lost)
    assert found == dict.fromkeys(("ada", "cleo", "dan"), Graded(GOOD, Result("", "")))
