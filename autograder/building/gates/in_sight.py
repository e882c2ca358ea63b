"""A gate for what a lesson's students can import: none of it answers one of its exercises."""

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from matplotlib import pyplot as plt

from autograder import ROOT
from autograder.building.gates.mutants import Endless, bounded
from autograder.checking.diagnosis.stored_replies import little_memory
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer
from autograder.sandbox import visible_files
from autograder.temporary import Temporary

SECONDS = 0.5  # of CPU that an answer has at an exercise
# What may earn points, by exercise: a function of the library, and why it gives nothing away.
GIVEN: Mapping[str, Mapping[str, str]] = {
    "masked_attention": {
        "attention.experiments.masked_attention.scaled_dot_product_attention": "that of lesson 05, "
        "which its students wrote: it earns the stage in which every query has a key"
    },
    "break_patchify": {
        "attention.multi_head_attention.break_share_heads": "their own answer to another exercise: "
        "by chance, its image is too small to be cut"
    },
}


def gate(
    items: Iterable[registry.Check],
    lesson: str,
    seed: int,
    more: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
) -> Iterator[str]:
    """The functions in sight of a lesson's students that earn points in it, a line each.

    lesson  '02_sequence_to_sequence'
    more    by dotted name, what its release holds beside the library

    Also the reasons in GIVEN that have gone stale.
    """
    candidates = in_sight(lesson) | dict(more)
    with Temporary(prefix="autograder-") as folder, contextlib.chdir(folder), little_memory():
        for item in items:
            earned = set[str]()
            for name, one in list(candidates.items()):
                try:
                    with bounded(SECONDS):
                        if _earns(item, one, seed):
                            earned.add(name)
                except Endless:  # it trains: no exercise takes so long
                    del candidates[name]
                plt.close("all")  # some draw
            for name in sorted(earned - GIVEN.get(item.name, {}).keys()):
                yield f"{item.name}: {name} is in sight of its students, and earns points"
            for name in sorted(GIVEN.get(item.name, {}).keys() - earned):
                yield f"{item.name}: GIVEN names {name}, which earns nothing or is not in sight"


def in_sight(lesson: str) -> dict[str, Callable[..., Any]]:
    """All functions, classes and methods of the library that can be imported, by dotted name.

    They are in the modules that the grading shows, which are more than a release holds.
    """
    library, found = visible_files.LIBRARY, dict[int, tuple[str, Callable[..., Any]]]()
    for path in sorted({*library.rglob("*.py")} - visible_files.hidden(library, lesson)):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            for place, one in _callables(name, vars(importlib.import_module(name))):
                found.setdefault(id(one), (place, one))  # others import it from there
    return dict(found.values())


def _callables(name: str, there: Mapping[str, Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for key, one in there.items():
        if callable(one) and str(getattr(one, "__module__", "")).startswith("attention"):
            yield f"{name}.{key}", one
            if inspect.isclass(one) and not key.startswith("__"):
                methods = {own: getattr(one, own) for own in vars(one) if not own.startswith("__")}
                yield from _callables(f"{name}.{key}", methods)


def _earns(item: registry.Check, target: Callable[..., Any], seed: int) -> bool:
    try:
        failure = run_check(item, LocalAnswer(target), seed, explain=False)
    except SystemExit:
        return False
    return failure is None or failure.cost < 1
