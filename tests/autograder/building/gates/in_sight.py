"""What a lesson's students can import is tried as an answer to each of its exercises.

As a program, with '02_sequence_to_sequence' and a file, it writes into the file what earns points:
in a process of its own, for what is tried may read from a terminal or close what is open.
"""

import ast
import contextlib
import importlib
import inspect
import sys
from pathlib import Path

from matplotlib import pyplot as plt

from autograder import ROOT
from autograder.building.gates.mutants import Endless, bounded
from autograder.building.lesson import read
from autograder.checking.diagnosis.stored_replies import little_memory
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer
from autograder.releasing.shown_mistakes import shown_mistakes
from autograder.sandbox import visible_files
from autograder.temporary import Temporary

SECONDS = 0.5  # of CPU that an answer has at an exercise
# What may earn points, by exercise: a function of the library, and why it gives nothing away.
GIVEN = {
    "masked_cross_entropy": {
        "attention.provided.stand_ins.token_loss": "F.cross_entropy, which its text names"
    },
}


def gate(items, candidates, seed):
    """Those of ``candidates``, by dotted name, that earn points, and the reasons gone stale."""
    candidates = dict(candidates)
    with Temporary(prefix="autograder-") as folder, contextlib.chdir(folder), little_memory():
        for item in items:
            earned = set()
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


def in_sight(lesson):
    """All functions, classes and methods of the library that can be imported, by dotted name.

    They are in the modules that the grading shows, which are more than a release holds.
    """
    library, found = visible_files.LIBRARY, {}
    for path in sorted({*library.rglob("*.py")} - visible_files.hidden(library, lesson)):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            for place, one in _callables(name, vars(importlib.import_module(name))):
                found.setdefault(id(one), (place, one))  # others import it from there
    return dict(found.values())


def _callables(name, there):
    for key, one in there.items():
        if callable(one) and str(getattr(one, "__module__", "")).startswith("attention"):
            yield f"{name}.{key}", one
            if inspect.isclass(one) and not key.startswith("__"):
                methods = {own: getattr(one, own) for own in vars(one) if not own.startswith("__")}
                yield from _callables(f"{name}.{key}", methods)


def _earns(item, target, seed):
    try:
        failure = run_check(item, LocalAnswer(target), seed, explain=False)
    except SystemExit:
        return False
    return failure is None or failure.cost < 1


def released(slug):
    """By dotted name, what a lesson's release holds beside the library, but for mistakes."""
    mistakes = importlib.import_module(f"autograder.mistakes.{slug[3:]}")
    body = ast.parse(shown_mistakes(read(ROOT / "source" / f"{slug}.py"))).body
    defined = (ast.FunctionDef, ast.ClassDef)  # what is decorated is a mistake, and shown as one
    names = [one.name for one in body if isinstance(one, defined) and not one.decorator_list]
    return {f"{mistakes.__name__}.{name}": getattr(mistakes, name) for name in names}


if __name__ == "__main__":
    slug, file = sys.argv[1:]
    found = gate(registry.of_lesson(slug[3:]).values(), in_sight(slug) | released(slug), seed=11)
    Path(file).write_text("\n".join(["done", *found]), encoding="utf-8")
