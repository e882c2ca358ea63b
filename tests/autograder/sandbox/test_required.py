"""`--sandbox required` means it: every attempt to be graded behind less than it promises fails.

The attempts, and what each demands, are those that `make attacks` prints.
"""

import pytest

from tests.autograder.attacks import __main__ as command
from tests.autograder.attacks import required
from tests.autograder.sandbox.boxes import LESSON
from tests.needs import needs

# Those that import PyTorch anew, in a machine or for a user that is made for it.
SLOW = ("missing namespaces: a machine", "missing namespaces: none", "an ordinary")
TITLES = [
    pytest.param(title, marks=[pytest.mark.long] * title.startswith(SLOW))
    for title in required.ATTEMPTS
]


@needs("bubblewrap")
@pytest.mark.parametrize("title", TITLES)
def test_no_attempt_gets_through(title, tmp_path):
    assert required.ATTEMPTS[title](tmp_path)


def get_through(_):
    required.demand(False, "the class was read inside")


def break_off(_):
    raise OSError(f"no {LESSON}")


@pytest.mark.parametrize("attempt", [get_through, break_off])
def test_the_command_fails_where_an_attempt_gets_through_or_proves_nothing(
    attempt, monkeypatch, capsys
):
    monkeypatch.setattr(required, "ATTEMPTS", {"a window": lambda _: "closed", "a door": attempt})
    assert command.play_required() == 1
    said = capsys.readouterr().out
    assert "held         a window: closed" in said and "GOT THROUGH  a door: " in said
    assert "got through: 1 of 2" in said
