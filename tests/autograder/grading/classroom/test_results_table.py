"""The class's CSV and page: complete, and safe to open."""

import csv
import re

import pytest

from autograder.commands import cli
from autograder.grading.classroom import item_analysis, results_table
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Exercise, Result
from autograder.reporting import page
from autograder.settings import earned

NAMES = ["soft_lookup", "distances", "nadaraya_watson", "LearnedBandwidth", "ignores_order"]


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


def test_the_csv_has_a_row_for_every_exercise(tmp_path):
    results_table.write_csv([result("zoe", NAMES[:1]), result("ada")], tmp_path / "scores.csv")
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
    page.write_html(results, tmp_path / "class.html")
    written = (tmp_path / "class.html").read_text(encoding="utf-8")
    assert "<script>" not in written
    assert "<b>zoe" not in written
    told = "<td>2</td><td class=kind>no hint</td><td class=said>soft_lookup: &lt;script&gt;"
    assert told in written, "the most frequent reasons"
    assert "<td>soft_<wbr>lookup</td><td>–</td><td>–</td><td>–</td><td>2</td><td>–</td>" in written


@pytest.mark.parametrize(
    ("part", "kind", "note"),
    [
        ({"score": 4}, "right", ""),
        ({"score": 3, "is_careless": True}, "right, without care", "right, without care"),
        ({"score": 4, "is_careless": True}, "right, without care", "right, without care"),
        ({"score": 4, "is_careless": True, "automatic": 3}, "right", ""),
        ({"score": 3.5, "is_careless": True, "automatic": 3}, *["right, without care"] * 2),
        ({"score": 3, "lost": ["a mask"]}, "in part", "lost: a mask"),
        ({"score": 2, "automatic": 0}, "in part", ""),
        ({"score": 0, "lost": ["a mask"], "automatic": 3}, "wrong", ""),
        ({"score": 0}, "wrong", ""),
        ({"score": 0, "is_open": True}, "not attempted", ""),
    ],
)
def test_what_became_of_an_exercise(part, kind, note):
    assert item_analysis.kind({"max": 4, **part}) == kind
    assert item_analysis.note({"max": 4, **part}) == note


def test_a_stage_counts_as_lost_only_where_others_are_earned(tmp_path):
    lost = {"max": 4, "lost": ["a mask", "a <gate>"]}
    parts = [lost | {"score": 1}, lost | {"score": 2, "lost": ["a mask"]}, lost | {"score": 0}]
    assert item_analysis.lost_stages(parts) == {"a mask": 2, "a <gate>": 1}
    row = {
        "student": "ada",
        "lesson": "01",
        "exercises": [parts[0] | {"name": "one", "reason": "x"}],
    }
    page.write_html([row], tmp_path / "page.html")
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "a mask: 1<br>a &lt;gate&gt;: 1" in written


@pytest.mark.parametrize("stages", range(1, 8))
@pytest.mark.parametrize("share", [0.1, 0.25, 1 / 3])
def test_parts_of_points_are_the_same_number_in_every_place(stages, share):
    for gone in range(stages + 1):
        cost = gone / stages
        for taken in (cost, cost + share * (1 - cost)):
            score = earned(stages, taken)
            assert float(f"{score:.10g}") == score == round(score, 4)


HINTED = """softmax: the values are wrong.
  got       {}
  expected  {}
  likely    The exponentials are not divided by their
            sum.
  seed      {}"""
STOPPED = "softmax: your code had to be stopped.\n  got       {}"


def told(student, reason):
    exercises = [
        {"name": "softmax", "score": 0.0 if reason else 2.0, "max": 2.0, "reason": reason},
        {
            "name": "mean",
            "score": 0.0 if reason else 1.0,
            "max": 1.0,
            "reason": reason and "mean: x",
        },
    ]
    return {"student": student, "lesson": "00_start", "exercises": exercises}


