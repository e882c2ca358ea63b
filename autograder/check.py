"""The checks as a notebook calls them: ``from autograder import check; check.softmax(softmax)``.

Each exercise is an attribute of this module. A right answer prints one line, a wrong one raises
CheckFailed, which the notebook shows as four lines: what is wrong, got, expected, likely. For a
right answer that lacks care, what is missing is printed, and what it costs. Where nbgrader grades
without this project's own steps, a part of the points is the check's value, as nbgrader has it.
"""

import contextlib
import functools
import json
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator

import torch

from autograder import ROOT, cell_metadata, lessons, notebook_kernel
from autograder.checking.asking import recordings
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.failure import CheckFailed, imported, not_defined
from autograder.inside.answer import LocalAnswer
from autograder.inside.server import Limited
from autograder.settings import care, earned

PRINTED_LIMIT = 2000
_told: dict[str, str] = {}  # of which kinds of care a note has spoken, and beside which exercise


def __getattr__(name: str) -> Callable[[object], float | None]:
    """Return the check of the exercise ``name`` as a function of the student's answer."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        item = registry.find(name)
    except registry.RegistryError as error:
        raise AttributeError(str(error)) from None
    return functools.partial(_check_or_raise, item)


def preview(name: str, answer: object) -> None:
    """Print what the check of ``name`` says about ``answer``, without failing."""
    failure = check_quietly(registry.find(name), answer)
    print(failure or f"{name}: correct.")


def _check_or_raise(item: registry.Check, answer: object) -> float | None:
    in_notebook = "ipykernel" in sys.modules  # else it is the source, which imports its answers
    if why := notebook_kernel.why_not_there(item.name, answer):
        raise not_defined(item.name, why)
    failure = refuse_imported(item, answer) if in_notebook else None
    failure = failure or check_quietly(item, answer)
    notebook_kernel.judged(item.name, failure is None or failure.is_careless)
    if failure is None:
        print(f"{item.name}: correct.")
        return None
    run_by = os.environ.get("NBGRADER_EXECUTION")
    if run_by == "autograde" and failure.cost < 1 and failure.points:
        print(failure)
        return earned(failure.points, failure.cost)  # a cell's last value is a part of its points
    if not failure.is_careless or failure.cost and run_by == "validate" or failure.cost == 1:
        raise failure  # Validate shows what is missing only where a check fails
    print(failure)
    return None


def _points(item: registry.Check) -> float | None:
    """What an exercise is worth in the course's notebook; None where there is no such notebook."""
    graded = cell_metadata.CHECK + item.name
    for path in lessons.handed_out(ROOT).glob(f"*_{item.lesson}/*.ipynb"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            found = [one for one in cells if cell_metadata.grade_id(one) == graded]
            return cell_metadata.points(found[0]) if found else None
    return None


def refuse_imported(item: registry.Check, answer: object) -> CheckFailed | None:
    """Return a CheckFailed if the answer was imported instead of written in the notebook."""
    module = getattr(answer, "__module__", "__main__")
    return None if module == "__main__" else imported(item.name, module)


def check_quietly(item: registry.Check, answer: object) -> CheckFailed | None:
    """Run the check; print, shortened, what the answer printed. Warnings cost nothing."""
    printed = Limited(PRINTED_LIMIT)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        _uncompiled(),
    ):
        warnings.simplefilter("ignore")
        failure = run_check(item, LocalAnswer(answer), _seed(item), rule=care(), told=_told)
    if failure is not None and failure.cost < 1:
        points = _points(item)
        failure.points = failure.points if points is None else points
    if printed.getvalue():
        print(printed.getvalue().rstrip("\n"))
    if printed.dropped:
        print(f"… {printed.dropped} more characters printed by {item.name} are not shown")
    return failure


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Let what ``torch.compile`` was given run as it is written: as in the grading."""
    if "torch._dynamo" not in sys.modules:  # slow to import, and nothing was compiled
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _seed(item: registry.Check) -> int:
    """AUTOGRADER_SEED to repeat a failure; else a fresh seed, or a recorded one (see there)."""
    fixed = os.environ.get("AUTOGRADER_SEED")
    if fixed:
        return int(fixed)
    kept = recordings.seeds(item) if registry.reference(item) is None else []
    drawn = random.SystemRandom()
    return drawn.choice(kept) if kept else drawn.randrange(1, 10**6)


notebook_kernel.start()
