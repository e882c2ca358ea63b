"""Checks of lesson 04. The oracles are loops over numbers, exact sums and known distributions."""

import math

import torch
from torch.nn import functional

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _of_reduced_rank(q, k, weights):
    """All scores (V q) · (U k), pair by pair."""
    V, U = weights["V"].tolist(), weights["U"].tolist()

    def score(query, key):
        return _dot([_dot(row, query) for row in V], [_dot(row, key) for row in U])

    return _tensor(
        [
            [[score(query, key) for key in keys] for query in queries]
            for queries, keys in zip(q.tolist(), k.tolist(), strict=True)
        ]
    )


@check(
    without={"gradients": "what is asked for is the matrix: nothing is learned through it"},
    asks={"dtype": "in the dtype wanted"},
    rests_on=(
        "bilinear score equals theirs, for every query and key",
        "W (d_q, d_k): qᵀ W k is the score of that kind",
    ),
)
def as_bilinear(student, draw):
    """qᵀ W k equals the score of the other kind."""
    for d in (9, 6):
        _of_dot_products(student, d)
    V, U = _tensor([[1.0, 1.0], [0.0, 2.0]]), _tensor([[0.0, 3.0, 0.0], [0.0, 0.0, 5.0]])
    W = student("reduced_rank", 0, {"V": V, "U": U})
    expect.shape(W, (2, 3), axes="d_q, d_k")
    expected = _tensor([[0.0, 3.0, 0.0], [0.0, 3.0, 10.0]])
    expect.close(W, expected, "a matrix of rank 2 worked by hand is wrong")
    _of_rank(student, draw, 3)
    with expect.care():
        _of_dot_products(student, 1)
    with expect.care():
        _of_rank(student, draw, 1, far=300.0)


def _of_dot_products(student, d):
    for kind, factor in (("dot", 1.0), ("scaled_dot", 1 / math.sqrt(d))):
        W = student(kind, d, {})
        expect.shape(W, (d, d), axes="d, d")
        floating = W.is_floating_point()
        expect.true(floating, "the matrix is made of whole numbers", W.dtype, "a float dtype")
        expected = factor * torch.eye(d, dtype=W.dtype)
        expect.close(W, expected, f"for {kind} with d = {d} the matrix is wrong", rtol=1e-5)


def _of_rank(student, draw, r, far=0.0):
    weights = {"V": draw.strided(draw.normal(r, 6) + far), "U": draw.strided(draw.normal(r, 8))}
    q, k = draw.normal(2, 5, 6), draw.normal(2, 7, 8)
    W = student("reduced_rank", 0, weights)
    expect.shape(W, (6, 8), axes="d_q, d_k")
    expect.dtype(W, F64)
    what = f"with rank {r}, qᵀ W k differs from (V q) · (U k)"
    atol = 1e-9 if W.dtype == F64 else 1e-4
    bilinear = torch.einsum("bqd,de,bke->bqk", q, W.to(F64), k)
    expect.close(bilinear, _of_reduced_rank(q, k, weights), what, atol=atol)


def _kind_and_weights(kind, d, weights):
    kinds = ("dot", "scaled_dot", "reduced_rank")
    what = "as_bilinear knows no such kind"
    expect.true(kind in kinds, what, expect.describe(kind), ", ".join(kinds))
    fits = type(d) is int and d >= 1
    expect.true(fits, "d should be a whole number of at least 1", expect.describe(d), "1, 2, 3, …")
    expect.true(
        type(weights) is dict, "weights should be a dict", expect.describe(weights), "a dict"
    )
    if kind != "reduced_rank":
        return
    missing = {"V", "U"} - weights.keys()
    expect.true(not missing, "weights should hold V and U", f"without {', '.join(sorted(missing))}")
    V, U = weights["V"], weights["U"]
    for name, matrix in (("V", V), ("U", U)):
        fits = isinstance(matrix, torch.Tensor) and matrix.dim() == 2 and matrix.numel() > 0
        fits = fits and matrix.is_floating_point()
        what = f"{name} should be a matrix of floating-point numbers"
        expect.true(fits, what, expect.describe(matrix), "a tensor (r, d)")
        expect.finite(matrix, f"an entry of {name} is not a finite number")
    what = "V and U should have the same shape (r, d), so that queries and keys are equally long"
    shapes = f"V {tuple(V.shape)}, U {tuple(U.shape)}, d={d}"
    expect.true(V.shape == U.shape and V.shape[1] == d, what, shapes)


