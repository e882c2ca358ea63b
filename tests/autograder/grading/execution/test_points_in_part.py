"""Points in part, by stages and for care: every place where a class meets them says so."""

import csv
import json
import re

import pytest

from autograder import ROOT
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.notebook import records
from tests.autograder.small_class import grade, stored

SLUG, NAME = "05_scaled_dot_product_attention", "attention_backward"
STAGE = "with any d_k and leading axes"
PEOPLE = ("ada", "ben", "cleo", "dan", "eve")  # right, careless, in part, wrong, blank
CARELESS = """\
def attention_backward(q, k, v, weights, grad_context):
    torch.manual_seed(0)
    grad_weights = grad_context @ v.mT
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))
    grad_scores = grad_scores / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_context
"""
WRONG = "def attention_backward(q, k, v, weights, grad_context):\n    return q, k, 2 * v"


def answers():
    """By student, the cell that is not the solved one."""
    stage = stored(SLUG, NAME, "grad_v is right, grad_k is")
    return {"ada": {}, "ben": {NAME: CARELESS}, "cleo": {NAME: stage}, "dan": {NAME: WRONG}}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The folder of a graded class of five, and what the command said."""
    root = tmp_path_factory.mktemp("course")
    (root / "solutions").mkdir()
    (root / "solutions" / SLUG).symlink_to(ROOT / "solutions" / SLUG)
    for student, given in answers().items():
        sample_class.submit(sample_class.handed_in(SLUG, given), root, student, SLUG)
    sample_class.submit(sample_class.blank(SLUG), root, "eve", SLUG)
    return root, grade(root)[0]


def part(root, student):
    kept = records.load(root / "class" / "autograded" / student / SLUG)
    return next(one for one in kept.exercises if one.name == NAME)


@pytest.mark.long
def test_the_line_of_each_student_says_what_was_lost(graded):
    _, said = graded
    assert re.search(r"ada +14/14\n", said)
    assert re.search(rf"ben +13/14  lost: {NAME} \(1 of 4\)\n", said)
    assert re.search(rf"cleo +13/14  lost: {NAME} \(1 of 4\)\n", said)
    assert re.search(rf"dan +10/14  lost: {NAME}\n", said)


def test_the_report_says_what_became_of_each_exercise(graded, tmp_path):
    root, _ = graded
    assert cli.main(["report", "--course", str(root), "--to", str(tmp_path)]) == 0
    page = (tmp_path / "class.html").read_text(encoding="utf-8")
    row = page[page.index("<tr><td>attention_<wbr>backward</td>") :].partition("</tr>")[0]
    cells = re.findall(r"<td(?: class=said)?>([^<]*)</td>", row)
    assert cells[:6] == ["1", "1", "1", "1", "1", f"{STAGE}: 1"]
    with open(tmp_path / "scores.csv", newline="", encoding="utf-8") as stream:
        told = {row["student"]: row for row in csv.DictReader(stream) if row["exercise"] == NAME}
    assert [float(told[one]["score"]) for one in PEOPLE] == [4, 3, 3, 0, 0]
    assert f"costs     1 of 4 points: {STAGE} (1)" in told["cleo"]["reason"]


def test_the_feedback_says_why_and_what_it_costs(graded):
    root, _ = graded
    assert cli.main(["feedback", "--course", str(root)]) == 0
    for student, cost in (("ben", "¼ of 4 points"), ("cleo", f"1 of 4 points: {STAGE} (1)")):
        page = root / "class" / "feedback" / student / SLUG / f"{SLUG}.html"
        assert f"<b>Costs:</b> {cost}" in page.read_text(encoding="utf-8")


def test_the_students_own_check_says_in_part(graded, capsys):
    root, _ = graded
    path = root / "class" / "submitted" / "cleo" / SLUG / f"{SLUG}.ipynb"
    assert cli.main(["check", "--json", str(path)]) == 1
    found = {one["exercise"]: one for one in json.loads(capsys.readouterr().out)["exercises"]}
    assert (found[NAME]["earned"], found[NAME]["costs"]) == (3.0, f"1 of 4 points: {STAGE} (1)")
