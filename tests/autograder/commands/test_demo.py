"""The demonstration: a class of eight, graded end to end, each with the score that is due."""

import csv
import subprocess
import sys

import pytest

from tests.waiting import LONG

SLUG = "00_getting_started"
TOTALS = {
    "ada-perfect": 5,
    "ben-three-mistakes": 0,
    "cleo-other-way": 5,
    "dan-blank": 0,
    "eve-syntax-error": 4,
    "finn-endless-loop": 4,
    "gil-kernel-dies": 4,
    "hal-careless": 4.5,
}


@pytest.mark.long
@pytest.mark.every  # CI runs it where packages are missing: what a newcomer tries first
def test_the_class_is_graded_and_the_last_line_says_where_to_look(tmp_path):
    command = [sys.executable, "-m", "autograder.commands.cli", "demo", "00", "--folder", "here"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    last = done.stdout.rstrip().splitlines()[-1]
    assert last.startswith("Look at here/results/class.html and scores.csv")

    with open(tmp_path / "here" / "results" / "scores.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    totals = {}
    for row in rows:
        totals[row["student"]] = totals.get(row["student"], 0) + float(row["score"])
        assert bool(row["reason"]) == (row["score"] != row["max"]), "a reason for every lost point"
    assert totals == TOTALS
    for student in TOTALS:
        page = tmp_path / "here/class/feedback" / student / SLUG / f"{SLUG}.html"
        assert page.is_file()
    assert "ben-three-mistakes · softmax" in done.stdout
    assert "likely" in done.stdout
