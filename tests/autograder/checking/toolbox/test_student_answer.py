"""What a check accepts of an answer: replies of the agreed form, whoever sends them."""

import pytest
import torch

from autograder.checking.toolbox.expect import CheckFailed
from autograder.checking.toolbox.student_answer import Module, Student, called_with
from autograder.inside.answer import LocalAnswer, Reply
from autograder.inside.messages.values import Foreign
from tests.autograder.half import Gain, half

ONE = torch.ones(2)


class Forger:
    """An answer that replies whatever it is told to."""

    def __init__(self, value):
        self.value = value

    def gradients(self, *_):
        return Reply(self.value)

    def parameters(self):
        return self.value


@pytest.mark.parametrize("found", [[ONE, None], (None, ONE)])
def test_gradients_are_a_tensor_or_none_for_each_floating_tensor(found):
    pair = {"weight": ONE, "fixed": None}, found
    assert Module(Forger(pair)).gradients(ONE, torch.tensor([1]), 3, ONE) == pair
    assert Student(Forger(pair)).gradients(ONE, torch.tensor([1]), 3, ONE) == found


@pytest.mark.parametrize(
    "pair",
    [
        ({}, torch.zeros(2, 3)),
        ({}, [ONE]),
        ({}, [ONE] * 3),
        ({}, [ONE, 1.0]),
        ({}, [ONE, Foreign("a set")]),
        ({}, "ab"),
        ({}, {"a": ONE, "b": ONE}),
        ([], [ONE, ONE]),
        ({"weight": [ONE]}, [ONE, ONE]),
        ({}, [ONE, ONE], 3),
        ({},),
        (),
    ],
)
def test_gradients_of_any_other_form_are_the_answers_fault(pair):
    for student in (Student(Forger(pair)), Module(Forger(pair))):
        with pytest.raises(CheckFailed, match="not a set of gradients"):
            student.gradients(ONE, torch.tensor([1]), ONE)


def test_parameters_are_named_tensors():
    assert Module(Forger({"weight": ONE})).parameters() == {"weight": ONE}
    assert Module(Forger({})).parameters() == {}


@pytest.mark.parametrize("named", [ONE, [ONE], None, {"weight": None}, {"weight": Foreign("x")}])
def test_parameters_of_any_other_form_are_the_answers_fault(named):
    with pytest.raises(CheckFailed, match="not named tensors"):
        Module(Forger(named)).parameters()


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        (["a b", "c"], "(['a b', 'c'])"),
        ((1, 2.5), "((1, 2.5))"),
        ([], "([])"),
        (list(range(9)), "(list of 9)"),
        (["x" * 40], "(list of 1)"),
        ([ONE], "(list of 1)"),
        ({"a": 1}, "(dict of 1)"),
        (ONE, "(tensor (2,) float32)"),
    ],
)
def test_what_an_answer_is_called_with_is_shown_where_it_is_short(argument, shown):
    assert called_with([argument], {}) == shown


def test_every_exchange_is_recorded():
    student = Student(LocalAnswer(half))
    student(torch.ones(2))
    student.gradients(torch.ones(2))
    student.outcome(torch.ones(2).long())
    assert [entry[0] for entry in student.record] == ["call", "gradients", "raised"]
    module = Student(LocalAnswer(Gain)).build(1.0)
    module.parameters()
    module(torch.ones(3))
    assert [entry[0] for entry in module.record] == ["parameters", "call"]
