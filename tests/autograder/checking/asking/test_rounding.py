"""Who computes in float32 keeps all points, whatever the seed; who is wrong by more does not."""

import math

import pytest
import torch

from autograder.checking.asking.right_answer import asked
from autograder.checking.asking.rounding import alike, rooms
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import LocalAnswer

SEEDS = range(64)


def weigh(q, k):
    """The right answer: of a padding key, the last, nobody takes anything."""
    scores = q @ k.T / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores[:, :-1], -1)
    return torch.cat([weights, torch.zeros_like(weights[:, :1])], -1)


def by_scores(change):
    """An answer that collects its scores in a tensor of zeros, and makes of them what it makes."""

    def collected(q, k):
        scores = torch.zeros(len(q), len(k))
        for i, one in enumerate(q):
            for j, other in enumerate(k):
                scores[i, j] = change((one * other).sum() / math.sqrt(len(one)))
        scores[:, -1] = -math.inf
        return torch.softmax(scores, -1).to(q.dtype)

    return collected


def check_of_weigh(student, draw):
    for scale in (1.0, 30.0):  # scores of about 1, and of about 1000
        q, k = scale * draw.normal(3, 5), scale * draw.normal(4, 5)
        expect.close(student(q, k), weigh(q, k), "the weights are wrong")
        expect.gradients(student, weigh, q, k, cotangent=draw.normal(3, 4))


WEIGH = Check("weigh", "nowhere", check_of_weigh, reference=weigh)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_in_float32_cost_nothing(seed):
    assert (
        run_check(WEIGH, LocalAnswer(by_scores(lambda score: score)), seed, explain=False) is None
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda score: score * (1 + 1e-4),  # more than float32 rounds, of whatever size
        lambda score: score.round(decimals=3),
        lambda score: score.half(),
    ],
)
def test_what_float32_does_not_explain_is_wrong(change):
    answer = LocalAnswer(by_scores(change))
    assert all(run_check(WEIGH, answer, seed, explain=False) for seed in SEEDS[:8])


def test_what_is_exactly_0_has_no_rounding():
    def leaky(q, k):
        weights = weigh(q, k)
        return torch.cat([weights[:, :-1], weights[:, -1:] + 1e-9], -1)

    def check(student, draw):
        q, k = draw.normal(3, 5), draw.normal(4, 5)
        expect.true((student(q, k)[:, -1] == 0).all(), "padding gets some weight")

    item = Check("weigh", "nowhere", check, reference=weigh)
    assert "padding gets some weight" in str(run_check(item, LocalAnswer(leaky), 1))


def test_the_room_grows_with_the_numbers_that_go_in():
    found = [rooms(WEIGH, seed) for seed in SEEDS[:8]]  # a call, its gradients, and so on
    assert [one.request for one in asked(WEIGH, 1)[0][:3]] == ["call", "gradients", "call"]
    small, large = (max(room[number] for room in found) for number in (0, 2))
    assert 0 < small < 1e-5 < large


def test_a_reply_is_set_beside_the_right_one_to_the_same_question_only():
    """A check that asks on by what came back asks others, at the places of those of the right."""

    def by_way_of_a_million(x):  # float32 has one digit left there
        return x + 1e6 - 1e6

    def check(student, draw):
        x = 100 * draw.normal(4)
        with expect.stage("first"):
            expect.close(student(x), x, "the first is wrong")
        if not expect.stands("first"):
            student(x + 1)
        with expect.stage("second"):
            expect.close(student(x + 0.3), x + 0.3, "the second is wrong")
        student(x + 0.1)

    def wrong_once(x):
        asked_before.append(x)
        return by_way_of_a_million(x) + 10 * (len(asked_before) == 1)

    asked_before, stages = [], (("first", 1.0), ("second", 1.0))
    item = Check("way", "nowhere", check, reference=by_way_of_a_million, stages=stages)
    assert run_check(item, LocalAnswer(wrong_once), 1, explain=False).lost == ("first",)


@pytest.mark.parametrize(("off", "near"), [(1e-4, True), (1e-2, False)])
def test_wrong_replies_are_compared_by_the_sizes_of_their_own_numbers(off, near):
    assert alike(torch.tensor([1e3, 1.0]), torch.tensor([1e3, 1.0 + off]), 0.0) is near


def test_replies_of_another_build_than_the_right_one_have_no_room():
    assert not alike(torch.ones(2), torch.ones(2) + 1e-9, ("ValueError", "no"))
    assert alike(torch.ones(2), torch.ones(2) + 1e-9, 1e-8)
