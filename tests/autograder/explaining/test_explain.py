"""The command explains why a student lost points; what it prints of the call is what happens."""

import hashlib

import pytest
from nbgrader.api import Gradebook

from autograder import ROOT
from autograder.explaining import program
from autograder.grading.classroom.folders import Course
from tests.autograder.explaining.conftest import ANSWERS, LOST
from tests.autograder.explaining.here import Here
from tests.autograder.small_class import SLUG

pytestmark = pytest.mark.filterwarnings("ignore:bubblewrap ")
SHOWN = sorted(LOST.keys() - {"ends", "syntax"})


@pytest.mark.parametrize("student", SHOWN)
def test_the_program_prints_what_is_said_and_tells_the_answers_apart(told, student):
    found = told(student)
    library = "import torch\nfrom attention.getting_started import *"
    answers = ANSWERS[student][LOST[student]], ""
    prints = [program.by_student(found["program"], Here(), [library, one]) for one in answers]
    assert program.plain(prints[0]) != program.plain(prints[1])
    if student == "inputs":  # what it prints is as it should be: the check itself is shown
        assert "AUTOGRADER_SEED" in found["program"]
    else:
        assert prints == found["shown"]


@pytest.mark.parametrize("student", sorted({*SHOWN} - {"inputs", "care"}))  # only noted
def test_the_line_is_one_of_the_checks(told, student):
    place, text = told(student)["The check"].splitlines()[:2]
    path, number = place.split(":")
    assert path == "autograder/checks/getting_started.py"
    assert text.strip() in (ROOT / path).read_text(encoding="utf-8").splitlines()[int(number) - 1]


def test_all_that_an_instructor_asks_is_there(told):
    found = told("value")
    assert found["head"] == f"value · {SLUG} · softmax · 0 of 2 points"
    assert found["The answer that was graded"] == "def softmax(scores, dim):\n    return scores\n\n"
    assert "got       a sum of 2.30259 in row 0\n" in found["The verdict"]
    assert found["The check"].count("    “") > 2  # words of the lesson on which it rests


def test_care_is_told_as_care(told):
    found = told("care")["The check"]
    assert "a matter of care" in found
    assert "It rests on" not in found


def test_where_a_process_ended_the_call_is_shown_and_not_run(told):
    found = told("ends")
    assert "had to be stopped: it ended itself with status 3, in this call" in found["note"]
    assert "softmax(" in found["program"]
    assert [one[:8] for one in found["shown"]] == ["tensor(["]  # what the course's own gives


def test_where_nothing_is_defined_no_call_is_made_up(told):
    found = told("syntax")
    assert "the notebook defines no softmax of its own" in found["note"]
    assert "SyntaxError" in found["The verdict"] and not found["program"]


NOTHING = {
    ("right", "softmax", "00"): "right's softmax was taken for right, 2 of 2 points",
    ("blank", "softmax", "00"): "blank's softmax was left open",
    ("damaged", "softmax", "00"): f"nothing of what damaged handed in for {SLUG} could be graded: ",
    ("late", "softmax", "00"): "is not graded yet: run autograder grade --lesson 00 --student late",
    ("nobody", "softmax", "00"): "'nobody' handed in nothing for 00_getting_started; who did: ",
    ("value", "sofmax", "00"): "'sofmax'; there are: uniform_average, softmax, weighted_average",
    ("value", "softmax", "99"): f"no lesson is called '99'; there are: {SLUG}",
}


@pytest.mark.parametrize("asked", NOTHING, ids="-".join)
def test_where_there_is_nothing_to_explain_a_sentence_says_so(run, asked):
    status, out, err = run(*asked)
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


def test_what_has_changed_since_the_grading_is_told(changed, run):
    with Gradebook(Course(changed).db_url, "attention") as book:
        book.find_grade("check_softmax", SLUG, SLUG, "value").manual_score = 1.5
        book.db.commit()
    folder = changed / "class" / "autograded" / "value" / SLUG
    reasons, notebook = folder / "reasons.json", folder / f"{SLUG}.ipynb"
    said = reasons.read_text(encoding="utf-8").replace("the weights do not sum", "the sky is grey")
    reasons.write_text(said, encoding="utf-8")
    _, out, _ = run("value", "softmax", folder=changed)
    assert "softmax · 1.5 of 2 points, changed by hand: the check gave 0\n" in out
    assert "What the check says today" in out
    mended = notebook.read_text(encoding="utf-8").replace('scores"', 'scores.softmax(dim)"')
    notebook.write_text(mended, encoding="utf-8")
    _, out, _ = run("value", "softmax", folder=changed)
    assert "Asked again, the answer passes" in out
