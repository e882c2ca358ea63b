"""The command explains why a student lost points; what it prints of the call is what happens."""

import hashlib

import pytest
from nbgrader.api import Gradebook

from autograder import ROOT
from autograder.explaining import running
from autograder.grading.classroom.folders import Course
from tests.autograder.explaining.conftest import ANSWERS, LOST
from tests.autograder.explaining.here import Process
from tests.autograder.small_class import SLUG, hand_in

pytestmark = pytest.mark.filterwarnings("ignore:bubblewrap ")
WITH_A_RESULT = sorted(LOST.keys() - {"ends", "syntax"})


def below(answer, program):
    """What a notebook prints that holds ``answer`` and, below it, ``program``."""
    process = Process()
    process.run("import torch\nfrom attention.getting_started import *")
    process.run(answer)
    outputs = process.run(program)
    error = outputs.get("error")
    return running.printed(
        outputs["stdout"], f"{error['name']}: {error['message']}" if error else ""
    )


@pytest.mark.parametrize("student", WITH_A_RESULT)
def test_the_program_prints_what_is_said(told, student):
    found = told(student)
    call = found["call"]
    assert call["program"]
    assert below(found["answer"], call["program"]) == call["prints"]
    right = f"from attention.getting_started import {LOST[student]}"
    assert below(right, call["program"]) == call["right"]
    assert running.plain(call["prints"]) != running.plain(call["right"])


@pytest.mark.parametrize("student", WITH_A_RESULT)
def test_the_line_is_one_of_the_checks(told, student):
    line = told(student)["assertion"]
    if student == "inputs":  # seen at every call, by no line of a check
        assert line is None
        return
    assert line["path"] == "autograder/checks/getting_started.py"
    text = (ROOT / line["path"]).read_text(encoding="utf-8").splitlines()
    assert line["text"].splitlines()[0] in text[line["number"] - 1]


def test_the_number_in_the_reason_is_that_of_the_program(run):
    _, out, _ = run("value", "softmax")
    assert "got       a sum of 2.30259 in row 0\n" in out
    assert "[0.0, 0.6931471805599453, 1.6094379124341003]" in out


def test_all_that_an_instructor_asks_is_there(run):
    status, out, _ = run("value", "softmax")
    assert status == 0
    assert f"value · {SLUG} · softmax · 0 of " in out
    assert "── The answer that was graded ──\ndef softmax(scores, dim):\n    return scores\n" in out
    assert 'expect.rows_sum_to_one(weights, 1, "the weights do not sum to 1 along dim=1")' in out
    assert "· `softmax`" in out.partition("── What the lesson asks for ──")[2]
    assert "in the same way: 1." in out
    assert "another-value" not in out


def test_others_are_named_only_on_demand(told):
    assert "names" not in told("value")["others"]
    assert told("value", "--names")["others"]["names"] == ["another-value"]
    others = told("value")["others"]
    tried = len(ANSWERS) - 1 + 1  # without this one, with the right one
    assert (others["tried"], others["alike"]) == (tried, 1)


def test_a_function_of_another_cell_is_shown(told):
    (helper,) = told("helper")["helpers"]
    assert helper.startswith("def uniform_average(values):")


def test_where_four_digits_hide_the_difference_more_are_printed(told):
    call = told("precision")["call"]
    assert "torch.set_printoptions(precision=12)" in call["program"]
    assert "set_printoptions" not in told("value")["call"]["program"]


def test_care_is_told_as_care(run):
    _, out, _ = run("care", "uniform_average")
    assert "right, without care: only the care share is lost" in out
    assert "expect.dtype(average, F64)" in out
    assert "It is a matter of care" in out
    assert "It rests on" not in out


def test_what_a_call_changes_is_shown(told):
    call = told("inputs")["call"]
    assert "modified=['argument 1']" in call["prints"]
    assert "modified=[]" in call["right"]


def test_where_a_process_ended_the_call_is_shown_and_not_run(told):
    call = told("ends")["call"]
    assert (
        "The answer had to be stopped: it ended itself with status 3, in this call" in call["note"]
    )
    assert "softmax(" in call["program"]
    assert (call["prints"], call["right"][:8]) == ("", "tensor([")


def test_where_nothing_is_defined_no_call_is_made_up(run):
    _, out, _ = run("syntax", "softmax")
    assert "No call failed: the notebook defines no softmax of its own." in out
    assert "SyntaxError" in out
    assert "It prints" not in out


NOTHING = {
    (
        "right",
        "softmax",
        "00",
    ): "there is nothing to explain: the check took right's softmax for right",
    ("blank", "softmax", "00"): "blank's softmax was not attempted or left open",
    ("damaged", "softmax", "00"): f"nothing of what damaged handed in for {SLUG} could be graded: ",
    ("late", "softmax", "00"): "is not graded yet: run autograder grade --lesson 00 --student late",
    ("nobody", "softmax", "00"): "'nobody' handed in nothing for 00_getting_started; who did: ",
    ("value", "sofmax", "00"): "'sofmax'; there are: uniform_average, softmax, weighted_average",
    ("value", "softmax", "99"): f"no lesson is called '99'; there are: {SLUG}",
}


@pytest.mark.parametrize("asked", NOTHING, ids="-".join)
def test_where_there_is_nothing_to_explain_a_sentence_says_so(run, asked):
    student, exercise, lesson = asked
    status, out, err = run(student, exercise, lesson=lesson)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert NOTHING[asked] in err


def test_nothing_is_written(course, run):
    def state():
        files = sorted(path for path in course.rglob("*") if path.is_file())
        return {path: hashlib.sha256(path.read_bytes()).digest() for path in files}

    before = state()
    for student in ("value", "right", "late"):
        run(student, "softmax")
    assert state() == before


def test_a_change_by_hand_is_told(changed, run):
    with Gradebook(Course(changed).db_url, "attention") as book:
        book.find_grade("check_softmax", SLUG, SLUG, "value").manual_score = 1.5
        book.db.commit()
    _, out, _ = run("value", "softmax", folder=changed)
    assert "softmax · 1.5 of 2 points, changed by hand: the check gave 0\n" in out


def test_another_answer_since_is_told(changed, run):
    hand_in(changed, "value")
    _, out, _ = run("value", "softmax", folder=changed)
    assert "the student handed in another answer since, which is not graded yet" in out
    assert "def softmax(scores, dim):\n    return scores\n" in out  # the one that was graded


def test_a_check_that_says_another_thing_today_is_told(changed, run):
    place = changed / "class" / "autograded" / "value" / SLUG / "reasons.json"
    text = place.read_text(encoding="utf-8")
    place.write_text(
        text.replace("the weights do not sum to 1", "the sky is grey"), encoding="utf-8"
    )
    _, out, _ = run("value", "softmax", folder=changed)
    assert "What the check says today, which is not what is on record" in out


def test_an_answer_that_passes_today_is_told(changed, run):
    path = changed / "class" / "autograded" / "value" / SLUG / f"{SLUG}.ipynb"
    text = path.read_text(encoding="utf-8").replace("return scores", "return scores.softmax(dim)")
    path.write_text(text, encoding="utf-8")
    _, out, _ = run("value", "softmax", folder=changed)
    assert (
        "the answer passes: the checks, the library or the limits have changed since"
        in " ".join(out.split())
    )
