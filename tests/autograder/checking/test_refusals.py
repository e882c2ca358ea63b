"""When two exceptions say the same."""

import pytest

from autograder.checking.questions import Replied


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("row 3 sums to 1.5000, not to 1", "1.5 in row 3", True),
        ("row 3 sums to 1.5", "row 4 sums to 1.5", False),
        ("row 3 sums to 1.5, not to 1", "a row does not sum to 1", False),
        ("an unknown name", "no such kernel", True),
    ],
)
def test_refusals_are_compared_by_their_numbers(one, other, alike):
    left, right = (Replied("raised", ("ValueError", words)) for words in (one, other))
    assert left.agrees(right) is right.agrees(left) is alike


def test_other_exceptions_are_compared_by_their_words():
    left, right = (Replied("raised", ("RuntimeError", words)) for words in ("mat1", "stack"))
    assert not left.agrees(right)
