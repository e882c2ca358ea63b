"""Stages of an exercise are earned one by one."""

import pytest
import torch

from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import LocalAnswer


def moments_check(student, draw):
    """The mean and the variance of each row, and, of an empty row, an error."""
    x = draw.normal(3, 7)
    with expect.stage("means"):
        expect.close(student(x)[0], x.mean(1), "the means are wrong")
    with expect.stage("variances"):
        expect.close(student(x)[1], x.var(1), "the variances are wrong")
        with expect.care():
            expect.close(student(100 * x)[1], (100 * x).var(1), "large ones are wrong")
    with expect.stage("errors"):
        expect.raises(student, ValueError, x[:, :0], what="an empty row should be refused")


def moments(x):
    """The right answer."""
    if x.shape[1] == 0:
        raise ValueError("no row may be empty")
    return x.mean(1), x.var(1)


MOMENTS = Check(
    "moments",
    "stages",
    moments_check,
    reference=moments,
    stages=(("means", 2), ("variances", 1), ("errors", 1)),
)


def judged(answer, **how):
    return run_check(MOMENTS, LocalAnswer(answer), 7, **how)


def test_the_right_answer_loses_nothing():
    assert judged(moments) is None


def test_each_stage_is_earned_by_itself_and_says_what_it_costs():
    failure = judged(lambda x: (moments(x)[0] + 1, moments(x)[1]))
    assert (failure.what, failure.cost, failure.is_careless) == ("the means are wrong", 0.5, False)
    assert "\n  costs     2 of 4 points: means (2)" in str(failure)

    failure = judged(lambda x: (x.mean(1), x.square().mean(1)))
    assert (failure.what, failure.cost) == ("the variances are wrong", 0.5)
    assert "\n  costs     2 of 4 points: variances (1), errors (1)" in str(failure)


def test_all_stages_lost_is_a_wrong_answer():
    failure = judged(lambda x: (x.sum(1), x.sum(1)))
    assert (failure.what, failure.cost, failure.costs) == ("the means are wrong", 1.0, "")


def test_care_costs_its_share_of_what_is_earned():
    def seeded(x):
        torch.manual_seed(0)
        return x.mean(1), moments(x)[1]

    assert judged(seeded).cost == 0.25

    def seeded_without_errors(x):
        torch.manual_seed(0)
        return x.mean(1), x.var(1) if x.numel() else x.sum(1)

    failure = judged(seeded_without_errors)
    assert failure.cost == pytest.approx(0.25 + 0.25 * 0.75)
    assert "costs     1.75 of 4 points: errors (1)\n" in str(failure)
    assert "¼ of the rest goes for this: the values are right, but" in str(failure)

    failure = judged(seeded_without_errors, care_share=0)
    assert failure.cost == 0.25
    assert "this costs nothing: the values are right, but" in str(failure)


def test_care_of_a_stage_that_is_lost_costs_nothing_more():
    def wrong(x):
        mean, variance = moments(x)
        return mean, variance + (1 if variance.max() < 100 else 2)

    assert judged(wrong).cost == 0.25


def test_a_result_that_no_expectation_foresaw_costs_its_stage():
    failure = judged(lambda x: (moments(x)[0], [[1.0], [2.0, 3.0]]))
    assert failure.cost == 0.25


def test_what_is_not_written_yet_earns_nothing():
    def half(x):
        raise NotImplementedError("write me")

    failure = judged(half)
    assert (failure.is_stub, failure.cost) == (True, 1.0)


def test_a_gradient_that_is_lost_costs_its_stage():
    def learned(student, draw):
        module = student.build()
        x = draw.normal(3, 2)
        with expect.stage("alone"):
            expect.close(module(x), x * 2, "alone")
        with expect.stage("twice"):
            expect.close(module(x, 2), x * 4, "twice")

    class Right(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

        def forward(self, x, times=1):
            return x * self.factor * times

    class Detached(Right):
        def forward(self, x, times=1):
            return x * (self.factor if times == 1 else self.factor.detach()) * times

    item = Check("Right", "stages", learned, reference=Right, stages=(("alone", 2), ("twice", 1)))
    assert run_check(item, LocalAnswer(Right), 7) is None
    failure = run_check(item, LocalAnswer(Detached), 7)
    assert failure.cost == pytest.approx(1 / 3)
    assert "twice (1)" in failure.costs


def test_what_is_likely_is_said_of_the_stage_that_is_lost():
    def check(student, draw):
        x = draw.normal(3, 2)
        with expect.stage("values"):
            expect.close(student(x).double(), x * 2, "the values are wrong")
        with expect.stage("slopes"):
            expect.gradients(student, lambda x: x * 2, x)

    item = Check(
        "doubled", "stages", check, reference=lambda x: x * 2, stages=(("values", 2), ("slopes", 1))
    )
    failure = run_check(item, LocalAnswer(lambda x: (x * 2).detach().float()), 7)
    assert failure.lost == ("slopes",)
    assert "No gradient" in failure.likely
    assert "float32" not in failure.likely
