"""What a worker does with a Task, on this machine or on a cluster."""

import json
import os
import time

import torch

from autograder.grading.execution.check_limits import MachineShort
from autograder.grading.execution.execute import execute
from autograder.grading.execution.task import Graded, Task, WorkerLost, WorkFailed
from autograder.grading.notebook.result import Result
from autograder.inside.limits import Limits
from autograder.sandbox.policy import SandboxRefused
from autograder.sandbox.sandbox import Sandbox

# The sandbox of this worker; at most one, of the lesson graded last.
_boxes: dict[tuple[str, str, Limits, tuple[str, ...], int], Sandbox] = {}


def run(task: Task) -> Graded:
    """Grade ``task.notebook``; keeps a sandbox running for the next one of the same lesson."""
    torch.set_num_threads(1)
    start = time.monotonic()
    notebook = json.loads(task.notebook)
    box = _box(task)
    exercises, doubt = execute(notebook, box, task.care_share)
    result = Result("", task.lesson, exercises, notebook["metadata"]["autograder"]["problem"])
    result.seconds, result.sandbox = round(time.monotonic() - start, 3), box.kind
    result.limits, result.cgroup = task.limits.as_dict(), box.kept_by_group
    result.care_share = task.care_share
    result.doubt = doubt
    return Graded(json.dumps(notebook), result)


def outcome(task: Task) -> Graded | WorkFailed:
    """What ``run`` gives, or why it fails. Raises SandboxRefused, which is no fault of the task."""
    try:
        return run(task)
    except SandboxRefused:
        raise
    except MachineShort as error:
        return WorkerLost(str(error))
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
