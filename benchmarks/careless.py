"""Whether what carelessness costs depends on the draw of the inputs: it must not.

    python -m benchmarks.careless [LESSON ...] [--seeds 64] [--first 0]

It prints the costs of each careless answer; the exit status is 1 where they differ.
"""

import argparse
import sys
import warnings
from collections import Counter

from autograder.building.lesson import find
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer
from tests.locked.careless import of_exercise


def main(arguments=None):
    """Ask all careless answers of these lessons, each with so many seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", help="as 06 (default: all)")
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    seeds, differ = range(options.first, options.first + options.seeds), False
    slugs = [path.stem for path in find(options.lessons)]
    for item in (one for slug in slugs for one in registry.of_lesson(slug[3:]).values()):
        for answer in (*registry.careless_answers(item), *of_exercise(item.name)):
            given = (run_check(item, LocalAnswer(answer.target), n, explain=False) for n in seeds)
            costs = Counter(0.0 if one is None else one.cost for one in given)
            differ = differ or len(costs) > 1
            print(item.name, answer.name, dict(costs), flush=True)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
