"""How a wrong reply relates to the right one: said where it holds, and only there."""

import itertools

import pytest
import torch
from hypothesis import given

from autograder.checking.asking.questions import Question
from autograder.checking.diagnosis.relations import between
from tests.autograder.values import plain_values

DRAW = torch.Generator().manual_seed(5)


def normal(*shape):
    return torch.randn(shape, generator=DRAW, dtype=torch.float64)


X, WIDE = normal(3, 5), normal(3, 5, 7)


def asking(*args, **kwargs):
    return Question(0, "call", (list(args), kwargs))


ASKED = asking(X)


def at(x, index, value):
    """A copy of ``x`` with other numbers in one place."""
    changed = x.clone()
    changed[index] = value
    return changed


SAID = {
    "dtype": (X.float(), X, "The values are right up to rounding, but their type is float32"),
    "all NaN": (X * torch.nan, X, "All numbers are NaN where finite ones belong."),
    "one NaN": (at(X, (0, 0), torch.nan), X, "1 of 15 numbers is NaN where a finite one belongs;"),
    "infinite": (at(X, 1, torch.inf), X, "5 of 15 numbers are infinite where finite ones belong;"),
    "a number": (torch.nan, 1.0, "The result is NaN where a finite number belongs."),
    "flat": (X.flatten(), X, "The numbers and their order are right; only the shape differs."),
    "zero": (0 * X, X + 1, "Every number is 0."),
    "sign": (-WIDE, WIDE, "Every number is -1 times the expected one."),
    "factor": (1.7 * WIDE, WIDE, "Every number is 1.7 times the expected one."),
    "root": (WIDE / 5**0.5, WIDE, "Every number is 0.447214 times the expected one (1 / √5, where"),
    "size": (3 * WIDE, WIDE, "Every number is 3 times the expected one (3 is a size of the argum"),
    "first of two": ((X, WIDE), X, "The first item of the result is right. It should be returned"),
    "exchanged": ((WIDE, X), (X, WIDE), "The first and the second item of the result are exchang"),
    "in a tuple": (
        (X, 2 * WIDE),
        (X, WIDE),
        "Of the result's items only the second is wrong: every number is 2 times the expected one",
    ),
    "reversed": ([1, 2, 3], [3, 2, 1], "The items are right, but in reversed order."),
    "order": (["b", "a", "c"], ["a", "b", "c"], "The items are right, but in another order."),
    "tensors": ([WIDE, X], [X, WIDE], "The items are right, but in reversed order."),
}


@pytest.mark.parametrize("name", SAID)
def test_what_holds_is_said(name):
    got, expected, sentence = SAID[name]
    question = asking(WIDE[..., 0].T) if name in ("root", "size", "factor") else ASKED
    assert between(got, expected, question).startswith(sentence)


def test_of_random_tensors_nothing_is_said():
    for shape in itertools.product((1, 2, 3), (1, 2, 4), (2, 3)):
        for _ in range(8):
            got, expected = normal(*shape), normal(*shape)
            assert between(got, expected, asking(normal(*shape), normal(4))) == ""
            assert between(got.float(), expected, asking(got.square())) == ""
            assert between(got.softmax(-1), expected.softmax(-1), asking(got)) == ""
            assert between(got, normal(*shape, 2), asking(got.square())) == ""


def test_few_numbers_or_equal_ones_prove_nothing():
    two = torch.tensor([1.0, 2.0]).double()
    assert between(2 * two, two, asking()) == ""
    assert between(torch.ones(6), 3 * torch.ones(6), asking()) == ""
    assert between(torch.tensor(2.0), torch.tensor(1.0), asking()) == ""
    assert between([2], [1], asking()) == ""
    exchanged = torch.tensor([True, False, True]), torch.tensor([False, True, True])
    assert "numbers" not in between(*exchanged, asking())
    tiny = 1e-9 * normal(3, 4)
    assert "too" not in between(X[:, :4] + tiny, X[:, :4], asking())


@given(plain_values(), plain_values())
def test_any_two_plain_values_can_be_related(got, expected):
    assert isinstance(between(got, expected, ASKED), str)
