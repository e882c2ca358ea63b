"""A term with a generated class, through every command: ``make bench-term``.

Each of N students hands in each lesson once, as a zip that an LMS gives: right answers, answers
right in another way, and stored mistakes. The class is received, graded, told its feedback and
reported, lesson by lesson. For each command the table shows its time, the peak memory of its
processes and what it left on disk. The last lines say how many hand-ins are without a score, and
how many lost points that they should have kept, or kept points that they should have lost.

`--busy 10` lets ten loops keep the cores busy beside it all (``make bench-busy``): nobody may lose
a point by that.
"""

import argparse
import contextlib
import csv
import io
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import defaultdict
from pathlib import Path

import nbformat
import psutil

from autograder import ROOT
from autograder.building.lesson import find
from autograder.checking.toolbox import registry
from autograder.grading.classroom import sample_class
from benchmarks.written_out import is_written_out

PROGRAM = str(Path(sys.executable).with_name("autograder"))
CONFIG = """\
from pathlib import Path

from autograder.course import configure

c = configure(get_config(), Path(__file__).resolve().parent)
"""


def timed(command, folder):
    """Run a command in ``folder``; return (seconds, peak bytes of its processes)."""
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(psutil.Process(process.pid), peak))
    watcher.start()
    said = process.communicate()[0].decode()
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{said[-2000:]}")
    return time.monotonic() - start, peak[0]


def _watch(process, peak):
    """Keep the peak of what a process and those below it use, shared pages divided."""
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        total, start = 0, time.thread_time()
        with contextlib.suppress(psutil.Error):
            for one in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += one.memory_full_info().pss
        peak[0] = max(peak[0], total)
        # The system adds up the pages of each process: never let that be 2 % of what is measured.
        time.sleep(max(0.5, 50 * (time.thread_time() - start)))


def people(count):
    """Pairs (id, name) of a generated class."""
    return [(f"s{number:04}", f"Family{number:04}, Given") for number in range(count)]


