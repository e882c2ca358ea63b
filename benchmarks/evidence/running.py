"""What a process of its own runs: it cannot be found in a module that was started as a program."""

import importlib
import json

import torch


def as_stored(point):
    """A point or a result as the file will hold it."""
    return json.loads(json.dumps(point))


def run_point(lesson, name, point):
    """The result of one point, as the file will hold it."""
    torch.set_num_threads(1)
    module = importlib.import_module(f"benchmarks.evidence.{lesson}")
    return as_stored(module.EXPERIMENTS[name].run(**point))
