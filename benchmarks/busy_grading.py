"""Right answers, graded while other programs keep the cores busy: ``make bench-busy``.

Solved notebooks of five lessons are handed in and graded again and again, by two workers of the
command's own and by two of a Dask cluster, while loops that do nothing run beside them. Nobody may
lose a point. The attacks of ``tests/autograder/attacks`` may be played beside the same loops; none
may earn one.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autograder import ROOT
from autograder.grading.classroom import sample_class
from benchmarks.grading import CONFIG, GRADE
from benchmarks.local_cluster import local_cluster

LESSONS = ("01", "08", "11", "15", "17")


@contextlib.contextmanager
def busy(count):
    """So many processes that keep a core busy each, as far as there are cores.

    Each has a session of its own: Linux may give all of one session no more than one process.
    """
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def make_course(folder):
    """A course in which somebody has handed in the solved notebooks; returns the lessons."""
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    (folder / "solutions").symlink_to(ROOT / "solutions")
    slugs = [next((ROOT / "solutions").glob(f"{number}_*")).name for number in LESSONS]
    for slug in slugs:
        sample_class.submit(sample_class.handed_in(slug), folder, "right", slug)
    return slugs


def graded(folder, slugs, *options):
    """Grade all; returns (seconds, {lesson: (points, of how many, what was lost and why)})."""
    start = time.monotonic()
    done = subprocess.run([*GRADE, *options], cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        print(done.stdout, done.stderr)
    found = {}
    for slug in slugs:
        path = folder / "class" / "autograded" / "right" / slug / "reasons.json"
        result = json.loads(path.read_text(encoding="utf-8"))
        lost = [one["reason"] for one in result["exercises"] if one["score"] < one["max"]]
        found[slug] = result["score"], result["max"], [*lost, *filter(None, [result["doubt"]])]
    return seconds, found


def main(arguments=None):
    """Print a line a round; exit status 1 if anybody lost a point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy_grading", description=__doc__)
    parser.add_argument("--loops", type=int, default=10, help="beside the grading (default: 10)")
    parser.add_argument("--rounds", type=int, default=10, help="for each kind of worker")
    options = parser.parse_args(arguments)
    whole = True
    with tempfile.TemporaryDirectory() as name:
        slugs = make_course(Path(name))
        with local_cluster(workers=2) as (address, _), busy(options.loops):
            for kind in (["--workers", "2"], ["--cluster", address]):
                for number in range(1, options.rounds + 1):
                    seconds, found = graded(Path(name), slugs, *kind)
                    points = ", ".join(
                        f"{slug[:2]} {score:g}/{most:g}" for slug, (score, most, _) in found.items()
                    )
                    load = os.getloadavg()[0]
                    print(
                        f"{kind[0][2:]:<8} {number:>2}  {points}  {seconds:.0f} s, load {load:.1f}"
                    )
                    for slug, (score, most, why) in found.items():
                        whole &= score == most
                        for reason in why:
                            print(f"    {slug}: {reason}")
                    sys.stdout.flush()
    return int(not whole)


if __name__ == "__main__":
    sys.exit(main())