def roster(count):
    """The roster as a CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["id", "last_name", "first_name", "email", "lms_user_id"])
    for number, (student, name) in enumerate(people(count)):
        last, first = name.split(", ")
        writer.writerow([student, last, first, f"{student}@example.org", 70_000 + number])
    return stream.getvalue()


def hand_ins(slug, count, seed):
    """(A zip as Canvas gives it, {student: exercises that are wrong})."""
    drawn = random.Random(f"{seed} {slug}")
    items = registry.of_lesson(slug.partition("_")[2])
    stream, wrong = io.BytesIO(), {}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (student, name) in enumerate(people(count)):
            who = "".join(name.lower().split(", "))
            path = f"{who}_{70_000 + number}_{900_000 + number}_{slug}.ipynb"
            notebook, wrong[student] = _notebook(slug, items, drawn)
            archive.writestr(path, notebook)
    return stream.getvalue(), wrong


def _notebook(slug, items, drawn):
    """(Its text, its wrong exercises): each right, right in another way, or wrong as stored."""
    answers, wrong = {}, set()
    for name, item in items.items():
        kind = drawn.choice((None, None, registry.alternatives, registry.mistakes))
        known = [one for one in kind(item) if is_written_out(one)] if kind else []
        if known:
            answers[name] = drawn.choice(known)
            wrong |= {name} if kind is registry.mistakes else set()
    return nbformat.writes(sample_class.handed_in(slug, answers)), wrong


class Measured:
    """Runs commands in a course, and keeps what each took."""

    def __init__(self, course):
        self._course = course
        self.rows = defaultdict(lambda: [0.0, 0, 0])  # command: seconds, peak bytes, bytes on disk

    def run(self, *command):
        """Run ``autograder`` with these arguments; returns the seconds that it took."""
        before = self._disk()
        seconds, peak = timed([PROGRAM, *map(str, command)], self._course)
        row = self.rows[command[0]]
        row[0] += seconds
        row[1] = max(row[1], peak)
        row[2] += self._disk() - before
        return seconds

    def _disk(self):
        return sum(path.stat().st_size for path in self._course.rglob("*") if path.is_file())


class Term:
    """A class in a folder, and what its term was like.

    grading  seconds of grading, by lesson
    wrong    lesson → student → the exercises that were handed in wrong
    """

    def __init__(self, course, options):
        self._course, self._options = course, options
        self.measured, self.grading, self.wrong = Measured(course), {}, {}
        (course / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
        (course / "solutions").symlink_to(ROOT / "solutions")
        (course / "people.csv").write_text(roster(options.students), encoding="utf-8")
        self.measured.run("roster", "people.csv")

    def lesson(self, slug):
        """Take the class through one lesson, from the zip to the feedback."""
        options, run = self._options, self.measured.run
        made = hand_ins(slug, options.students, options.seed)
        content, self.wrong[slug] = made
        archive = self._course / "download.zip"
        archive.write_bytes(content)
        run("due", slug, "2030-01-01T00:00+00:00")
        run("receive", archive, "--lesson", slug)
        archive.unlink()
        self.grading[slug] = run("grade", "--lesson", slug, "--sandbox", "required")
        run("feedback", "--lesson", slug)
        each = self.grading[slug] / options.students
        print(f"{slug:<32}{self.grading[slug]:>8.1f} s{each:>8.2f} s each", flush=True)

    def end(self):
        """The report and the table of grades."""
        self.measured.run("report")
        self.measured.run("grades", "--to", "grades.csv")

    def kept(self):
        """(lesson, student) → the exercises that were found wrong, of all that have a score."""
        found = {}
        for path in self._course.glob("class/autograded/*/*/reasons.json"):
            kept = json.loads(path.read_text(encoding="utf-8"))
            scored = kept["exercises"]
            if scored and all(one["score"] is not None for one in scored):
                # What lacks care is told so, and where no text asked for it, it costs nothing.
                faults = [one for one in scored if one["score"] < one["max"] or one["is_careless"]]
                found[kept["lesson"], kept["student"]] = {one["name"] for one in faults}
        return found


@contextlib.contextmanager
def _busy(count):
    """So many processes that keep a core busy each, as far as there are cores.

    Each has a session of its own: Linux may give a whole session no more time than one process.
    """
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _parser():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("lessons", nargs="*", help="number or name; default: all")
    add("--students", type=int, default=300)
    add("--seed", type=int, default=1)
    add("--busy", type=int, default=0, metavar="N", help="so many loops beside it (default: none)")
    return parser


def main():
    """Run the term and print its table."""
    options = _parser().parse_args()
    slugs = [path.stem for path in find(options.lessons)]
    with tempfile.TemporaryDirectory() as folder:
        start, term = time.monotonic(), Term(Path(folder), options)
        with _busy(options.busy):
            for slug in slugs:
                term.lesson(slug)
        term.end()
        total, kept = time.monotonic() - start, term.kept()
    print(f"\n{'command':<12}{'seconds':>10}{'peak MiB':>10}{'disk MiB':>10}")
    for name, (seconds, peak, disk) in term.measured.rows.items():
        print(f"{name:<12}{seconds:>10.1f}{peak / 2**20:>10.0f}{disk / 2**20:>10.1f}")
    print(f"\n{options.students * len(slugs)} hand-ins in {total:.0f} s")
    print(f"seconds of grading: {sum(term.grading.values()):.0f}")
    due = {(slug, one): lost for slug, of in term.wrong.items() for one, lost in of.items()}
    missing = due.keys() - kept.keys()
    print(f"without a score and a reason: {len(missing)}")
    other = {key for key, lost in kept.items() if lost != due[key]}
    print(f"other points lost than should be: {len(other)}")
    for slug, student in sorted(other)[:10]:
        lost, expected = sorted(kept[slug, student]), sorted(due[slug, student])
        print(f"  {slug}, {student}: lost {lost}, but {expected} were wrong")
    return int(bool(missing or other))


if __name__ == "__main__":
    sys.exit(main())
