"""Checks of lesson 04. The oracles are loops over numbers, exact sums and known distributions."""

import itertools
import math

import torch
from torch.nn import functional

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
KINDS = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _apply(matrix, vector):
    return [_dot(row, vector) for row in matrix]


def _score(kind, query, key, weights):
    """One score from lists of numbers."""
    lists = {name: tensor.tolist() for name, tensor in weights.items()}
    if kind in ("dot", "scaled_dot"):
        return _dot(query, key) / (math.sqrt(len(key)) if kind == "scaled_dot" else 1)
    if kind == "bilinear":
        return _dot(query, _apply(lists["W"], key))
    if kind == "reduced_rank":
        return _dot(_apply(lists["V"], query), _apply(lists["U"], key))
    seen = zip(_apply(lists["W_q"], query), _apply(lists["W_k"], key), strict=True)
    return _dot(lists["v"], [math.tanh(a + b) for a, b in seen])


def _scores(kind, q, k, weights):
    """All scores, pair by pair."""
    return _tensor(
        [
            [[_score(kind, query, key, weights) for key in keys] for query in queries]
            for queries, keys in zip(q.tolist(), k.tolist(), strict=True)
        ]
    )


NEEDED = {
    "dot": (),
    "scaled_dot": (),
    "bilinear": ("W",),
    "reduced_rank": ("V", "U"),
    "additive": ("W_q", "W_k", "v"),
}


def _weights(draw, d_q, d_k, r):
    return {
        "W": draw.normal(d_q, d_k),
        "V": draw.normal(r, d_q),
        "U": draw.normal(r, d_k),
        "W_q": draw.normal(r + 6, d_q),
        "W_k": draw.normal(r + 6, d_k),
        "v": draw.normal(r + 6),
    }


PLAIN, LEARNED, REST = (
    "dot and scaled_dot",
    "bilinear and reduced_rank",
    "additive and other kinds, and a single query",
)
STAGE = {
    "dot": PLAIN,
    "scaled_dot": PLAIN,
    "bilinear": LEARNED,
    "reduced_rank": LEARNED,
    "additive": REST,
}


@check(
    asks={
        "gradients": "Gradients flow back to q, k and the weights",
    },
    rests_on=(
        "Write all five for whole batches: queries (B, T_q, d_q)",
        "a dict of tensors; only those of the kind are used",
        "Raises ValueError for any other kind; the message lists the five.",
    ),
    stages={PLAIN: 1, LEARNED: 1, REST: 1},
)
def score(student, draw):
    """All five kinds against loops, with equal and with different sizes, small and loud."""
    q, k = draw.normal(2, 5, 6, scale=2.0), draw.normal(2, 7, 6, scale=2.0)
    square = _weights(draw, 6, 6, 3)
    for kind in KINDS:
        with expect.stage(STAGE[kind]):
            scores = student(kind, q, k, square)
            expect.shape(scores, (2, 5, 7), axes="B, T_q, T_k")
            expect.dtype(scores, F64)
            what = f"the {kind} scores differ from loops over all pairs"
            expect.close(scores, _scores(kind, q, k, square), what)

    for kind in KINDS:
        weights = _weights(draw, 9, 9, 2)
        own = {name: weights[name] for name in NEEDED[kind]}
        one, three = draw.normal(1, 1, 9), draw.normal(1, 3, 9)
        what = f"with one query of length 9 and only the weights of {kind} its scores are wrong"
        with expect.stage(REST):
            if expect.stands(STAGE[kind]):
                expect.close(student(kind, one, three, own), _scores(kind, one, three, own), what)

    longer, weights = draw.normal(2, 7, 8), _weights(draw, 6, 8, 3)
    for kind in KINDS[2:]:
        what = f"with queries of 6 and keys of 8 numbers the {kind} scores are wrong"
        with expect.stage(STAGE[kind]):
            expect.close(student(kind, q, longer, weights), _scores(kind, q, longer, weights), what)
    with expect.stage(REST):
        for unknown in ("cosine", "dots", "DOT"):
            what = f"the unknown kind {unknown!r} should be refused"
            message = expect.raises(student, ValueError, unknown, q, k, square, what=what)
            listed = all(kind in message for kind in KINDS)
            expect.true(listed, "the error does not list the kinds", message, ", ".join(KINDS))
    _score_with_care(student, draw, q, k, square)


