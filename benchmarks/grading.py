"""What a second worker brings in grading a class: ``make bench-grading``.

A class of 300 in lesson 01 is graded by workers of this machine, and by those of a Dask cluster,
which have graded before. Two are timed before and after one, and the slower time counts. Four
hand-ins alone show what the start costs, mostly imports, which a second worker cannot share.
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
from autograder.checking.toolbox import registry
from autograder.grading.classroom import sample_class
from benchmarks.local_cluster import local_cluster

SLUG = "01_kernel_regression"
CONFIG = """\
from pathlib import Path

from autograder.course import configure

c = configure(get_config(), Path(__file__).resolve().parent)
"""
PROGRAMS = Path(sys.executable).parent
GRADE = [str(PROGRAMS / "autograder"), "grade", "--sandbox", "required", "--regrade"]


def make_course(folder, students):
    """A course, whose assignment nbgrader knows, with so many submissions.

    They are right, right in another way, or with one mistake.
    """
    (folder / "autograder").mkdir(parents=True)
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    shutil.copytree(ROOT / "solutions" / SLUG, folder / "solutions" / SLUG)
    checks = list(registry.of_lesson(SLUG.partition("_")[2]).values())
    for number in range(students):
        item = checks[number % len(checks)]
        kinds = (None, registry.alternatives, registry.mistakes)
        other = kinds[number % 3]
        notebook = sample_class.handed_in(SLUG, {item.name: other(item)[0]} if other else {})
        sample_class.submit(notebook, folder, f"student-{number:03}", SLUG)
    release = [str(PROGRAMS / "nbgrader"), "generate_assignment", SLUG]
    subprocess.run(release, cwd=folder, check=True, capture_output=True)


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
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{said[-2000:]}")
    return time.monotonic() - start, peak[0]


def _watch(process, peak, itself):
    """Keep the peak of what the processes below ``process`` use, shared pages divided."""
    own = [process] if itself else []
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        total, start = 0, time.thread_time()
        with contextlib.suppress(psutil.Error):
            for one in (*own, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += one.memory_full_info().pss
        peak[0] = max(peak[0], total)
        # The system adds up the pages of each process: never let that be 2 % of what is measured.
        time.sleep(max(0.5, 50 * (time.thread_time() - start)))


def main():
    """Run and print the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=300)
    options = parser.parse_args()
    print("load of the machine before: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
    with tempfile.TemporaryDirectory() as folder:
        scaling(Path(folder), options.students)


def scaling(folder, count):
    """Grade one class with one worker and with two, of this machine's own and of a cluster."""
    course, alone = folder / "scaling", folder / "alone"
    for place, size in {course: count, alone: 4}.items():
        make_course(place, size)
    for kind, grade in {"own": _own, "Dask": _on_cluster}.items():
        report(f"1 {kind} worker", 4, *grade(alone, 1))
        seconds = []
        for workers in (2, 1, 2):
            spent = grade(course, workers)
            seconds.append(report(f"{workers} {kind} worker(s)", count, *spent, workers))
        gain = seconds[1] / max(seconds[0], seconds[2])
        print(f"Two {kind} workers do {gain:.2f} times as much as one.", flush=True)


def _own(course, workers):
    return timed([*GRADE, "--workers", str(workers)], course)


def _on_cluster(course, workers):
    """The time without that in which the workers start: those of a cluster outlive a grading."""
    with local_cluster(workers) as (address, _):
        command = [*GRADE, "--cluster", address]
        some = [f"--student=student-{number:03}" for number in range(2 * workers)]
        timed([*command, *some], course)
        return timed(command, course)[0], None  # its memory is not ours


def report(what, count, seconds, peak, workers=1):
    """Print one line of the comparison; return the seconds."""
    memory = "" if peak is None else f"  {peak / workers / 2**20:6.0f} MiB a worker"
    rate = f"{count:>4} in {seconds:7.1f} s  {count / seconds:6.2f} a second"
    print(f"{what:<20} {rate}{memory}", flush=True)
    return seconds


if __name__ == "__main__":
    main()
