"""How much faster than stock nbgrader a class is graded: ``make bench-grading``.

Both grade the same 40 honest submissions of lesson 01 on the same cores, one after the other:
`nbgrader autograde` as it comes, and `autograder grade` with the sandbox on, with one worker and
with two. Two workers are timed before and after stock nbgrader and the slower time counts, so that
other work on the machine favours neither. The last line is ``ratio: R``, the throughput of two
workers over that of stock nbgrader.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from autograder import ROOT
from autograder.checking import registry
from autograder.grading import classroom

SLUG = "01_kernel_regression"
CONFIG = """\
from pathlib import Path

from autograder.course import configure

c = configure(get_config(), Path(__file__).resolve().parent)
"""
STOCK = """\
del c["Autograde"]  # nbgrader's own steps: clean, execute in a kernel, save
"""


def make_course(folder, students, stock):
    """A course with ``students`` submissions: right, right in another way, and with one mistake."""
    (folder / "autograder").mkdir(parents=True)
    config = CONFIG + (STOCK if stock else "")
    (folder / "nbgrader_config.py").write_text(config, encoding="utf-8")
    shutil.copytree(ROOT / "solutions" / SLUG, folder / "solutions" / SLUG)
    checks = list(registry.of_lesson(SLUG.partition("_")[2]).values())
    for number in range(students):
        item = checks[number % len(checks)]
        kinds = (None, registry.alternatives, registry.mistakes)
        other = kinds[number % 3]
        notebook = classroom.handed_in(SLUG, {item.name: other(item)[0]} if other else {})
        classroom.submit(notebook, folder, f"student-{number:03}", SLUG)


def timed(command, folder, itself=False):
    """Run a command in ``folder``; return (seconds, peak bytes of the processes it started).

    itself  its own bytes count, too
    """
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(psutil.Process(process.pid), peak, itself))
    watcher.start()
    said = process.communicate()[0].decode()
    watcher.join()
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{said[-2000:]}")
    return time.monotonic() - start, peak[0]


def _watch(process, peak, itself):
    """Keep the peak of what the processes below ``process`` use, shared pages divided."""
    own = [process] if itself else []
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        total = 0
        with contextlib.suppress(psutil.Error):
            for one in (*own, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += one.memory_full_info().pss
        peak[0] = max(peak[0], total)
        time.sleep(0.5)


def scores(folder):
    """The scores of the gradebook, as nbgrader exports them."""
    program = str(Path(sys.executable).parent / "nbgrader")
    subprocess.run(
        [program, "export", "--to", "out.csv"], cwd=folder, check=True, capture_output=True
    )
    rows = (folder / "out.csv").read_text().splitlines()[1:]
    return sorted((row.split(",")[3], row.split(",")[9]) for row in rows)


def main():
    """Run both and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=40)
    count = parser.parse_args().students
    programs = Path(sys.executable).parent
    nbgrader = str(programs / "nbgrader")
    grade = [str(programs / "autograder"), "grade", "--sandbox", "required", "--regrade"]
    with tempfile.TemporaryDirectory() as folder:
        stock, ours = Path(folder) / "stock", Path(folder) / "ours"
        for course in (stock, ours):
            make_course(course, count, stock=course == stock)
            release = [nbgrader, "generate_assignment", SLUG]
            subprocess.run(release, cwd=course, check=True, capture_output=True)
        print("load of the machine before: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
        pair = [*grade, "--workers", "2"]
        two = report("two workers", count, *timed(pair, ours), workers=2)
        before = report("nbgrader autograde", count, *timed([nbgrader, "autograde", SLUG], stock))
        two = max(two, report("two workers again", count, *timed(pair, ours), workers=2))
        one = report("one worker", count, *timed([*grade, "--workers", "1"], ours))
        if scores(stock) != scores(ours):
            sys.exit("the scores differ")
    print(f"The same scores for all {count}. Two workers do {one / two:.2f} times as much as one.")
    print(f"ratio: {before / two:.1f}")


def report(what, count, seconds, peak, workers=1):
    """Print one line of the comparison; return the seconds."""
    memory = peak / workers / 2**20
    print(
        f"{what:<20} {seconds:7.1f} s  {count / seconds:6.2f} a second  {memory:6.0f} MiB a worker",
        flush=True,
    )
    return seconds


if __name__ == "__main__":
    main()
