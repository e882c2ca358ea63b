"""The class's page and table: complete, and safe to open."""

import csv
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from bs4 import BeautifulSoup

from autograder.commands import cli
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Exercise, Result
from autograder.reporting import page, results
from autograder.reporting.faults import Fault
from autograder.reporting.results import Row
from autograder.settings import earned

LESSON = "01_kernel_regression"
NAMES = ["soft_lookup", "nadaraya_watson", "attention_weights"]
RAISED = "soft_lookup: your code raised ValueError.\n  got       <script>alert(1)</script>"


def row(student, *points, reason=RAISED, **more):
    """A row of a student who earned these points of two in the exercises of NAMES."""
    parts = [
        {"name": name, "score": score, "max": 2, "reason": reason if score < 2 else "", **more}
        for name, score in zip(NAMES, points, strict=True)
    ]
    return Row(student, LESSON, parts)


def written(tmp_path, rows, faults=(), absent=()):
    page.write_html(rows, tmp_path / "page.html", {LESSON: faults}, {LESSON: absent})
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def lines(tmp_path, rows):
    page.write_csv(rows, tmp_path / "scores.csv")
    with open(tmp_path / "scores.csv", newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_table_has_a_line_for_every_exercise_and_a_late_penalty(tmp_path):
    late = replace(row("zoe", 0, 2, 2), penalty=1.5)
    found = lines(tmp_path, [row("ada", 2, 2, 2), late])
    assert [(one["student"], one["exercise"]) for one in found] == [
        *(("ada", name) for name in NAMES),
        *(("zoe", name) for name in [*NAMES, "late penalty"]),
    ]
    assert sum(float(one["score"]) for one in found[3:]) == 2.5
    assert found[3]["reason"] == RAISED and found[3]["automatic"] == "0"


def test_a_column_is_one_line_of_one_list(tmp_path, monkeypatch):
    came = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    late = replace(row("zoe", 2, 2, 2), handed_in=came, minutes_late=31)
    more = page.Column("late at all", lambda row: "late" if row.minutes_late else "in time")
    monkeypatch.setattr(page, "HAND_IN", (*page.HAND_IN, more))
    (line, *_) = lines(tmp_path, [late])
    assert (line["handed_in"], line["minutes_late"]) == ("2026-10-25 02:30 CEST", "31")
    assert line["late_at_all"] == "late"
    scores = BeautifulSoup(written(tmp_path, [late]), "html.parser").find_all("table")[2]
    heads, cells = ([one.get_text() for one in scores.find_all(tag)] for tag in ("th", "td"))
    told = dict(zip(heads, cells, strict=True))
    assert told["handed in"] == line["handed_in"] and told["late at all"] == "late"
    assert (told["student"], told["soft_lookup"], told["total"]) == ("zoe", "2 / 2", "6 / 6")


def test_no_cell_of_the_table_is_a_formula(tmp_path):
    (first, *_) = lines(tmp_path, [row("=1+1", 0, 2, 2, reason="@SUM(A1)")])
    assert (first["student"], first["reason"]) == ("'=1+1", "'@SUM(A1)")


def test_the_page_shows_what_students_wrote_as_text(tmp_path):
    fault = Fault("soft_lookup", ("<b>zoe",), "<script>", False, "<b>zoe", "x = '<script>'")
    rows = [row("<b>zoe", 0, 2, 2), row("ada", 2, 2, 2)]
    text = written(tmp_path, rows, [fault], ["<b>eve"])
    assert [part for part in ("<script>", "<b>zoe", "<b>eve") if part in text] == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text  # the reason of a lost point
    assert "autograder explain 01 soft_lookup --student" in text
    assert "1 of the roster: &lt;b&gt;eve" in text


def test_what_became_of_exercises_and_students_is_counted(tmp_path):
    rows = [row("ada", 2, 2, 2), row("ben", 0, 1, 0), row("eve", 2, 2, 2)]
    text = written(tmp_path, rows)
    assert "3 students, 6 points. Median 6, lowest 1, highest 6." in text
    assert "<td>5.4 to 6</td><td>2</td>" in text
    assert "soft_<wbr>lookup</td><td>2</td><td>–</td><td>–</td><td>1</td><td>–</td>" in text
    few = text.partition("Less than half of the points")[2].partition("<h3>")[0]
    assert "ben" in few and "ada" not in few


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"score": 4}, "right"),
        ({"score": 3, "is_careless": True}, "right, without care"),
        ({"score": 4, "is_careless": True}, "right, without care"),
        ({"score": 4, "is_careless": True, "automatic": 3}, "right"),
        ({"score": 3.5, "is_careless": True, "automatic": 3}, "right, without care"),
        ({"score": 3, "lost": ["a mask"]}, "in part"),
        ({"score": 2, "automatic": 0}, "in part"),
        ({"score": 0, "lost": ["a mask"], "automatic": 3}, "wrong"),
        ({"score": 0}, "wrong"),
        ({"score": 0, "is_open": True}, "not attempted"),
        ({"score": 0, "max": 0, "reason": "x"}, "wrong"),
    ],
)
def test_what_became_of_an_exercise(part, kind):
    assert results.kind({"max": 4, **part}) == kind


def test_a_stage_counts_as_lost_only_where_others_are_earned(tmp_path):
    lost = {"lost": ["a mask", "a <gate>"]}
    parts = [lost | {"score": 1, "max": 2}, lost | {"score": 0, "max": 2}]
    assert results.lost_stages(parts) == {"a mask": 1, "a <gate>": 1}
    assert "a mask: 1<br>a &lt;gate&gt;: 1" in written(tmp_path, [row("ada", 1, 2, 2, **lost)])


@pytest.mark.parametrize("stages", range(1, 8))
@pytest.mark.parametrize("share", [0.1, 0.25, 1 / 3])
def test_parts_of_points_are_the_same_number_in_every_place(stages, share):
    for gone in range(stages + 1):
        cost = gone / stages
        for taken in (cost, cost + share * (1 - cost)):
            score = earned(stages, taken)
            assert float(f"{score:.10g}") == score == round(score, 4)


def test_results_of_another_version_are_left_out_and_counted(tmp_path):
    older = row("zoe", 2, 2, 2)
    older.exercises.pop()
    text = written(tmp_path, [row("ada", 2, 2, 2), row("ben", 2, 2, 2), older])
    assert "1 result is of the lesson with other exercises" in text and "2 students" in text


def test_the_command_writes_the_page_and_prints_no_name(tmp_path, capsys):
    slug = "00_getting_started"
    for place in ("solutions", "class/submitted/zoe", "class/autograded/zoe"):
        (tmp_path / place / slug).mkdir(parents=True)
    (tmp_path / "solutions" / slug / f"{slug}.ipynb").write_text("{}")
    assert cli.main(["report", "--course", str(tmp_path)]) == 1
    assert "Nothing is graded" in capsys.readouterr().err
    one = Result("zoe", slug, [Exercise("softmax", 0.0, 2.0, "softmax: wrong.")])
    records.save_reasons(tmp_path / "class" / "autograded" / "zoe" / slug, one)
    assert cli.main(["report", "--course", str(tmp_path), "--lesson", "00"]) == 0
    assert "zoe" not in capsys.readouterr().out
    made = tmp_path / "class" / "report"
    assert "zoe" in (made / "class.html").read_text(encoding="utf-8")
    assert "softmax" in (made / "scores.csv").read_text(encoding="utf-8")
