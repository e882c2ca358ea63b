"""Whether the draw of the inputs decides what an answer earns: each is judged on many seeds.

python -m tests.seeds [LESSON …] [--count 64] [--seconds S] [--wrong] [--only EXERCISE …] [--fails]

Judged are the answers stored in autograder/mistakes/ and those of the modules named by --answers,
each with a function of_exercise(name); of these, which nobody is to read, only numbers are told.
"""

import argparse
import contextlib
import importlib
import io
import math
import sys
import time
import warnings
from collections import Counter, defaultdict

import torch

from autograder.building.gates.mutants import Endless, bounded
from autograder.building.lesson import find
from autograder.checking.run_check import accepts, run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer

LOCKED = ("tests.locked", "tests.locked.careless")
LONG = 30  # seconds of CPU after which an answer is said not to end


def verdict(item, target, seed, fails=False):
    """What an answer loses, in words; the sentence that it reads does not count.

    fails  say only whether it fails, which takes less time
    """
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with bounded(LONG):
                if fails:
                    return "passes" if accepts(item, LocalAnswer(target), seed) else "fails"
                failure = run_check(item, LocalAnswer(target), seed, explain=False)
        except Endless:
            return "fails" if fails else "loses 1"
    if failure is None:
        return "loses nothing"
    return f"loses {failure.cost:.2g}" + "".join(f", {name}" for name in failure.lost)


def answers(item, modules, wrong=False):
    """{name: callable}: the stored answers, and those of ``modules`` by number; or wrong ones."""
    stored = registry.mistakes(item) if wrong else registry.stored_answers(item)
    kept = {known.name: known.target for known in stored}
    for module in modules:
        found = enumerate(importlib.import_module(module).of_exercise(item.name))
        kept |= {
            f"{module}:{number}": known.target
            for number, known in found
            if not (wrong and getattr(known, "is_right", True))
        }
    return kept


def judge(item, targets, count, seconds, fails=False):
    """Pair ({name: {verdict: its seeds}}, how many seeds); no more are begun after ``seconds``.

    A seed's questions are made once, for all answers.
    """
    found, begin, done = {name: defaultdict(list) for name in targets}, time.process_time(), 0
    while done < count and time.process_time() - begin < seconds:
        for name, target in targets.items():
            found[name][verdict(item, target, done, fails)].append(done)
        done += 1
    return found, done


def of_lesson(lesson, options):
    """Print a lesson's line and its divided verdicts; returns how many these are."""
    begin, total, divided, fewer = time.process_time(), Counter(), [], []
    for name, item in registry.of_lesson(lesson).items():
        if options.only and name not in options.only:
            continue
        targets = answers(item, options.answers, options.wrong)
        stored = len(answers(item, (), options.wrong))
        total.update(stored=stored, others=len(targets) - stored)
        found, done = judge(item, targets, options.count, options.seconds, options.fails)
        fewer += [f"{name} {done}"] if done < options.count else []
        for answer, verdicts in found.items():
            if len(verdicts) > 1:
                told = (f"{len(seeds)}x {said} ({seeds[0]})" for said, seeds in verdicts.items())
                divided.append(f"  {name}, {answer}: {' · '.join(told)}")
    seeds = f"{options.count} seeds" + f" (but {', '.join(fewer)})" * bool(fewer)
    seconds = time.process_time() - begin
    print(
        f"{lesson}: {total['stored']} stored, {total['others']} others, {seeds}: "
        f"{len(divided)} divided, {seconds:.0f} s"
    )
    print("\n".join(divided), end="\n" * bool(divided), flush=True)
    return len(divided)


def main(arguments=None):
    """Exit status 1 if any answer is judged differently on different seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds", description=__doc__)
    parser.add_argument("lessons", nargs="*", help="numbers or names (default: all)")
    parser.add_argument("--count", type=int, default=64, help="seeds for each answer")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of CPU for an exercise")
    parser.add_argument("--wrong", action="store_true", help="leave right answers out")
    parser.add_argument("--fails", action="store_true", help="judge only whether an answer fails")
    parser.add_argument("--only", nargs="+", metavar="EXERCISE", default=())
    parser.add_argument("--answers", nargs="*", metavar="MODULE", default=LOCKED)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    paths = find(options.lessons)
    return int(sum([of_lesson(path.stem.partition("_")[2], options) for path in paths]) > 0)


if __name__ == "__main__":
    sys.exit(main())
