"""What the command says of exercises without points and of groups, and how little it prints."""

import json

import pytest

from autograder.commands import report
from autograder.explaining import explanation
from tests.autograder.small_class import SLUG

pytestmark = pytest.mark.filterwarnings("ignore:bubblewrap ")


@pytest.fixture
def optional(monkeypatch):
    """Let the exercise softmax be worth nothing in the report's rows."""

    def without_points(*arguments):
        rows = graded(*arguments)
        for one in (one for row in rows for one in row["exercises"] if one["name"] == "softmax"):
            one.update(score=0, max=0)
        return rows

    graded = report.graded
    monkeypatch.setattr(report, "graded", without_points)


def test_a_wrong_answer_to_an_optional_exercise_is_explained(run, optional):
    status, out, err = run("value", "softmax")
    assert (status, err) == (0, "")
    assert "· softmax · wrong, but optional: no points\n" in out
    assert "It prints" in out and "in the same way: 1." in out


def test_a_right_answer_to_an_optional_exercise_is_not(run, optional):
    status, _, err = run("right", "softmax")
    assert status == 1 and "the check took right's softmax for right" in err


def share(course, *students, source):
    record = {SLUG: {who: {"from": source, "digest": ""} for who in students}}
    (course / "class" / "shared.json").write_text(json.dumps(record))


def test_the_work_of_a_group_counts_as_one(changed, run):
    share(changed, "another-value", source="value")
    _, out, _ = run("value", "softmax", folder=changed)
    assert "handed in by" not in out and "in the same way: 0." in out


def test_who_handed_in_for_the_group_is_said(changed, run):
    share(changed, "value", source="another-value")
    _, out, _ = run("value", "softmax", folder=changed)
    assert out.partition("\n")[0].endswith(" · handed in by another-value for their group")
    assert "in the same way: 0." in out


def test_folded_hints_are_left_out_and_the_text_is_last(run):
    _, out, _ = run("value", "softmax")
    assert "<details" not in out
    assert explanation.HINTS.sub("", "a\n<details>\n<b>c</b>\n</details>\n\nd") == "a\nd"
    titles = [line for line in out.splitlines() if line.startswith("── ")]
    assert titles[-1] == "── What the lesson asks for ──"


def test_all_words_of_the_lesson_on_which_the_check_rests_are_printed(run, told):
    _, out, _ = run("value", "softmax")
    phrases = told("value")["rests_on"]
    assert len(phrases) > 2
    assert "".join(f"    “{one}”\n" for one in phrases) in out
