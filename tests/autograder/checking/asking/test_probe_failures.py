"""When two exceptions say the same."""

import pytest
import torch

from autograder.checking.asking.probe_failures import refuse
from autograder.checking.asking.questions import Question, Replied
from autograder.checking.toolbox.expect import CheckFailed
from autograder.inside.answer import LEFT_BEHIND


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


@pytest.mark.parametrize("wanted", [torch.zeros(3), (1.0, torch.zeros(3)), {"mean": torch.ones(1)}])
def test_a_tensor_on_the_cpu_is_refused_where_a_tensor_is_wanted(wanted):
    question = Question(0, "call", ((),), probe="device")
    got = Replied("value", torch.zeros(3), (LEFT_BEHIND,))
    with pytest.raises(CheckFailed, match="left on the CPU"):
        refuse(question, got, Replied("value", wanted), got)


def test_a_tensor_in_place_of_plain_numbers_is_not_said_to_be_left_on_the_cpu():
    question = Question(0, "call", ((),), probe="device")
    got = Replied("value", torch.zeros(3), (LEFT_BEHIND,))
    refuse(question, got, Replied("value", (0.1, 0.9, 1.0)), got)


@pytest.mark.parametrize(
    ("right", "given", "refused"),
    [
        (2.0e-9, 2.0006e-9, False),  # terms of size 1000 cancel: their rounding is left
        (1.0e-3, 1.0003e-3, True),
        (1.0e-3, 1.000001e-3, False),
        (2.0e-9, 1.0e-7, True),
    ],
)
def test_a_gradient_that_is_left_where_terms_cancel_has_their_rounding(right, given, refused):
    question = Question(0, "call", ((torch.ones(1),),), probe="gradients")
    got, wanted = (
        Replied("value", ({"w": torch.tensor([1e-12, one], dtype=torch.float64)}, ()))
        for one in (given, right)
    )
    if not refused:
        refuse(question, got, wanted, wanted)
        return
    with pytest.raises(CheckFailed, match="the gradient of w is wrong"):
        refuse(question, got, wanted, wanted)


@pytest.mark.parametrize(("off", "refused"), [(9e-6, False), (9e-3, True)])
def test_in_float32_a_gradient_that_is_0_is_as_large_as_the_rounding_of_the_others(off, refused):
    """A bias of the keys changes no weight: what arrives there is rounding."""
    question = Question(0, "call", ((torch.ones(1),),), probe="gradients")
    got, wanted = (
        Replied("value", ({"weight": torch.tensor([3.0]), "bias": torch.tensor([one])}, ()))
        for one in (off, 2e-8)
    )
    if not refused:
        refuse(question, got, wanted, got)
    else:
        with pytest.raises(CheckFailed, match="the gradient of bias is wrong"):
            refuse(question, got, wanted, got)
