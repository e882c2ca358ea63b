"""Checks of lesson 00."""

import math

import torch

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
NEAR = 1e-3  # beside values in the hundreds: a sum near 0 has the rounding of its large summands


@check(
    asks={
        "dtype": "(d_v,) their mean, of the same dtype",
    },
    rests_on=(
        "Average the value vectors, all of them equally important",
        "Axis 0 counts the vectors and disappears",
        "(d_v,) their mean, of the same dtype",
    ),
)
def uniform_average(student, draw):
    """The mean over the rows."""
    values = draw.normal(7, 5, scale=300.0)
    average = student(values)
    expect.shape(average, (5,), axes="d_v,")
    expect.dtype(average, F64)

    by_hand = torch.tensor([[1.0, 0.0], [3.0, 4.0], [5.0, -1.0]], dtype=F64)
    expected = torch.tensor([3.0, 1.0], dtype=F64)
    expect.close(student(by_hand), expected, "the average of (1, 0), (3, 4), (5, -1) is wrong")

    columns = [math.fsum(values[:, j].tolist()) / 7 for j in range(5)]
    expected = torch.tensor(columns, dtype=F64)
    what = "the average differs from one computed in loops"
    expect.close(average, expected, what, atol=NEAR)
    with expect.care():
        again, what = student(draw.strided(values)), "another memory layout gives another mean"
        expect.close(again, expected, what, atol=NEAR)
    with expect.care():
        what = "the average of one vector is not that vector"
        expect.close(student(values[:1]), values[0], what, atol=NEAR)
    with expect.care():
        narrow, what = student(values[:, :1]), "the average of vectors of one number each is wrong"
        expect.close(narrow, expected[:1], what, atol=NEAR)


@check(
    asks={
        "dtype": "same shape and dtype as `scores`",
        "any shape": "for scores of any shape",
    },
    rests_on=(
        "Write the softmax along the axis `dim`, for scores of any shape",
        "weights that are not negative and sum to 1 along one axis",
        "Scores of ±1000 must give finite weights",
        "and a score of −∞ the weight 0",
        "adding the same number $c$ to all scores changes no weight",
    ),
    stages={"ordinary scores": 1, "scores of ±1000 and −∞": 1},
)
def softmax(student, draw):
    """Not negative, sums to 1 along dim, stable, shift-invariant; -inf gets the weight 0."""
    log = math.log
    by_hand = torch.tensor([[0.0, log(2), log(5)], [log(6), 0.0, 0.0]], dtype=F64)
    scores = draw.normal(2, 5, 7, scale=3.0)
    with expect.stage("ordinary scores"):
        weights = student(by_hand, dim=1)
        expect.shape(weights, (2, 3))
        expect.dtype(weights, F64)
        expect.rows_sum_to_one(weights, 1, "the weights do not sum to 1 along dim=1")
        expected = torch.tensor([[1.0, 2.0, 5.0], [6.0, 1.0, 1.0]], dtype=F64) / 8
        what = "the softmax of [[0, log 2, log 5], [log 6, 0, 0]] along dim=1 is wrong"
        expect.close(weights, expected, what)

        for dim in (1, 0, -1):
            weights = student(draw.strided(scores), dim=dim)
            expect.shape(weights, (2, 5, 7))
            expect.rows_sum_to_one(weights, dim, f"the weights do not sum to 1 along dim={dim}")
            expected = torch.softmax(scores, dim)
            expect.close(
                weights, expected, f"the weights along dim={dim} differ from torch.softmax"
            )
        for shape, dim in (((7,), 0), ((4, 2, 3, 5), 2)):
            _of_any_shape(student, draw.normal(*shape), dim)
    with expect.stage("scores of ±1000 and −∞"):
        _stays_stable(student)
    for shape, dim in (((3, 1, 5), 1), ((1, 2, 3, 5), 2)):
        with expect.stage("ordinary scores"), expect.care("any shape"):
            _of_any_shape(student, draw.normal(*shape), dim)


