"""The class's table, CSV and page: complete at any width, and safe to open."""

import csv
import io

import pytest
from rich.console import Console

from autograder.grading import report

NAMES = ["soft_lookup", "distances", "nadaraya_watson", "LearnedBandwidth", "effective_neighbours"]


def result(student, lost=(), reason="soft_lookup: the answer is wrong.\n  got       1"):
    exercises = [
        {
            "name": name,
            "score": 0 if name in lost else 2,
            "max": 2,
            "reason": reason if name in lost else "",
        }
        for name in NAMES
    ]
    return {"student": student, "lesson": "01_kernel_regression", "exercises": exercises}


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_shows_every_column_at_any_width(width):
    console = Console(file=io.StringIO(), width=width)
    report.print_table([result("zoe", NAMES[:1]), result("a-student-with-a-long-name")], console)
    lines = console.file.getvalue().splitlines()
    (first,) = (line.split() for line in lines if line.startswith(" a-student"))
    assert first == ["a-student-with-a-long-name", *["2/2"] * 5, "10/10"]
    (second,) = (line.split() for line in lines if line.startswith(" zoe"))
    assert second == ["zoe", "0/2", *["2/2"] * 4, "8/10"]
    assert any("total" in line for line in lines)


def test_every_lost_point_has_its_reason_in_one_piece():
    console = Console(file=io.StringIO(), width=40)
    long = "soft_lookup: " + "what is wrong here " * 9 + "at all."
    report.print_table([result("zoe", NAMES[:1], long)], console)
    said = console.file.getvalue()
    assert f"zoe · soft_lookup\n  {long}\n" in said
    assert "zoe · distances" not in said


def test_the_csv_has_a_row_for_every_exercise(tmp_path):
    report.write_csv([result("zoe", NAMES[:1]), result("ada")], tmp_path / "scores.csv")
    with open(tmp_path / "scores.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["student"], row["exercise"]) for row in rows[:2]] == [
        ("ada", "soft_lookup"),
        ("ada", "distances"),
    ]
    assert len(rows) == 10
    assert float(rows[5]["score"]) == 0
    assert rows[5]["reason"].endswith("got       1")


def test_the_page_shows_what_students_wrote_as_text(tmp_path):
    reason = "soft_lookup: <script>alert(1)</script>"
    results = [result("<b>zoe", NAMES[:1], reason), result("ada", NAMES[:1], reason)]
    report.write_html(results, tmp_path / "class.html")
    page = (tmp_path / "class.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "<b>zoe" not in page
    assert "2 × soft_lookup: &lt;script&gt;" in page, "the most frequent reasons"
    assert "0 of 2" in page
