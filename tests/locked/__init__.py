"""Answers that nobody who writes checks or mistakes has seen: they measure how true the grading is.

They were written from the lessons' texts alone. Whoever changes a check, a mistake or a diagnosis
does not read them: `python -m tests.locked` measures with them, and tells no more than it must.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

KINDS = (
    "value",
    "shape",
    "dtype",
    "device",
    "gradient",
    "state",
    "extreme",
    "size",
    "crash",
    "error",
    "type",
)
_answers: dict[str, list["Locked"]] = {}


@dataclass(frozen=True)
class Locked:
    """One answer. ``about`` says what is wrong with it, or how a right one is written."""

    exercise: str
    name: str
    target: Callable
    is_right: bool
    about: str
    kind: str = ""


def _keep(exercise, is_right, about, kind=""):
    def register(target):
        found = Locked(exercise, target.__name__, target, is_right, about, kind)
        _answers.setdefault(exercise, []).append(found)
        return target

    return register


def wrong(exercise, *, cause, kind="value"):
    """Register a wrong answer to ``exercise``; ``cause`` says truly what is wrong with it."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is none of {', '.join(KINDS)}")
    return _keep(exercise, False, cause, kind)


def right(exercise, *, how):
    """Register a right answer to ``exercise`` that is written in another way."""
    return _keep(exercise, True, how)


def of_exercise(exercise, package=__name__):
    """The answers to one exercise: the first set's, or those of ``tests.locked.second``."""
    for folder in importlib.import_module(package).__path__:
        for path in Path(folder).glob("[a-z]*.py"):
            importlib.import_module(f"{package}.{path.stem}")
    known = _answers.get(exercise, ())
    return [one for one in known if one.target.__module__.rpartition(".")[0] == package]
