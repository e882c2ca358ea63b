"""Points in proportion: what a right answer without care earns, in every place that says so."""

import csv
import json

import nbformat
import pytest

from autograder import CourseError, settings
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.self_study import status
from tests.autograder.small_class import SLUG, grade, hand_in, kept, make_course, scores

SEEDED = """\
def softmax(scores, dim):
    torch.manual_seed(0)
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
"""


def hand_in_careless(course, student):
    notebook = sample_class.handed_in(SLUG, {"softmax": SEEDED})
    sample_class.submit(notebook, course, student, SLUG)


def test_a_careless_answer_earns_all_but_its_share(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "ada")
    hand_in_careless(course, "ben")
    grade(course)
    points = {one.name: one.max for one in kept(course, "ben").exercises}
    assert scores(course) == {"ada": 5, "ben": 5 - 0.25 * points["softmax"]}
    (found,) = (one for one in kept(course, "ben").exercises if one.score < one.max)
    assert (found.name, found.is_careless) == ("softmax", True)
    assert found.reason.startswith("softmax: right. One thing to mend: ")
    notebook = nbformat.read(course / "class" / "autograded" / "ben" / SLUG / f"{SLUG}.ipynb", 4)
    (cell,) = (
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "check_softmax"
    )
    assert [one.output_type for one in cell.outputs] == ["stream", "execute_result"]
    assert float(cell.outputs[1].data["text/plain"]) == 0.75 * points["softmax"]


def test_another_share_grades_again_and_says_why(tmp_path):
    course = make_course(tmp_path)
    hand_in_careless(course, "ben")
    grade(course)
    before = scores(course)["ben"]
    (course / "class" / "course.toml").write_text("care_share = 0\n")
    said, _, _ = grade(course)
    assert "graded again: the care share changed" in said
    assert before < scores(course)["ben"] == 5
    assert "costs     nothing" in kept(course, "ben").exercises[1].reason


@pytest.mark.parametrize("text", ["care_share = 2", "care_share = true", "care_share = 'a'", "?"])
def test_a_share_that_is_none_is_refused_in_a_sentence(tmp_path, text):
    (tmp_path / "course.toml").write_text(text)
    with pytest.raises(CourseError, match=r"course\.toml"):
        settings.care_share(tmp_path)


def test_without_a_file_it_is_a_quarter(tmp_path):
    assert settings.care_share(tmp_path) == 0.25
    (tmp_path / "course.toml").write_text("# nothing yet\n")
    assert settings.care_share(tmp_path) == 0.25


def test_the_students_own_check_and_status_say_the_same(tmp_path, capsys):
    folder = tmp_path / SLUG
    folder.mkdir()
    notebook = sample_class.handed_in(SLUG, {"softmax": SEEDED})
    path = folder / f"{SLUG}.ipynb"
    nbformat.write(notebook, path)
    assert cli.main(["check", "--json", str(path)]) == 1
    said = {one["exercise"]: one for one in json.loads(capsys.readouterr().out)["exercises"]}
    one = said["softmax"]
    assert one["earned"] == 0.75 * one["points"]
    assert "right. One thing to mend" in one["message"]
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name == "check_softmax":
            cell.outputs = [nbformat.v4.new_output("stream", text=one["message"])]
    nbformat.write(notebook, path)
    read = {found.name: found for found in status.read_one(path).exercises}
    assert (read["softmax"].state, read["softmax"].earned) == (status.DONE, one["earned"])


def test_the_report_counts_who_forgot_care(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "ada")
    hand_in_careless(course, "ben")
    grade(course)
    assert cli.main(["report", "--course", str(course), "--to", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "class.html").read_text(encoding="utf-8")
    row = page[page.index("<tr><td>softmax</td>") :].partition("</tr>")[0]
    assert row.count("<td>1</td>") == 2
    assert row.startswith("<tr><td>softmax</td><td>1</td><td>1</td><td>–</td>")
    assert "right, without care" in page


def test_the_reason_stands_in_the_spreadsheet(tmp_path):
    course = make_course(tmp_path)
    hand_in_careless(course, "ben")
    grade(course)
    assert cli.main(["report", "--course", str(course), "--to", str(tmp_path / "report")]) == 0
    with open(tmp_path / "report" / "scores.csv", newline="", encoding="utf-8") as stream:
        rows = {row["exercise"]: row for row in csv.DictReader(stream)}
    assert rows["softmax"]["reason"].startswith("softmax: right.")
