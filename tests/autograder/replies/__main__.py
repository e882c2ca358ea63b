"""Send hostile replies to every check; print a line for each lesson, and what went wrong."""

import argparse
import random
import subprocess
import sys
import time

import torch

from autograder.building import lesson
from autograder.checking.toolbox import registry

from . import harness, hostile

MOST_MIB, MOST_SECONDS = 1024, harness.DEFAULT.own_seconds
LATER = (1, 2, 3, 5, 8, 13, 21, 34)


def main():
    """Run the command; exit status 0 if nothing went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.autograder.replies")
    parser.description = __doc__
    parser.add_argument("lessons", nargs="*", help="numbers or names (default: all)")
    parser.add_argument("--kinds", type=int, help="so many kinds for each check (default: all)")
    parser.add_argument("--kind", action="append", default=[], help="only this kind; repeatable")
    parser.add_argument("--check", action="append", default=[], help="only this check; repeatable")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    slugs = [path.stem for path in lesson.find(options.lessons)]
    if options.here:
        return _sweep(slugs[0], options)
    print(f"{'lesson':<34}{'sent':>6}{'peak MiB':>10}{'longest s':>11}  faults", flush=True)
    status = 0
    for slug in slugs:
        given = [one for one in sys.argv[1:] if one not in options.lessons]
        command = [sys.executable, "-m", "tests.autograder.replies", *given, "--here", slug]
        status |= subprocess.run(command, check=False).returncode
    return status


def _sweep(slug, options):
    """One lesson, in a process of its own, since memory once used stays used."""
    torch.set_num_threads(1)
    draw, outcomes, start = random.Random(f"{slug} {options.seed}"), [], time.monotonic()
    for item in registry.of_lesson(slug.partition("_")[2]).values():
        if options.check and item.name not in options.check:
            continue
        harness.judge(item, "", 10**6)  # what the check itself needs: its questions are kept
        kinds = options.kind or hostile.KINDS
        for kind in draw.sample(kinds, min(len(kinds), options.kinds or len(kinds))):
            after = draw.choice(LATER) if draw.random() < 0.4 else 0
            outcomes.append(harness.judge(item, kind, after))
    faulty = [(one, said) for one in outcomes if (said := one.faults(MOST_MIB, MOST_SECONDS))]
    mib, seconds = (max(getattr(one, name) for one in outcomes) for name in ("mib", "seconds"))
    print(f"{slug:<34}{len(outcomes):>6}{mib:>10.0f}{seconds:>11.1f}  {len(faulty)}", flush=True)
    for one, said in faulty:
        print(f"    {one.check} {one.kind} after {one.after}: {'; '.join(said)}", flush=True)
    print(f"    {time.monotonic() - start:.0f} s", file=sys.stderr)
    return int(bool(faulty))


if __name__ == "__main__":
    sys.exit(main())
