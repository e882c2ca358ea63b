"""``autograder mistake`` prints a card, or the answer, and where it is to stand."""

import pytest

from autograder.commands import cli
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Exercise, Result
from tests.autograder.small_class import SLUG, hand_in, make_course

SLIP = """\
    powers = torch.exp(scores - scores.amin(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)"""
ODD = '    """Zoe."""\n    return scores.sort(dim=dim).values - 7  # \x1b]0;owned\x07'


@pytest.fixture
def mistake(tmp_path, capsys):
    """Hand in an answer to softmax as zoe, run the command, and return what it said."""
    course = make_course(tmp_path)

    def command(body, exercise="softmax", student="zoe"):
        hand_in(course, "zoe", answers={"softmax": f"def softmax(scores, dim):\n{body}"})
        words = ["mistake", "00", exercise, "--course", str(course), "--from", student]
        status = cli.main(words)
        out, err = capsys.readouterr()
        assert status == bool(err) and "zoe" not in out
        return out + err

    return command


def test_an_edit_of_the_right_answer_is_a_card(mistake, monkeypatch):
    monkeypatch.setattr("autograder.commands.mistake.own_folder", lambda: None)
    said = mistake(SLIP)
    assert "Below the heading of the exercise in autograder/mistakes/getting_started.md" in said
    assert "+ shifted = scores - (scores.amin(" in said


def test_what_no_edit_is_like_is_printed_to_be_stored_as_a_function(mistake, monkeypatch, tmp_path):
    monkeypatch.setattr("autograder.commands.mistake.own_folder", lambda: None)
    said = mistake(ODD)
    assert "In autograder/mistakes/getting_started.py" in said
    assert '@mistake("softmax", hint="…")' in said
    assert said.endswith("def softmax(scores, dim):\n    return scores.sort(dim=dim).values - 7\n")
    monkeypatch.setattr("autograder.commands.mistake.own_folder", lambda: tmp_path / "mine")
    assert "mine/mistakes/own_for_getting_started.py" in mistake(ODD)


def test_where_there_is_no_such_answer_it_says_so(mistake):
    assert "no student is called 'nobody'" in mistake(ODD, student="nobody")
    assert "no exercise 'no_such'" in mistake(ODD, exercise="no_such")
    assert "defines no function or class 'softmax'" in mistake("    return (")


def test_an_answer_that_earned_its_points_is_printed_with_a_word(mistake, tmp_path):
    folder = tmp_path / "class/autograded/zoe" / SLUG
    folder.mkdir(parents=True)
    for part, told in (
        (Exercise("softmax", 2, 2), "# The check took this answer for right: 2 of 2 points.\n#"),
        (
            Exercise("softmax", 1.5, 2, "x", is_careless=True),
            "# The check took this answer for right but for care: 1.5 of 2 points.\n#",
        ),
        (Exercise("softmax", 0, 2, "x"), "# No edit"),
    ):
        records.save_reasons(folder, Result("zoe", SLUG, [part]))
        assert mistake(ODD).startswith(told)
