"""Where the check itself is wrong, that is said first, and nothing that was not computed."""

import dataclasses
import textwrap
from types import SimpleNamespace

import pytest

from autograder import ROOT
from autograder.checking.toolbox import registry
from autograder.explaining import call, explanation, replay
from autograder.explaining.on_record import Case
from autograder.grading.classroom.folders import Handed
from tests.autograder.explaining.here import Here
from tests.autograder.explaining.test_call import cells

SLUG, EXERCISE = "00_getting_started", "uniform_average"
PATH = ROOT / "autograder" / "checks" / "getting_started.py"
RIGHT = "def uniform_average(values):\n    return values.sum(0) / len(values)"
ROUNDED = "def uniform_average(values):\n    return (values / len(values)).sum(0)"
OTHER = "def uniform_average(values):\n    return values.mean(0)[None]"
CLOSE = "expect.close(average, expected, what, atol=NEAR)"
IS_WRONG = "The course's own answer fails this check, too: the check is wrong"


@pytest.fixture
def wrong(monkeypatch):
    """The check of an exercise with another expected value."""
    return changed(monkeypatch, "torch.tensor([3.0, 1.0]", "torch.tensor([3.0, 1.5]")


def changed(monkeypatch, before, after):
    """The check of the exercise with another text at one place."""
    item = registry.find(EXERCISE)
    text = PATH.read_text(encoding="utf-8")
    mended = text.replace(before, after, 1)
    assert mended != text
    names = {"__name__": "autograder.checks.getting_started"}
    monkeypatch.setattr(registry, "_checks", {**registry._checks})
    exec(compile(mended, str(PATH), "exec"), names)
    assert registry.find(EXERCISE).run is not item.run
    return registry.find(EXERCISE)


def judged(item, answer):
    """(the Replay, the Call) of an answer."""
    before = cells(SLUG, answer)
    made = replay.replay(item, Here(), before, "  seed      77", 0.25)
    return made, call.Caller(item, Here(), before).of(made)


def told(item, monkeypatch, answer):
    """The text that is printed."""
    part = {"name": EXERCISE, "score": 0, "max": 1, "reason": "  seed      77"}
    case = Case(
        Handed(SLUG, "s28"),
        EXERCISE,
        {},
        answer,
        [],
        "",
        "",
        part,
        SimpleNamespace(care_share=0.25),
    )
    monkeypatch.setattr(replay, "sources", lambda *_: cells(SLUG, answer))
    return explanation.text(explanation.explain(case, Here()), names=False)


def test_the_courses_own_answer_is_asked_first(wrong, monkeypatch):
    out = told(wrong, monkeypatch, RIGHT)
    first = out.partition("── The answer that was graded")[0]
    assert f"{IS_WRONG}.\nWhether the student's answer is wrong as well" in first
    assert "expected  [1] = 1.5" in first  # what it says of the course's own answer
    lines = PATH.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "expect.close(student(by_hand)" in line)
    assert f"Mend autograder/checks/getting_started.py:{number}" in first
    assert "`autograder verify 00`" in first and "`autograder grade --preview`" in first
    assert f"{EXERCISE}: correct." not in out


def test_where_both_answers_reply_the_same_the_check_asks_again(wrong):
    made, found = judged(wrong, RIGHT)
    assert "AUTOGRADER_SEED" in found.program
    assert found.prints == found.right


def test_of_an_answer_that_fails_otherwise_no_more_is_said(wrong, monkeypatch):
    made, found = judged(wrong, OTHER)
    assert made.refused is not None
    assert "tensor([[" in found.prints and "tensor([[" not in found.right  # what both gave
    out = told(wrong, monkeypatch, OTHER)
    assert f"{IS_WRONG}.\nWhether the student's answer is wrong as well" in out
    assert f"{EXERCISE}: correct." not in out


def test_of_a_right_check_nothing_of_this_is_said(monkeypatch):
    assert IS_WRONG not in told(registry.find(EXERCISE), monkeypatch, OTHER)


STRICT = "expect.true(torch.equal(average, values.mean(0)), what)"


def test_of_a_check_that_refuses_rounding_it_is_said_that_it_may_be_too_strict(monkeypatch):
    item = changed(monkeypatch, CLOSE, STRICT)
    made, found = judged(item, ROUNDED)
    assert made.failure is not None and made.refused is None
    assert found.note.startswith("In every call the answer gives what the course's own gives")
    assert "the check may be too strict. See “A check that was wrong”" in found.note
    _, found = judged(item, OTHER)
    assert "too strict" not in found.note


def test_where_there_is_no_answer_of_the_course_none_is_made_up():
    item = dataclasses.replace(registry.find(EXERCISE), lesson="nowhere")
    answer = """
        calls = []
        def uniform_average(values):
            calls.append(values)
            return values.mean(0) * len(calls)
    """
    made, found = judged(item, textwrap.dedent(answer))
    assert made.of_library == "" and made.refused is None
    assert "AUTOGRADER_SEED" in found.program and found.right == ""
