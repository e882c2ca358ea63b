"""The unit of work: grade one assembled notebook. The same on this machine and on a cluster."""

import os
import time
from dataclasses import dataclass

import nbformat
import torch

from autograder.grading.execute import execute
from autograder.sandbox.limits import DEFAULT, Limits
from autograder.sandbox.sandbox import Sandbox

_boxes = {}  # the sandbox of this worker; at most one, of the lesson graded last


@dataclass(frozen=True)
class Task:
    """An assembled notebook, as JSON text, and how to run it."""

    lesson: str
    notebook: str
    sandbox: str = "required"
    limits: Limits = DEFAULT


@dataclass(frozen=True)
class Graded:
    """The notebook with its outputs, its exercises as plain values, and the seconds it took."""

    notebook: str
    exercises: list
    seconds: float


def run(task):
    """Grade ``task.notebook``; keeps a sandbox running for the next one of the same lesson."""
    torch.set_num_threads(1)
    start = time.monotonic()
    notebook = nbformat.reads(task.notebook, as_version=4)
    exercises = execute(notebook, _box(task))
    seconds = round(time.monotonic() - start, 3)
    return Graded(nbformat.writes(notebook), exercises, seconds)


def close():
    """End this worker's sandbox."""
    while _boxes:
        _boxes.popitem()[1].close()


def _box(task):
    key = task.lesson, task.sandbox, task.limits, os.getpid()
    if key not in _boxes:
        close()
        _boxes[key] = Sandbox(task.lesson, task.sandbox, task.limits)
    return _boxes[key]
