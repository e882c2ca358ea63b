"""Right answers as someone without a GPU writes them: the right values on a CPU, with little care.

They were written from the lessons' texts alone. Each computes what its exercise asks for, on the
CPU and in float32, and each has a carelessness of one kind or of several. Whether a check should
let it pass is for the reader of a refusal to judge: lesson 00 asks for the inputs' device and
dtype, an exercise's own text often does not.

Load them with `of_exercise(name)` or `every()`; both give `Careless` objects.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

KINDS = {
    "device": "makes a tensor without the device of the inputs",
    "dtype": "makes or casts to float32, whatever comes in",
    "numpy": "goes through NumPy where no gradient is asked for",
    "seed": "seeds a generator of its own accord, mostly the global one",
    "plain_numbers": "Python numbers, lists or totals that begin at 0.0 on the way",
    "other_type": "a result or argument of equal value and another type, such as np.int64 for int",
    "in_place": "works in place: on a copy, on a result of its own, or on what was given",
    "extra_axis": "broadcasts with one more axis than is needed",
    "other_order": "the same operations in another order: other rounding, or another layout",
    "module_state": "keeps something in an attribute of the module or in a cache beside it",
    "slow": "the direct way, where the text describes a faster one",
}
_answers: list["Careless"] = []


@dataclass(frozen=True)
class Careless:
    """One answer: ``kinds`` are keys of `KINDS`, ``about`` says how it is written."""

    exercise: str
    name: str
    target: Callable
    kinds: tuple[str, ...]
    about: str
    lesson: str


def careless(exercise, *kinds, how):
    """Register a right answer to ``exercise`` that is careless in these ways."""
    if not kinds or not set(kinds) <= set(KINDS):
        raise ValueError(f"{kinds} are not all among {', '.join(KINDS)}")

    def register(target):
        lesson = target.__module__.rpartition(".")[2][1:3]
        _answers.append(Careless(exercise, target.__name__, target, kinds, how, lesson))
        return target

    return register


def every():
    """All answers, in the order of the lessons."""
    for path in sorted(Path(__file__).parent.glob("l[0-9][0-9]_*.py")):
        importlib.import_module(f"{__name__}.{path.stem}")
    return sorted(_answers, key=lambda answer: answer.lesson)


def of_exercise(exercise):
    """The answers to one exercise."""
    return [answer for answer in every() if answer.exercise == exercise]
