"""A term with a generated class, through every command: ``make bench-term``.

Each of N students hands in each lesson once, as a zip that an LMS gives: right answers, answers
right in another way, and stored mistakes; one in twenty ends the process that runs the notebook.
The class is received, graded, told its feedback and reported, lesson by lesson. For each command
the table shows its time, the peak memory of its processes and what it left on disk. The last lines
say how many hand-ins are without a score.
"""

import argparse
import csv
import io
import json
import random
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from pathlib import Path

import nbformat

from autograder import ROOT
from autograder.building.lesson import find
from autograder.checking import registry
from autograder.grading import classroom
from benchmarks.grading import CONFIG, timed

PROGRAM = str(Path(sys.executable).with_name("autograder"))
ENDS = 20  # one student in so many hands in a notebook that ends its process


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
    """A zip as Canvas gives it: a notebook of each student, some of them with mistakes."""
    drawn = random.Random(f"{seed} {slug}")
    items = registry.of_lesson(slug.partition("_")[2])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (_, name) in enumerate(people(count)):
            who = "".join(name.lower().split(", "))
            path = f"{who}_{70_000 + number}_{900_000 + number}_{slug}.ipynb"
            archive.writestr(path, _notebook(slug, items, drawn, number % ENDS == ENDS - 1))
    return stream.getvalue()


def _notebook(slug, items, drawn, ends):
    """Each exercise is right, right in another way, or wrong as somebody stored it."""
    answers = {}
    for name, item in items.items():
        kind = drawn.choice((None, None, registry.alternatives, registry.mistakes))
        known = [one for one in kind(item) if classroom.is_written_out(one)] if kind else []
        if known:
            answers[name] = drawn.choice(known)
    if ends:
        answers[next(iter(items))] = "import os\n\nos._exit(0)"
    return nbformat.writes(classroom.handed_in(slug, answers))


class Measured:
    """Runs commands in a course, and keeps what each took."""

    def __init__(self, course):
        self._course = course
        self.rows = defaultdict(lambda: [0.0, 0, 0])  # command: seconds, peak bytes, bytes on disk

    def run(self, *command):
        """Run ``autograder`` with these arguments; returns the seconds that it took."""
        before = self._disk()
        seconds, peak = timed([PROGRAM, *map(str, command)], self._course, itself=True)
        row = self.rows[command[0]]
        row[0] += seconds
        row[1] = max(row[1], peak)
        row[2] += self._disk() - before
        return seconds

    def _disk(self):
        return sum(path.stat().st_size for path in self._course.rglob("*") if path.is_file())


def term(course, slugs, count, seed, sandbox, cluster):
    """Take a class through the lessons; returns (Measured, seconds of grading by lesson)."""
    (course / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    (course / "solutions").symlink_to(ROOT / "solutions")
    (course / "people.csv").write_text(roster(count), encoding="utf-8")
    measured, grading = Measured(course), {}
    measured.run("roster", "people.csv")
    for slug in slugs:
        archive = course / "download.zip"
        archive.write_bytes(hand_ins(slug, count, seed))
        measured.run("due", slug, "2030-01-01T00:00+00:00")
        measured.run("receive", archive, "--lesson", slug)
        archive.unlink()
        more = ["--cluster", cluster] if cluster else []
        grading[slug] = measured.run("grade", "--lesson", slug, "--sandbox", sandbox, *more)
        measured.run("feedback", "--lesson", slug)
        print(f"{slug}: {count} graded in {grading[slug]:.1f} s", flush=True)
    measured.run("report")
    measured.run("grades", "--to", "grades.csv")
    return measured, grading


def without_a_score(course, slugs, count):
    """Pairs (student, lesson) that have no reason on disk."""
    found = set()
    for path in course.glob("class/autograded/*/*/reasons.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["exercises"] and all(one["score"] is not None for one in kept["exercises"]):
            found.add((kept["student"], kept["lesson"]))
    return {(student, slug) for student, _ in people(count) for slug in slugs} - found


def main():
    """Run the term and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", help="number or name; default: all")
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sandbox", choices=("required", "auto"), default="required")
    parser.add_argument("--cluster", help="the address of a Dask scheduler")
    options = parser.parse_args()
    slugs = [path.stem for path in find(options.lessons)]
    with tempfile.TemporaryDirectory() as folder:
        course, start = Path(folder), time.monotonic()
        choice = (options.students, options.seed, options.sandbox, options.cluster)
        measured, grading = term(course, slugs, *choice)
        total = time.monotonic() - start
        lost = without_a_score(course, slugs, options.students)
    print(f"\n{'command':<12}{'seconds':>10}{'peak MiB':>10}{'disk MiB':>10}")
    for name, (seconds, peak, disk) in measured.rows.items():
        print(f"{name:<12}{seconds:>10.1f}{peak / 2**20:>10.0f}{disk / 2**20:>10.1f}")
    hand_in_count = options.students * len(slugs)
    print(f"\n{hand_in_count} hand-ins in {total:.0f} s: {sum(grading.values()):.0f} s of grading")
    print(f"without a score and a reason: {len(lost)}")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
