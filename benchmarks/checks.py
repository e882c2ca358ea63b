"""How long a student waits for a check: CPU time of the first one, for right and for wrong answers.

    python -m benchmarks.checks [LESSON …] [--slowest N]

Nothing is remembered from one answer to the next, as in a notebook whose first check this is, and a
wrong answer is named. What Python and PyTorch take to start is not counted.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence

import torch
from rich.console import Console
from rich.table import Table

from autograder.building.lesson import find, read
from autograder.checking.asking import right_answer
from autograder.checking.diagnosis import stored_replies
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer

SEED = 107
SECONDS = 2.0  # within which a student is to be told
KEPT = (
    right_answer.asked,
    stored_replies.of_answer,
    stored_replies.of_mutants,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Time every exercise's first right answer and three of its named mistakes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lessons", nargs="*", help="numbers or names (default: all)")
    parser.add_argument("--slowest", type=int, default=12, help="rows to print (12)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    _import_optimizers()
    timed = [
        (seconds_of(item, known), item.name, known)
        for path in find(options.lessons)
        for item in registry.of_lesson(read(path).name).values()
        for known in some_answers(item)
    ]
    timed.sort(key=lambda row: -row[0])
    table = Table("seconds of CPU", "exercise", "answer", "", box=None)
    for seconds, name, known in timed[: options.slowest]:
        table.add_row(f"{seconds:.2f}", name, known.name, "wrong" if known.hint else "right")
    Console().print(table)
    every = [seconds for seconds, *_ in timed]
    late = sum(seconds > SECONDS for seconds in every)
    print(f"{len(every)} answers, median {statistics.median(every):.2f} s, {late} over {SECONDS} s")


def some_answers(item: registry.Check) -> Iterator[registry.Answer]:
    """A right answer, and the first, the middle and the last named mistake."""
    mistakes = registry.mistakes(item)
    yield registry.alternatives(item)[0]
    yield from (mistakes[place] for place in (0, len(mistakes) // 2, -1))


def seconds_of(item: registry.Check, known: registry.Answer) -> float:
    """CPU time of one check, with nothing remembered."""
    for function in KEPT:
        function.cache_clear()
    begin = time.process_time()
    run_check(item, LocalAnswer(known.target), SEED)
    return time.process_time() - begin


def _import_optimizers() -> None:
    """A notebook has made one by then, and PyTorch imports much for the first."""
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])


if __name__ == "__main__":
    main()