def test_faults_are_counted_by_hint_and_else_by_what_came_back():
    rows = [
        told("a", HINTED.format(1.5, 0.25, 7)),
        told("b", HINTED.format(-2e-3, 0.75, 12)),
        told("c", STOPPED.format("it ran for more than 20 s")),
        told("d", STOPPED.format("it ended itself")),
        told("e", STOPPED.format("it ended itself")),
        told("f", ""),
    ]
    found = [one for one in item_analysis.faults(rows) if one.exercise == "softmax"]
    assert [(one.students, one.hint) for one in found] == [(2, True), (2, False)]
    assert found[0].text == "The exponentials are not divided by their sum."
    assert found[1].text.endswith("it ended itself")


def test_an_exercise_that_goes_with_the_rest_and_one_that_does_not():
    rows = [told("a", ""), told("b", "softmax: x"), told("c", "")]
    assert item_analysis.discrimination(rows, 0) == pytest.approx(1)
    rows[0]["exercises"][1]["score"], rows[1]["exercises"][1]["score"] = 0.0, 1.0
    rows[2]["exercises"][1]["score"] = 0.0
    assert item_analysis.discrimination(rows, 0) == pytest.approx(-1)
    assert item_analysis.discrimination(rows[:1], 0) is None
    assert item_analysis.share_earned(rows, 0) == pytest.approx(2 / 3)


def test_the_spread_counts_every_student_once_and_lists_who_needs_help():
    rows = [told("zoe", ""), told("ben", "softmax: x"), told("ada", "softmax: x")]
    assert item_analysis.spread(rows) == [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert [row["student"] for row in item_analysis.in_need(rows)] == ["ada", "ben"]


def test_the_command_writes_the_page_and_prints_no_name(tmp_path, capsys):
    slug = "00_getting_started"
    for folder in (
        f"solutions/{slug}",
        f"class/submitted/zoe/{slug}",
        f"class/autograded/zoe/{slug}",
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "solutions" / slug / f"{slug}.ipynb").write_text("{}")
    assert cli.main(["report", "--course", str(tmp_path)]) == 1
    assert "Nothing is graded" in capsys.readouterr().err
    one = Result("zoe", slug, [Exercise("softmax", 0.0, 2.0, HINTED.format(1, 2, 3))])
    records.save_reasons(tmp_path / "class" / "autograded" / "zoe" / slug, one)
    assert cli.main(["report", "--course", str(tmp_path), "--lesson", "00"]) == 0
    assert "zoe" not in capsys.readouterr().out
    written = tmp_path / "class" / "report"
    assert "zoe" in (written / "class.html").read_text(encoding="utf-8")
    assert "softmax" in (written / "scores.csv").read_text(encoding="utf-8")


def test_no_cell_of_the_csv_is_a_formula(tmp_path):
    results_table.write_csv([result("=1+1", NAMES[:1], "@SUM(A1)")], tmp_path / "scores.csv")
    first = list(csv.reader((tmp_path / "scores.csv").read_text().splitlines()))[1]
    assert (first[0], first[5]) == ("'=1+1", "'@SUM(A1)")


def test_an_anonymous_page_names_nobody_not_even_in_their_own_words(tmp_path):
    raised = "soft_lookup: your code raised ValueError.\n  got       {} was here"
    results = [result(name, NAMES[:1], raised.format(name)) for name in ("zoe", "Zoe", "ada")]
    page.write_html(results, tmp_path / "named.html")
    page.write_html(results, tmp_path / "page.html", anonymous=True)
    assert "zoe" in (tmp_path / "named.html").read_text(encoding="utf-8")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not {"zoe", "Zoe", "ada"} & set(re.findall(r"\w+", text))
    assert "3 students" in text
    assert text.count("role='img' aria-label=") == 2


def test_results_of_another_version_are_left_out_and_counted(tmp_path):
    older = result("zoe")
    older["exercises"].pop()
    page.write_html([result("ada"), result("ben"), older], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1 result is of the lesson with other exercises" in text
    assert "<td>soft_<wbr>lookup</td><td>2</td>" in text


def test_the_slowest_exercises_come_first():
    rows = [result("ada"), result("ben")]
    for row, seconds in zip(rows, (1.0, 3.0), strict=True):
        row["exercises"][1]["seconds"], row["exercises"][0]["seconds"] = seconds, 0.5
    assert item_analysis.slowest(rows) == [("distances", 2.0, 3.0), ("soft_lookup", 0.5, 0.5)]
