"""Replies in the form of the right ones: mended without doubt, or left as they are."""

import pytest
import torch

from autograder.checking.diagnosis.forms import UNSAID, in_form

RIGHT = torch.tensor([[1.0], [2.0], [3.0]]).double()
FLAT = torch.tensor([1.0, 2.0, 3.0]).double()
MENDED = {
    "row": RIGHT.T,
    "without an axis": FLAT,
    "list of numbers": [1.0, 2.0, 3.0],
    "list of tensors": list(FLAT),
    "tuple of tensors": tuple(FLAT),
    "first of two": (RIGHT, FLAT[:2]),
    "second of two": (FLAT[:2], RIGHT),
    "whole numbers": RIGHT.long(),
}
LEFT = {
    "transposed": torch.ones(3, 2).T,
    "ragged": [[1.0], [2.0, 3.0]],
    "text": "1 2 3",
    "None": None,
    "too large": [2**63],
    "neither": (FLAT[:2], FLAT[:1]),
    "as it is": RIGHT,
    "narrow": RIGHT.float(),
}


@pytest.mark.parametrize("value", MENDED.values(), ids=MENDED)
def test_another_form_of_the_same_numbers_is_mended(value):
    made = in_form(value, RIGHT)
    assert made is not value
    assert torch.equal(made, RIGHT) and made.dtype == RIGHT.dtype


@pytest.mark.parametrize("value", LEFT.values(), ids=LEFT)
def test_what_has_no_such_form_stays(value):
    assert in_form(value, RIGHT) is value


def test_where_several_axes_fit_a_list_is_stacked_along_the_right_one():
    right = torch.arange(12.0).view(2, 2, 3)
    assert in_form(right.unbind(1), right).equal(right)
    assert in_form([2 * one for one in right], right).equal(2 * right)


def test_truth_values_and_numbers_stand_for_each_other():
    mask = torch.tensor([True, False, True])
    for dtype in (torch.int64, torch.float32):
        assert torch.equal(in_form(mask.to(dtype), mask), mask)
    assert in_form(2 * mask.int(), mask).dtype == torch.int32
    assert in_form(mask, FLAT).tolist() == [1.0, 0.0, 1.0]


def test_a_forgotten_result_is_marked_and_none_is_guessed():
    right = RIGHT, FLAT
    assert in_form(RIGHT, right)[1] is FLAT
    assert in_form(RIGHT.T, right, lambda _: UNSAID)[1] is UNSAID
    assert in_form((RIGHT,), right, lambda _: UNSAID)[1] is UNSAID
    swapped = torch.ones(2)
    assert in_form(swapped, right) is swapped
    assert in_form([RIGHT, FLAT], right) == right
    pair = (RIGHT, FLAT)
    assert in_form(pair, right) is pair


def test_two_numbers_in_one_tensor_are_two_results():
    right = torch.tensor(1.0), torch.tensor(2.0)
    assert [one.item() for one in in_form(torch.tensor([3.0, 4.0]), right)] == [3.0, 4.0]