def _score_with_care(student, draw, q, k, square):
    """Other layouts in memory, large numbers, and gradients."""

    def reference(kind, q, k, weights):
        return torch.einsum("bqd,de,bke->bqk", q, weights["W"], k)

    for kind in KINDS:
        with expect.stage(STAGE[kind]), expect.care():
            again = student(kind, draw.strided(q), draw.strided(k), square)
            what = f"the {kind} scores depend on the memory layout"
            expect.close(again, _scores(kind, q, k, square), what)
    for kind, (d, r) in itertools.product(KINDS, ((9, 2), (1, 1))):
        weights = _weights(draw, d, d, r)
        few, loud = draw.normal(2, 2, d, scale=300.0), draw.normal(2, 3, d, scale=300.0) + 200
        what = f"with large numbers and vectors of length {d} the {kind} scores are wrong"
        with expect.stage(STAGE[kind]), expect.care():
            got = student(kind, few, loud, weights)
            expect.close(got, _scores(kind, few, loud, weights), what)
    with expect.stage(LEARNED), expect.care("gradients"):
        what = "the gradient of the bilinear scores is wrong"
        cotangent = draw.normal(2, 5, 7)
        expect.gradients(
            student, reference, "bilinear", q, k, square, cotangent=cotangent, what=what
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
    expect.close(bilinear, _scores("reduced_rank", q, k, weights), what, atol=atol)


def _counted(kind, T_q, T_k, d, r):
    """Count multiplications one at a time, as a program would make them."""
    count, parameters = 0, 0

    def matrix(rows, columns, vectors):
        nonlocal count, parameters
        parameters += rows * columns
        for _ in range(vectors):
            for _ in range(rows):
                count += columns

    if kind == "bilinear":
        matrix(d, d, T_q)
    if kind in ("reduced_rank", "additive"):
        matrix(r, d, T_q)
        matrix(r, d, T_k)
    parameters += r if kind == "additive" else 0
    for _ in range(T_q):
        for _ in range(T_k):
            count += r if kind in ("reduced_rank", "additive") else d
            count += kind == "scaled_dot"
    return parameters, count


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
    without={"care": "only whole numbers go in, and only whole numbers come out"},
    rests_on=(
        "(parameters, multiplications), two integers",
        'Each query and each key is projected once; "bilinear" projects the queries.',
        "A division counts as a multiplication; an addition or a tanh",
    ),
)
def score_costs(student, draw):
    """Counts against a program that counts one multiplication at a time."""
    T_q, T_k, d, r = (draw.integers(low, low + 3, 1).item() for low in (3, 7, 11, 15))
    for kind in KINDS:
        for sizes in ((5, 7, 4, 2), (T_q, T_k, d, r), (9, 6, 2, 5), (1, 1, 1, 1)):
            found = student(kind, *sizes)
            plain = isinstance(found, tuple | list) and len(found) == 2
            shown = expect.describe(found)
            expect.true(plain, "the result should be two numbers", shown, "a pair of integers")
            parameters, count = _counted(kind, *sizes)
            place = "with T_q={}, T_k={}, d={}, r={}".format(*sizes)
            what = f"{place} the parameters of {kind} are miscounted"
            expect.close(found[0], parameters, what)
            expect.close(found[1], count, f"{place} the multiplications of {kind} are miscounted")
            whole = all(type(number) is int for number in found)
            expect.true(whole, "the counts should be integers", expect.describe(found), "two ints")


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
    without={"float32": MASK, "gradients": MASK},
    rests_on=(
        "True where a key lies within D of the query's centre",
        "At the borders of the source the window is simply cut",
        "a position in the source for each query, any number",
        "bool, True = may attend: |position - centre| <= D",
    ),
)
def local_window(student, draw):
    """|position - centre| <= D, at the borders, outside, and for centres between positions."""
    mask = student(_tensor([0.0, 4.0, 8.0]), 9, 3)
    expect.shape(mask, (3, 9), axes="T_q, T_k")
    expect.dtype(mask, torch.bool)
    rows = ["".join("x" if inside else "." for inside in row) for row in mask.tolist()]
    expected = ["xxxx.....", ".xxxxxxx.", ".....xxxx"]
    what = "for centres 0, 4 and 8 of 9 keys and D = 3 the windows are wrong (x = may attend)"
    expect.true(rows == expected, what, "\n".join(rows), "\n".join(expected))
    for D in (0, 2, 3):
        centres = draw.uniform(6, high=9.0)
        centres[0], centres[1] = 4.0, 6.5
        what = f"with D = {D} and centres between positions a window differs from a loop"
        _window(student, draw.strided(centres), 10, D, what)
    what = "with centres outside of the source a window differs from a loop"
    _window(student, _tensor([-1.5, 300.0, 11.0, -400.0, 9.0]), 10, 2, what)
    what = "with float32 centres a window differs from a loop"
    _window(student, draw.uniform(3, high=7.0).float(), 8, 2, what)
    with expect.care():
        what = "with whole numbers as centres a window differs from a loop"
        _window(student, torch.tensor([0, 5, 6]), 8, 1, what)
    with expect.care():
        _window(student, _tensor([2.0]), 6, 1, "for a single query the window differs from a loop")
        _window(student, _tensor([0.0, 3.0]), 1, 2, "for a single key a window differs from a loop")


