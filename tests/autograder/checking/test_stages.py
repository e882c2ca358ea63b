"""Stages of an exercise are earned one by one."""

from dataclasses import replace

import pytest
import torch

from autograder.checking.run_check import OutOfOwnTime, run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import LocalAnswer
from autograder.settings import Care


def moments_check(student, draw):
    """The mean and the variance of each row, and, of an empty row, an error."""
    x = draw.normal(3, 7)
    with expect.stage("means"):
        expect.close(student(x)[0], x.mean(1), "the means are wrong")
    with expect.stage("variances"):
        with expect.care("large"):
            expect.close(student(100 * x)[1], (100 * x).var(1), "large ones are wrong")
        expect.close(student(x)[1], x.var(1), "the variances are wrong")
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
    asks=(("large", "of any size"), ("changes", "and nothing else")),
    stages=(("means", 2), ("variances", 1), ("errors", 1)),
)


def judged(answer, **how):
    return run_check(MOMENTS, LocalAnswer(answer), 7, **how)


def seeded(answer):
    def seeds(x):
        torch.manual_seed(0)
        return answer(x)

    return seeds


def wrong_means(x):
    return moments(x)[0] + 1, moments(x)[1]


def refuses_nothing(x):
    return x.mean(1), x.var(1) if x.numel() else x.sum(1)


def careless_where_it_is_wrong(x):
    mean, variance = moments(x)
    return mean, variance + (1 if variance.max() < 100 else 2)


@pytest.mark.parametrize("said", ["diagnose", "where_it_fails"])
def test_who_asks_why_for_too_long_takes_no_points(said, monkeypatch):
    def ends(*_):
        raise OutOfOwnTime

    monkeypatch.setattr(f"autograder.checking.run_check.{said}", ends)
    assert judged(wrong_means).cost == 0.5


GONE = "the values are right, but something else is changed"
LOST = {  # what an answer loses of its points, and what is said of it
    wrong_means: (0.5, "2 of 4 points: means (2)"),
    lambda x: (x.mean(1), x.square().mean(1)): (0.5, "2 of 4 points: variances (1), errors (1)"),
    lambda x: (x.sum(1), x.sum(1)): (1.0, ""),
    seeded(moments): (0.25, "¼ of the points"),
    seeded(refuses_nothing): (
        0.25 + 0.25 * 0.75,
        f"1.75 of 4 points: errors (1)\n            ¼ of the rest goes for this: {GONE}",
    ),
    careless_where_it_is_wrong: (0.25, "1 of 4 points: variances (1)"),
    # what no expectation foresaw
    lambda x: (moments(x)[0], [[1.0], [2.0, 3.0]]): (0.25, "1 of 4 points: variances (1)"),
}


@pytest.mark.parametrize(("answer", "lost"), LOST.items())
def test_each_stage_is_earned_by_itself_and_says_what_it_costs(answer, lost):
    failure = judged(answer)
    assert failure.cost == pytest.approx(lost[0])
    assert str(failure).partition("  costs     ")[2].partition("\n  seed")[0] == lost[1]


def test_the_first_stage_that_is_lost_is_told():
    assert judged(wrong_means).what == "the means are wrong"
    assert judged(refuses_nothing).what == "an empty row should be refused"


def test_where_care_costs_nothing_it_is_told_beside_a_stage():
    failure = judged(seeded(refuses_nothing), rule=Care(0))
    assert failure.cost == 0.25
    assert f"this costs nothing: {GONE}" in str(failure)


def test_the_right_answer_loses_nothing_and_what_is_not_written_yet_earns_nothing():
    def stub(x):
        raise NotImplementedError("write me")

    assert judged(moments) is None
    assert (judged(stub).is_stub, judged(stub).cost) == (True, 1.0)


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
    failure = run_check(replace(item, asks=(("learning", "it learns"),)), LocalAnswer(Detached), 7)
    assert failure.cost == pytest.approx(1 / 3)
    assert "twice (1)" in failure.costs
    failure = run_check(replace(item, asks=(("gradients", "to x"),)), LocalAnswer(Detached), 7)
    assert (failure.cost, failure.lost) == (0.25, ())


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
