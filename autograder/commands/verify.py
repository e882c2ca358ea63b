"""``autograder verify``: prove that the grading of a lesson is right."""

import argparse
import os

from autograder import CourseError
from autograder.building.gates import passed
from autograder.building.gates.verify import Verdict, verify
from autograder.commands import LESSONS

DESCRIPTION = (
    "Take lessons through the seven gates: solved earns all, blank earns nothing, every named "
    "mistake is rejected by name, every alternative passes, no solution leaks, generated files "
    "match their source, every mutant of the reference is rejected. Exit status 1 if any fails."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", **LESSONS)
    parser.add_argument(
        "--no-mutants", action="store_true", help="leave gate 7 out, which takes minutes"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        default=3,
        help="draws on which every stored answer is judged",
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="only lessons that are not as they were when they last passed all gates",
    )


def run(options: argparse.Namespace) -> int:
    """Verify; exit status 0 if every lesson passes every gate."""
    if options.seeds < 1:
        raise CourseError(f"--seeds {options.seeds}: every answer needs at least one draw")
    os.environ.setdefault("MPLBACKEND", "Agg")
    lessons, failed = options.lessons, False
    if options.changed and not (lessons := passed.changed(lessons)):
        print("All lessons are as they were when they passed all gates.")
        return 0
    plan = {"seeds": options.seeds, "with_mutants": not options.no_mutants}
    for verdict in verify(lessons, workers=os.cpu_count() or 1, **plan):
        failed |= bool(verdict.failures)
        if not verdict.failures and plan["with_mutants"] and options.seeds > 1:
            passed.record(verdict.lesson)
        _print(verdict, options.no_mutants)
    return int(failed)


def _print(verdict: Verdict, no_mutants: bool) -> None:
    print(f"{verdict.lesson}: {'done' if not verdict.failures else 'not done'}")
    print(f"  solved {verdict.solved} of {verdict.points} points, blank {verdict.blank}")
    print(
        f"  mistakes {verdict.mistakes}: {verdict.rejected} rejected, {verdict.named} named; "
        f"alternatives {verdict.alternatives}: {verdict.accepted} accepted; careless "
        f"{verdict.careless}; leaks {verdict.leaks}"
    )
    alive = f"{verdict.mutants}: {verdict.alive} accepted without a reason"
    print(f"  mutants {'left out' if no_mutants else alive}")
    for failure in verdict.failures:
        print("  - " + failure.replace("\n", "\n    "), flush=True)