@check(
    without={
        **counterexamples.WITHOUT,
        "care": "an input is returned, in any dtype: nothing comes in",
    },
    rests_on=(
        "Find an input for which it is wrong",
        "with queries and keys of the same length",
        "weights hold V and U, both (r, d), finite floating-point numbers",
    ),
)
def break_as_bilinear(student, draw):
    """An input on which swaps_v_and_u is wrong."""
    counterexamples.judge(student, "as_bilinear", "swaps_v_and_u", allowed=_kind_and_weights)


@check(
    without={"care": "only numbers go in", "gradients": "what is placed by hand is not learned"},
    rests_on=(
        "key i at the angle 2π i / pairs on the circle of radius 1",
        "query i points at key pairs - 1 - i",
        "by how much the score of a query's own key is larger than those of the keys next to it",
        "queries (pairs, 2) and keys (pairs, 2)",
    ),
)
def crossing_in_a_plane(student, draw):
    """The keys, whom each query finds, and how far it is ahead of the neighbours."""
    for pairs in (3, 6, draw.choice(range(7, 20)), 2, 60):
        lead = draw.uniform(low=2, high=9).item()
        found = expect.parts(student(pairs, lead), "queries", "keys")
        for one in found:
            expect.shape(one, (pairs, 2), axes="pairs, 2")
        queries, keys = (one.to(F64) for one in found)
        turns = [2 * math.pi * i / pairs for i in range(pairs)]
        circle = _tensor([[math.cos(turn), math.sin(turn)] for turn in turns])
        expect.close(keys, circle, f"the {pairs} keys are not on the circle", atol=1e-5)
        scores = queries @ circle.T
        for i, row in enumerate(scores):
            key, best = pairs - 1 - i, int(row.argmax())
            what = f"of {pairs} queries, query {i} does not find key {key}"
            expect.true(best == key, what, f"its largest score is that with key {best}")
            ahead = (row[key] - row[(key + 1) % pairs]).item()
            what = f"with {pairs} pairs and a lead of {lead:.3f}, query {i} has another lead"
            expect.close(ahead, lead, what, rtol=1e-3)
        expect.close(
            queries / queries.norm(dim=1, keepdim=True), circle.flip(0), "a query points beside"
        )


@check(
    rests_on=(
        "for batches of vectors",
        "(B, T_q, T_k)  -‖q_i - k_j‖² / (2 h²), made of q·k",
    )
)
def gaussian_scores(student, draw):
    """-‖q - k‖² / (2 h²) against loops, and as a softmax against dot products."""
    q, k = _tensor([[[1.0, 2.0]]]), _tensor([[[1.0, 2.0], [4.0, 6.0], [-2.0, -2.0], [7.0, 10.0]]])
    scores = student(q, k, 5.0)
    expect.shape(scores, (1, 1, 4), axes="B, T_q, T_k")
    expect.dtype(scores, F64)
    what = "for distances 0, 5, 5, 10 and bandwidth 5 the scores are not 0, -1/2, -1/2, -2"
    expect.close(scores, _tensor([[[0.0, -0.5, -0.5, -2.0]]]), what)

    q, k = draw.normal(2, 5, 6), draw.normal(2, 7, 6)
    _like_distances(student, draw, q, k)
    with expect.care():
        _like_distances(student, draw, draw.normal(1, 4, 1), draw.normal(1, 1, 1))
    with expect.care():
        far_q, far_k = draw.normal(3, 1, 5, scale=90.0), draw.normal(3, 8, 5, scale=90.0)
        _like_distances(student, draw, far_q + 100, far_k - 100)

    def reference(q, k, bandwidth):
        gaps = q.unsqueeze(2) - k.unsqueeze(1)
        return -gaps.pow(2).sum(3) / (2 * bandwidth**2)

    with expect.care("gradients"):
        expect.gradients(student, reference, q, k, 0.8, cotangent=draw.normal(2, 5, 7))


def _like_distances(student, draw, q, k):
    for bandwidth in (0.6, 3):
        scores = student(draw.strided(q), draw.strided(k), bandwidth)
        expect.shape(scores, (len(q), q.shape[1], k.shape[1]), axes="B, T_q, T_k")
        expected = [
            [[-(math.dist(a, b) ** 2) / (2 * bandwidth**2) for b in keys] for a in queries]
            for queries, keys in zip(q.tolist(), k.tolist(), strict=True)
        ]
        place = f"with q {tuple(q.shape)}, k {tuple(k.shape)} and bandwidth {bandwidth}"
        what = f"{place} the scores differ from squared distances"
        expect.close(scores, _tensor(expected), what, rtol=1e-7, atol=1e-9)