def _of_any_shape(student, scores, dim):
    shape = tuple(scores.shape)
    weights = student(scores, dim=dim)
    expect.shape(weights, shape)
    what = f"for scores of shape {shape} the weights along dim={dim} are wrong"
    expect.close(weights, torch.softmax(scores, dim), what)


def _stays_stable(student):
    """Scores of ±1000 side by side, a large common shift, and -inf."""
    large = torch.tensor([[1000.0, 999.0, 998.0], [-1000.0, -1001.0, -1002.0]], dtype=F64)
    weights = student(large, dim=1)
    expect.finite(weights, "with scores of ±1000 the weights are not finite")
    exponentials = [math.exp(-shift) for shift in (0, 1, 2)]
    row = [value / math.fsum(exponentials) for value in exponentials]
    expected = torch.tensor([row, row], dtype=F64)
    expect.close(weights, expected, "adding the same number to every score changes the weights")

    apart = torch.tensor([[1000.0, -1000.0, 1000.0], [-1000.0, 0.0, 1.0]], dtype=F64)
    weights = student(apart, dim=1)
    expect.finite(weights, "with 1000 and -1000 in one slice the weights are not finite")
    what = "the softmax of [[1000, -1000, 1000], [-1000, 0, 1]] along dim=1 is wrong"
    expect.close(weights, torch.softmax(apart, 1), what)

    rows = [[0.0, -math.inf, 0.0], [-math.inf, -math.inf, 5.0], [-1000.0, -math.inf, -1000.0]]
    hidden = torch.tensor(rows, dtype=F64)
    expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]], dtype=F64)
    weights = student(hidden, dim=1)
    expect.finite(weights, f"in {rows} a score of -inf spoils its slice")
    expect.close(weights, expected, "a score of -inf should get the weight 0")


@check(rests_on=("row i is the sum over j of weights[i, j] · values[j]",))
def weighted_average(student, draw):
    """One convex combination per query."""
    weights = torch.softmax(draw.normal(5, 7, scale=2.0), 1)
    values = draw.normal(7, 3, scale=100.0)
    _agrees_with_the_hand(student)
    context = student(draw.strided(weights), draw.strided(values))
    expect.shape(context, (5, 3), axes="T_q, d_v")
    what = "the contexts differ from a double loop"
    expect.close(context, _in_loops(weights, values), what, atol=NEAR)

    many = torch.softmax(draw.normal(40, 9, scale=2.0), 1)
    context = student(many, values[:1].expand(9, 3))
    what = "averaging equal values gives something else"
    expect.close(context, values[:1].expand(40, 3), what, atol=NEAR)
    for T_q, T_k, d_v in ((1, 7, 3), (5, 7, 1), (5, 1, 3)):
        some = weights[:T_q] if T_k == 7 else torch.ones(T_q, 1, dtype=F64)
        what = f"with T_q={T_q}, T_k={T_k}, d_v={d_v} a context is wrong"
        with expect.care():
            context = student(some, values[:T_k, :d_v])
            expect.shape(context, (T_q, d_v), axes="T_q, d_v")
            expect.close(context, _in_loops(some, values[:T_k, :d_v]), what, atol=NEAR)


def _agrees_with_the_hand(student):
    """First with columns that sum to 1 as well, then with columns that do not."""
    values = torch.tensor([[4.0, 0.0], [8.0, 10.0], [20.0, -10.0]], dtype=F64)
    for rows, expected in (
        ([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]], [[6.0, 5.0], [14.0, 0.0], [12, -5]]),
        ([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]], [[9.0, 0.0], [5.0, 2.5]]),
    ):
        context = student(torch.tensor(rows, dtype=F64), values)
        expect.shape(context, (len(rows), 2), axes="T_q, d_v")
        expect.dtype(context, F64)
        what = f"with weights {rows} and values (4, 0), (8, 10), (20, -10) a context is wrong"
        expect.close(context, torch.tensor(expected, dtype=F64), what)


def _in_loops(weights, values):
    rows = [
        [
            math.fsum(weights[i, k].item() * values[k, j].item() for k in range(len(values)))
            for j in range(values.shape[1])
        ]
        for i in range(len(weights))
    ]
    return torch.tensor(rows, dtype=F64)