def _window(student, centres, T_k, D, what):
    inside = [[abs(j - centre) <= D for j in range(T_k)] for centre in centres.tolist()]
    expect.close(student(centres, T_k, D), torch.tensor(inside), what)


def _local_weights(scores, centres, D):
    rows = []
    for row, centre in zip(scores.tolist(), centres.tolist(), strict=True):
        inside = [j for j in range(len(row)) if abs(j - centre) <= D]
        most = max(row[j] for j in inside)
        total = math.fsum(math.exp(row[j] - most) for j in inside)
        rows.append([0.0] * len(row))
        for j in inside:
            rows[-1][j] = math.exp(row[j] - most - (j - centre) ** 2 / (2 * (D / 2) ** 2)) / total
    return _tensor(rows)


@check(
    asks={
        "gradients": "Through this factor a gradient reaches the centre",
        "large scores": "Scores of ±1000 are fine",
    },
    rests_on=(
        "a softmax over the keys inside the window, times a Gaussian",
        "Through this factor a gradient reaches the centre",
        "0 outside the window",
        "Scores of ±1000 are fine",
    ),
)
def predictive_local_weights(student, draw):
    """Softmax within the window, times a Gaussian around the centre."""
    by_hand = student(torch.ones(1, 6, dtype=F64), _tensor([2.0]), 2)
    expect.shape(by_hand, (1, 6), axes="T_q, T_k")
    expect.dtype(by_hand, F64)
    expect.finite(by_hand)
    near, far = 0.2 * math.exp(-0.5), 0.2 * math.exp(-2.0)
    what = "for equal scores, centre 2 and D = 2 the weights are wrong"
    expect.close(by_hand, _tensor([[far, near, 0.2, near, far, 0.0]]), what)

    scores = draw.normal(5, 9, scale=2.0)
    centres = draw.uniform(5, high=8.0)
    centres[0], centres[1] = 4.0, 3.4
    for D in (1, 2, 3, 5):
        weights = student(draw.strided(scores), draw.strided(centres), D)
        expect.shape(weights, (5, 9), axes="T_q, T_k")
        expect.finite(weights)
        expected = _local_weights(scores, centres, D)
        expect.close(weights, expected, f"with D = {D} the weights differ from a loop")

    # Whatever is filled in outside of the window must be lower than these.
    low, near = _tensor([[0.0, -703.0, -704.0, -702.0, 0.0, 9.0]] * 2), _tensor([2.0, 2.5])
    what = "with scores of -700 inside of the window and of 0 outside the weights are wrong"
    expect.close(student(low, near, 1), _local_weights(low, near, 1), what)

    def reference(scores, centres, D):
        gaps = torch.arange(9) - centres[:, None]
        powers = scores.exp() * (gaps.abs() <= D)
        gauss = (-0.5 * (gaps / (0.5 * D)).pow(2)).exp()
        return powers / powers.sum(1, keepdim=True) * gauss

    what = "the gradient is wrong (it should reach the scores and the centres)"
    cotangent = draw.normal(5, 9)
    expect.gradients(student, reference, scores, centres, 3, cotangent=cotangent, what=what)
    with expect.care("large scores"):
        loud = 1000 * torch.where(scores > 0, 1.0, -1.0) + scores
        loud[0, 4], loud[0, 8], loud[1] = -1000.0, 1000.0, -1000.0
        weights = student(loud, centres, 3)
        expect.finite(weights, "with scores of 1000 and -1000 the weights are not finite")
        what = "with scores of 1000 and -1000 the weights differ from a loop"
        expect.close(weights, _local_weights(loud, centres, 3), what)
    with expect.care():
        alone = student(draw.normal(3, 1), torch.zeros(3, dtype=F64), 2)
        expect.close(alone, torch.ones(3, 1, dtype=F64), "a single key should get the weight 1")


