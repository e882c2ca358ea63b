"""``make attacks``: every attack against this course's grading.

Then the attempts on ``--sandbox required`` itself, a line each.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import ATTACKS, ground, ours, required

DESCRIPTION = "Play every attack against this course's grading, and on --sandbox required."
REQUIRED = "required"


def main(arguments=None):
    """Play what is asked for; exit status 0 if nobody earned, left or got through anything."""
    options = _parser().parse_args(arguments)
    wanted = set(options.attacks)
    chosen = [
        attack for attack in ATTACKS.values() if not wanted or {attack.name, attack.group} & wanted
    ]
    if shutil.which("bwrap") is None:
        print("bubblewrap is not installed: nothing here is run without it.", file=sys.stderr)
        return 2
    status = 0
    if chosen or REQUIRED not in wanted:
        status |= _play_attacks(chosen, options.workers)
    if not wanted or REQUIRED in wanted:
        status |= play_required()
    return status


def play_required():
    """Play the attempts on `--sandbox required`, a line each; exit status 1 if any gets through."""
    print("attempts on --sandbox required", flush=True)
    through = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, title in enumerate(required.ATTEMPTS):
            held, told = required.play(title, Path(folder) / str(number))
            through += not held
            verdict = "held" if held else "GOT THROUGH"
            print(f"  {verdict:<11}  {title}: {' '.join(told.split())[:200]}", flush=True)
    print(f"got through: {through} of {len(required.ATTEMPTS)}")
    return int(bool(through))


def _play_attacks(chosen, workers):
    """Play the attacks, print the table; exit status 0 if none earned or left anything."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes, report = ours.play(chosen, folder, workers=workers)
        faults = ours.faults(folder, report)
    _print_table(chosen, outcomes)
    print(
        f"this course's grading: {report['seconds']:.0f} s; the largest process of the grader "
        f"itself held {report['peak_mib']} MiB; exit status {report['status']}"
    )
    honest = sum(outcomes[lesson].points or 0 for lesson in ground.LESSONS)
    print(f"the honest student earned {honest:g} points in the same run")
    for trace in report["traces"]:
        print(f"left: {trace}")
    ungraded = [attack.name for attack in chosen if outcomes[attack.name].points is None]
    faults += [f"no score for {name}" for name in ungraded]
    for fault in faults:
        print(f"THE GRADING FAILED: {fault}")
    earners = [attack for attack in chosen if outcomes[attack.name].points]
    print(f"earned: {len(earners)} of {len(chosen)}")
    return int(bool(earners or report["traces"] or faults or not honest))


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tests.autograder.attacks")
    parser.description = DESCRIPTION
    parser.add_argument("attacks", nargs="*", help="names or groups, as in required (default: all)")
    parser.add_argument(
        "--workers", type=int, default=ours.WORKERS, help="at a time (default: %(default)s)"
    )
    return parser


def _print_table(chosen, outcomes):
    table = Table(title="points earned with wrong answers", title_justify="left")
    table.add_column("attack")
    table.add_column("points", justify="right")
    table.add_column("left by it")
    for attack in chosen:
        outcome = outcomes[attack.name]
        points = "no score" if outcome.points is None else f"{outcome.points:g}"
        table.add_row(attack.name, points, ", ".join(outcome.left) or "–")
    Console(width=100).print(table)


if __name__ == "__main__":
    sys.exit(main())