MASK = "the result is a mask: True and False have neither precision nor gradient"


@check(
    without={"gradients": "the result is a gradient already, and is not differentiated again"},
    rests_on=(
        "Estimate the gradient from N trials.",
        "the mean over trials of (reward - baseline) · gradient of log",
        "a number that is subtracted from every reward",
    ),
    stages={"one trial": 1, "many trials": 1, "with a baseline": 1},
)
def reinforce_gradient(student, draw):
    """The exact estimate for given samples, then its mean against the exact gradient."""
    equal, rewards = torch.zeros(4, dtype=F64), _tensor([8.0, 4.0, 8.0, 4.0])
    drawn, gains = draw.normal(5), draw.normal(8, scale=4.0)
    with expect.stage("one trial"):
        what = "for four weights of 1/4, the choice 2 and the reward 8 the estimate is wrong"
        estimate = student(equal, torch.tensor([2]), rewards[:1], 0.0)
        _is_estimate(estimate, _tensor([-2.0, -2.0, 6.0, -2.0]), what)
        for place in range(3):
            chosen = draw.integers(0, 5, 1)
            _like_autograd(student, draw, drawn, chosen, gains[place : place + 1], 0.0)
    chosen = draw.integers(0, 5, 8)
    with expect.stage("many trials"):
        what = "for four weights of 1/4, choices 0 1 1 3 and rewards 8 4 8 4 the estimate is wrong"
        estimate = student(equal, torch.tensor([0, 1, 1, 3]), rewards, 0.0)
        _is_estimate(estimate, _tensor([0.5, 1.5, -1.5, -0.5]), what)
        _like_autograd(student, draw, drawn, chosen, gains, 0.0)
    with expect.stage("with a baseline"):
        _like_autograd(student, draw, drawn, chosen[:1], gains[:1], 1.5)
        if expect.stands("many trials"):
            for baseline in (2.5, -1):
                _like_autograd(student, draw, drawn, chosen, gains, baseline)
    scores = draw.uniform(5, low=-1.0)
    of_key, many = draw.normal(5, scale=2.0) + 3.0, draw.uniform(20000)
    with expect.stage("many trials"):
        _right_on_average(student, scores, of_key, many, 0.0)
    with expect.stage("with a baseline"):
        if expect.stands("many trials"):
            _right_on_average(student, scores, of_key, many, 3.0)
            with expect.care():
                _like_autograd(student, draw, 1000 * scores, chosen, gains, 2.5)
        with expect.care():
            _like_autograd(student, draw, scores, chosen[:1], gains[:1], 0.5)
    with expect.stage("many trials"), expect.care():
        zeros = torch.zeros(3, dtype=torch.int64)
        _like_autograd(student, draw, draw.normal(1), zeros, draw.normal(3), 1.5)


def _is_estimate(estimate, expected, what):
    expect.shape(estimate, (4,), axes="T_k,")
    expect.dtype(estimate, F64)
    expect.close(estimate, expected, what)


def _right_on_average(student, scores, of_key, numbers, baseline):
    """The mean over many samples against the exact gradient."""
    n, leaf = len(numbers), scores.clone().requires_grad_()
    (exact,) = torch.autograd.grad(torch.softmax(leaf, 0) @ of_key, leaf)
    p = torch.softmax(scores, 0)
    chosen = torch.searchsorted(p.cumsum(0), numbers).clamp(max=4)
    estimate = student(scores, chosen, of_key[chosen], baseline)
    single = (of_key - baseline)[:, None] * (torch.eye(5, dtype=F64) - p)  # (chosen, T_k)
    variance = p @ single.pow(2) - (p @ single).pow(2)
    gap = ((estimate - exact).abs() / (variance / n).sqrt()).max()
    what = f"over {n} samples and with baseline {baseline} the mean is not the exact gradient"
    expect.true(gap < 7, what, f"{gap:.1f} standard errors off", "within 7")


def _like_autograd(student, draw, scores, chosen, rewards, baseline):
    leaf = scores.clone().requires_grad_()
    log_p = functional.log_softmax(leaf, 0)[chosen]
    (expected,) = torch.autograd.grad(((rewards - baseline) * log_p).mean(), leaf)
    estimate = student(draw.strided(scores), chosen, draw.strided(rewards), baseline)
    loud = "loud " * bool(scores.abs().max() > 50)
    place = f"with {len(chosen)} trial{'s' * (len(chosen) > 1)}, {len(scores)} {loud}scores"
    what = f"{place} and baseline {baseline} the estimate is not that of autograd"
    expect.close(estimate, expected, what)