@check(
    rests_on=(
        "at random with the weights as probabilities",
        "first key at which the sum of the weights so far is",
        "of the last key, if rounding leaves none",
        "random numbers from 0 to 1, one per query",
    )
)
def hard_attention(student, draw):
    """The value chosen by each random number, and how often in the long run."""
    weights = _tensor([[0.25, 0.5, 0.25]] * 5)
    values = _tensor([[1.0, 10.0], [2.0, 20.0], [9.0, 90.0]])
    chosen = student(weights, values, _tensor([0.1, 0.3, 0.7, 0.8, 0.999]))
    expect.shape(chosen, (5, 2), axes="T_q, d_v")
    expect.dtype(chosen, F64)
    expected = values[torch.tensor([0, 1, 1, 2, 2])]
    what = "with weights 1/4, 1/2, 1/4 and random numbers .1 .3 .7 .8 .999 the choice is wrong"
    expect.close(chosen, expected, what)
    borders = student(_tensor([[0.0, 0.5, 0.5]] * 2), values, _tensor([0.0, 0.5]))
    what = "with weights 0, 1/2, 1/2 and random numbers 0 and .5 the choice is wrong"
    expect.close(borders, values[1:], what)
    gaps = _tensor([[0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    chosen = student(gaps, values, _tensor([0.5, 0.999, 0.999]))
    what = "where some weights are 0, a key without any weight is chosen, or another wrong one"
    expect.close(chosen, values[torch.tensor([2, 1, 0])], what)
    tenths = torch.full((1, 10), 0.1, dtype=F64)  # they add up to 1 - 1e-16
    last = student(tenths, torch.arange(10.0, dtype=F64)[:, None], _tensor([1 - 2**-53]))
    what = "with ten weights of 0.1 and a random number just below 1 the choice is wrong"
    expect.close(last, _tensor([[9.0]]), what)

    weights = torch.softmax(draw.normal(6, 7, scale=2.0), 1)
    values, uniform = draw.normal(7, 3), draw.uniform(6)
    chosen = student(draw.strided(weights), draw.strided(values), draw.strided(uniform))
    expected = []
    for row, number in zip(weights.tolist(), uniform.tolist(), strict=True):
        total, index = row[0], 0
        while total <= number and index < 6:
            index += 1
            total += row[index]
        expected.append(values[index])
    expect.close(chosen, torch.stack(expected), "a choice differs from adding up in a loop")

    n, weights = 4000, torch.softmax(draw.uniform(5, low=-1.0), 0)
    chosen = student(weights.expand(n, 5), torch.eye(5, dtype=F64), draw.uniform(n))
    expect.shape(chosen, (n, 5), axes="T_q, d_v")
    ones = bool((chosen.sum(1) == 1).all())
    expect.true(ones, "a query does not get exactly one value", "a mixture", "one of the values")
    gap = (chosen.mean(0) - weights).abs() / (weights * (1 - weights) / n).sqrt()
    what = f"over {n} queries a key is chosen too often or too seldom for its weight"
    expect.true(gap.max() < 7, what, f"{gap.max():.1f} standard errors off", "within 7")
    with expect.care():
        one = _tensor([[300.0, -300.0, 5.0]])
        only = student(torch.ones(2, 1, dtype=F64), one, _tensor([0.0, 0.9]))
        expect.close(only, one.expand(2, 3), "a single key should be chosen always")


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
