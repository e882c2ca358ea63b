"""``make attacks``: every attack against stock nbgrader and against this course's grading.

Then the attempts on ``--sandbox required`` itself, a line each.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from . import ATTACKS, ground, ours, required, stock

DESCRIPTION = (
    "Play every attack against stock nbgrader and against this course's grading, and every attempt "
    "on --sandbox required."
)
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
        status |= _play_attacks(chosen, options)
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


def _play_attacks(chosen, options):
    """Play the attacks, print the table; exit status 0 if none earned or left anything."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcomes, report = ours.play(chosen, Path(folder) / "ours", workers=options.workers)
        faults = ours.faults(Path(folder) / "ours", report)
        ours_seconds = time.monotonic() - start
        if options.recorded:
            theirs = stock.recorded()
        else:
            theirs = _play_stock(chosen, Path(folder) / "stock", options)
    _print_table(chosen, theirs, outcomes)
    print(
        f"this course's grading: {ours_seconds:.0f} s; the largest process of the grader itself "
        f"held {report['peak_mib']} MiB; exit status {report['status']}"
    )
    honest = sum(outcomes[lesson].points or 0 for lesson in ground.LESSONS)
    print(f"the honest student earned {honest:g} points in the same run")
    loose = report["traces"]
    for trace in loose:
        print(f"left: {trace}")
    ungraded = [attack.name for attack in chosen if outcomes[attack.name].points is None]
    faults += [f"no score for {name}" for name in ungraded]
    for fault in faults:
        print(f"THE GRADING FAILED: {fault}")
    earners = [
        attack
        for attack in chosen
        if attack.earned(outcomes[attack.name].points or 0, ground.most(attack.lesson))
    ]
    robbed = [attack for attack in chosen if (theirs.get(attack.name) or {}).get("points")]
    print(f"stock nbgrader gave points to {len(robbed)} of {len(chosen)}")
    print(f"earned: {len(earners)} of {len(chosen)}")
    return int(bool(earners or loose or faults or not honest))


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tests.autograder.attacks")
    parser.description = DESCRIPTION
    parser.add_argument("attacks", nargs="*", help="names or groups, as in required (default: all)")
    parser.add_argument("--recorded", action="store_true", help="stock's outcomes from stock.json")
    parser.add_argument("--record", action="store_true", help="write stock's outcomes there")
    parser.add_argument(
        "--workers", type=int, default=ours.WORKERS, help="at a time (default: %(default)s)"
    )
    return parser


def _play_stock(chosen, folder, options):
    console = Console(stderr=True)
    columns = ("stock nbgrader", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=sum(attack.stock for attack in chosen))
        played = stock.play(chosen, folder, options.workers, lambda _: bar.advance(task))
    found = {
        name: outcome
        and {"points": outcome.points, "seconds": outcome.seconds, "traces": outcome.traces}
        for name, outcome in played.items()
    }
    if options.record:
        known = stock.recorded() if stock.RECORD.is_file() else {}
        known = {name: known[name] for name in ATTACKS if name in known} | found
        text = json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False)
        stock.RECORD.write_text(text + "\n", encoding="utf-8")
    return found


def _print_table(chosen, theirs, outcomes):
    table = Table(title="points earned with wrong answers", title_justify="left")
    table.add_column("attack")
    table.add_column("stock nbgrader", justify="right")
    table.add_column("this course", justify="right")
    table.add_column("left by it: stock → this course")
    for attack in chosen:
        outcome, stock_one = outcomes[attack.name], theirs.get(attack.name)
        if stock_one is None:
            before, left = "not run", "–"
        else:
            before = "no score" if stock_one["points"] is None else f"{stock_one['points']:g}"
            left = ", ".join(sorted({one.partition(":")[0] for one in stock_one["traces"]})) or "–"
        after = ", ".join(sorted({one.partition(":")[0] for one in outcome.traces})) or "–"
        table.add_row(attack.name, before, outcome.shown, f"{left} → {after}")
    Console(width=100).print(table)


if __name__ == "__main__":
    sys.exit(main())
