"""An answer that equals a known mistake gets its hint, and no other answer does."""

import pytest
import torch

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Check
from autograder.checking.toolbox.student_answer import Student
from autograder.inside.answer import LocalAnswer
from tests.autograder.half import F64, Gain, half, lines, raiser, stored
from tests.autograder.values import Agreeable


def third(x):
    return x / 3


def truncates(x):
    return torch.floor(x / 2)


def in_float32(x):
    return half(x.float())


def accepts_integers(x):
    return x / 2


def multiplies_shapes(x):
    return x @ x


# What is true of `third` without any stored mistake.
THIRD = "Every number is 0.666667 times the expected one."


@pytest.fixture
def hints(known):
    known.extend(
        stored(target, f"hint of {target.__name__}")
        for target in (third, truncates, in_float32, accepts_integers, multiplies_shapes)
    )
    known.append(stored(half))
    return known


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (third, third),
        (lambda x: x * (1 / 3), third),
        (lambda x: torch.div(x, 3), third),
        (lambda x: (0.5 * x).floor(), truncates),
        (lambda x: (x // 2).to(x.dtype), None),  # its gradient is another
        (lambda x: (x / 2).to(torch.float32), in_float32),
        (lambda x: 0.5 * x, accepts_integers),
        (lambda x: torch.mm(x, x), multiplies_shapes),
        (lambda x: x @ x, multiplies_shapes),
        (lambda x: x / 4, None),
        (lambda x: half(x).double() + 1e-4, None),
        (lambda x: x / 2 if x.dtype == F64 else x / 3, None),
        (lambda x: x.no_such_method(), None),
        (lambda x: None, None),
        (lambda x: Agreeable(), None),
        (raiser(RuntimeError("another reason")), None),
    ],
)
def test_an_answer_that_equals_a_mistake_gets_its_hint(judge, hints, answer, named):
    failure = judge(answer)
    said = [line for line in lines(failure) if "hint of" in line]
    assert said == ([f"  likely    hint of {named.__name__}"] if named else [])


def test_a_right_answer_among_the_stored_ones_gives_no_hint(judge, known):
    known.append(stored(half))
    assert judge(third).likely == THIRD


def test_rounding_of_float32_does_not_hide_a_mistake(judge, known):
    def check(student, draw):
        x = draw.normal(50).float()
        expect.close(student(x), x.exp(), "x")

    def forgets_exp(x):
        return x * x * 3

    known.append(stored(forgets_exp, "forgotten"))
    exponential = Check("half", "nowhere", check, reference=torch.exp)
    failure = judge(lambda x: 3.0 * x.pow(2.0) + 1e-7 * x, exponential)
    assert failure.likely == "forgotten"


def test_a_mistake_that_passes_is_nobodys_likeness(judge, known):
    known.append(stored(half, "wrongly called a mistake"))
    assert judge(third).likely == THIRD


def test_a_changed_input_tells_two_answers_apart(judge, known):
    def in_place(x):
        result = x / 2
        x.zero_()
        return result

    known.append(stored(in_place, "in place"))
    assert judge(in_place).likely == "in place"
    assert "in place" not in judge(lambda x: x / 2).likely


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
