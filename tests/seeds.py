"""Whether the draw of the inputs decides what an answer earns: each is judged on many seeds.

python -m tests.seeds [LESSON …] [--count 64] [--wrong]

Judged are the answers stored in autograder/mistakes/ and those of tests/locked; of these, which
nobody is to read, only numbers are told.
"""

import argparse
import contextlib
import importlib
import io
import sys
import warnings
from collections import defaultdict

import torch

from autograder.building.gates.mutants import Endless, bounded
from autograder.building.lesson import find
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer

LOCKED = ("tests.locked", "tests.locked.careless")
LONG = 30  # seconds of CPU after which an answer is said not to end


def verdict(item, target, seed):
    """What an answer loses, in words; the sentence that it reads does not count."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with bounded(LONG):
                failure = run_check(item, LocalAnswer(target), seed, explain=False)
        except Endless:
            return "loses 1"
    if failure is None:
        return "loses nothing"
    return f"loses {failure.cost:.2g}" + "".join(f", {name}" for name in failure.lost)


def answers(item, wrong=False):
    """{name: callable}: the stored answers, and locked ones by number; or only the wrong ones."""
    stored = registry.mistakes(item) if wrong else registry.stored_answers(item)
    kept = {known.name: known.target for known in stored}
    for module in LOCKED:
        for number, known in enumerate(importlib.import_module(module).of_exercise(item.name)):
            if not (wrong and getattr(known, "is_right", True)):
                kept[f"{module}:{number}"] = known.target
    return kept


def judge(item, targets, count):
    """{name: {verdict: its seeds}}; a seed's questions are made once, for all answers."""
    found = {name: defaultdict(list) for name in targets}
    for seed in range(count):
        for name, target in targets.items():
            found[name][verdict(item, target, seed)].append(seed)
    return found


def main(arguments=None):
    """Exit status 1 if any answer is judged differently on different seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds", description=__doc__)
    parser.add_argument("lessons", nargs="*", help="numbers or names (default: all)")
    parser.add_argument("--count", type=int, default=64, help="seeds for each answer")
    parser.add_argument("--wrong", action="store_true", help="leave right answers out")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    divided = False
    for path in find(options.lessons):
        for name, item in registry.of_lesson(path.stem.partition("_")[2]).items():
            found = judge(item, answers(item, options.wrong), options.count)
            print(f"{path.stem} {name}: {len(found)} answers", flush=True)
            for answer, verdicts in found.items():
                if len(verdicts) > 1:
                    divided = True
                    told = (f"{len(on)}x {said} ({on[0]})" for said, on in verdicts.items())
                    print(f"  {answer}: {' · '.join(told)}", flush=True)
    return int(divided)


if __name__ == "__main__":
    sys.exit(main())
