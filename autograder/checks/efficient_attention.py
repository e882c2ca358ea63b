"""Checks of lesson 18. Oracles: sums over all scores at once, PyTorch's kernels, loops."""

import contextlib
import math

import torch
from torch.nn import functional as F

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
FITS, EXTREMES = "the context", "with shorter last tiles and large scores"  # stages


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


def _exact(got, expected, what):
    """Equal; and, which is care, with nothing added to a denominator, however small."""
    expect.close(got, expected, what)
    with expect.care():
        off = (got.double() - expected).abs()
        exact = bool((off <= 1e-12 + 1e-10 * expected.abs()).all())
        expect.true(exact, f"{what} by a little", f"off by {off.max().item():.1e}", "float64's")


@check(
    without={
        "gradients": "what flows through the maximum cancels in context / total alone, so that "
        "ratio is what the check differentiates"
    },
    rests_on=(
        "sum of exp(score - maximum) · value over the keys so far",
        "the sums stay 0 and the maximum −∞, and nothing is NaN",
        "neither a result nor, in training, a gradient",
        "`clamp` also raises every maximum below its bound",
        "The exponentials of large scores overflow",
    ),
    stages={"with all keys visible": 1, "with hidden keys": 1, "the gradients": 1},
)
def online_softmax(student, draw):
    """Two blocks by hand; then, after every block, the sums over all scores so far."""
    with expect.stage("with all keys visible"):
        _two_blocks(student)
        _drawn_blocks(student, draw, (2, 3), 5, (4, 7, 2), 6, 2.0, hidden=False)
        _drawn_blocks(student, draw, (), 5, (3, 1, 2), 4, 300.0, hidden=False)
    with expect.stage("with hidden keys"):
        _drawn_blocks(student, draw, (2, 3), 5, (4, 7, 2), 6, 2.0)
        _drawn_blocks(student, draw, (), 5, (3, 1, 2), 4, 300.0)
        for low in (2e4, 3e9, 1e35):  # where some finite number stands in for -inf
            # All alike beyond what float32 tells apart.
            scores = draw.integers(-8, 8, 2, 3, 6).to(F64) / 4 * (low < 1e5) - low
            _blocks(student, draw, scores, draw.normal(2, 6, 5), (2, 4))
    with expect.stage("the gradients"):
        _slopes(student, draw)
    for sizes in (((1,), 1, (2, 3), 1, 2.0), ((3,), 2, (1, 1, 6), 3, 40.0)):
        with expect.stage("with hidden keys"), expect.care():
            _drawn_blocks(student, draw, *sizes)


def _two_blocks(student):
    nothing = torch.zeros(1, 1, dtype=F64), torch.zeros(1, dtype=F64), _tensor(-math.inf)
    scores, v = _tensor(0, math.log(3)).view(1, 2), _tensor(12, 60).view(2, 1)
    state = _three(student(*nothing, scores, v), 1, 1)
    _sums(state, _tensor(64).view(1, 1), _tensor(4 / 3), _tensor(math.log(3)), "after one block")
    scores, v = _tensor(math.log(6)).view(1, 1), _tensor(100).view(1, 1)
    state = _three(student(*state, scores, v), 1, 1)
    expected = _tensor(132).view(1, 1), _tensor(5 / 3), _tensor(math.log(6))
    _sums(state, *expected, "after a second block with a larger score")


def _drawn_blocks(student, draw, lead, T_q, sizes, d_v, scale, hidden=True):
    scores = draw.normal(*lead, T_q, sum(sizes), scale=scale)
    if hidden:
        scores[..., 0, : sizes[0]] = -math.inf  # the first block shows nothing to query 0
        scores[..., -1:, sizes[0] : sizes[0] + 1] = -math.inf
    if hidden and T_q > 2:
        scores[..., 1, :-1] = -math.inf  # only the last key
        scores[..., 2, :] = -math.inf  # nothing at all
    if T_q > 2:
        scores[..., 3, : sizes[0]] -= 1100  # from far below, up
        scores[..., 4, : sizes[0]] += 1100  # and down again
    v = draw.normal(*lead, sum(sizes), d_v, scale=3.0)
    _blocks(student, draw, scores, v, sizes)


def _slopes(student, draw):
    """The gradient of context / total: with keys hidden, with all of them, with an old maximum."""
    context, v = draw.normal(4, 2), draw.normal(3, 2)
    context[:3] = 0  # but for query 3, this is the first block
    v[:, 1] = context[3, 1] = 1  # a column that gathers the total beside the context
    maximum, scores = _tensor(-math.inf, -math.inf, -math.inf, 0.5), draw.normal(4, 3)
    scores[1, 0] = scores[2] = -math.inf
    scores[3, 0] = 1 + scores[3, 0].abs()  # above the old maximum, which another stage asks for
    leaves = [tensor.clone().requires_grad_() for tensor in (context, scores, v)]
    with torch.enable_grad():
        old = maximum.exp().unsqueeze(-1) * leaves[0]
        a, b = (torch.exp(leaves[1]) @ leaves[2] + old).unbind(-1)
        seen = b > 0
        wanted = torch.autograd.grad((a[seen] / b[seen]).sum(), leaves)
    # The sums of the answer are smaller by exp(maximum). The slope of a / b is 1 / b and -a / b².
    smaller = torch.maximum(maximum, scores.amax(-1)).exp()
    a, b = (a / smaller).detach(), (b / smaller).detach()
    slope = torch.stack([1 / b, -a / b.square()], -1).where(seen.unsqueeze(-1), 1.0)
    given = context, context[:, 1].clone(), maximum, scores, v
    found = student.gradients(*given, cotangent=slope)
    for name, place, one in zip(("context", "scores", "v"), (0, 3, 4), wanted, strict=True):
        expect.true(found[place] is not None, f"no gradient flows back to argument {place + 1}")
        what = f"the gradient of context / total with respect to {name} is wrong"
        expect.close(found[place], one, what)


def _blocks(student, draw, scores, v, sizes):
    shape, end = scores.shape[:-1], 0
    state = (
        torch.zeros(*shape, v.shape[-1], dtype=F64),
        torch.zeros(shape, dtype=F64),
        torch.full(shape, -math.inf, dtype=F64),
    )
    for number, size in enumerate(sizes):
        begin, end = end, end + size
        block = draw.strided(scores[..., begin:end]), draw.strided(v[..., begin:end, :])
        got = _three(student(*state, *block), *v.shape[-1:], *shape)
        largest = scores[..., :end].max(dim=-1).values
        powers = torch.exp(scores[..., :end] - largest.unsqueeze(-1)).nan_to_num(0.0)
        expected = torch.einsum("...qk,...kd->...qd", powers, v[..., :end, :])
        when = f"after block {number} of scores {tuple(scores.shape)} in blocks of {sizes}"
        _sums(got, expected, powers.sum(-1), largest, when)
        state = expected, powers.sum(-1), largest


def _three(result, d_v, *shape):
    context, total, maximum = expect.parts(result, "context", "total", "maximum")
    expect.shape(context, (*shape, d_v), axes="..., T_q, d_v")
    expect.shape(total, shape, axes="..., T_q")
    expect.shape(maximum, shape, axes="..., T_q")
    return context, total, maximum


def _sums(state, context, total, maximum, when):
    expect.close(state[2], maximum, f"{when} the maximum is wrong")
    expect.close(state[1], total, f"{when} the total is wrong")
    of_nothing = state[1][total == 0]
    what = f"{when} the total of a query that has seen nothing is not 0"
    expect.true(not of_nothing.any(), what, f"{of_nothing.sum().item():.3g}", "0")
    expect.close(state[0], context, f"{when} the context is wrong")


def _dense(q, k, v, causal=False):
    """Context by PyTorch's kernel, and the logarithm of the sums from all scores at once."""
    seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    seen = seen.tril() if causal else seen
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
    lse = scores.where(seen, -math.inf).logsumexp(-1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen), lse


@check(
    rests_on=(
        "exact, and no more than block · block scores at a time",
        "the logarithm of each query's sum of exponentials",
        "the last block may be shorter",
        "query i sees the keys 0 … i only",
        "The check compares with PyTorch's kernel.",
    ),
    stages={FITS: 1, EXTREMES: 1, "lse": 1, "with causal=True": 1},
)
def flash_attention(student, draw):
    """Equal to PyTorch's kernel and to logsumexp, for tiles that fit and tiles that do not."""
    v = _tensor(3, 6, 12, 15).view(4, 1)
    _mean_of(student, v, 9.0, FITS)
    _drawn_tiles(student, draw, (), 6, 9, 5, 3, 3, FITS)
    _drawn_tiles(student, draw, (2, 3), 4, 6, 6, 8, 2, FITS)
    _mean_of(student, v[:3], 7.0, EXTREMES)
    for sizes in (((2, 3), 5, 7, 6, 8, 3), ((2,), 9, 5, 3, 7, 2), ((1, 2), 5, 3, 6, 3, 20)):
        _drawn_tiles(student, draw, *sizes, EXTREMES)
    q, k, v = draw.normal(2, 7, 6, scale=300.0), draw.normal(2, 7, 6), draw.normal(2, 7, 5)
    q[0, 3], k[0] = 50, torch.arange(7)[:, None] * 10.0  # each tile has larger scores
    q[1, 3], k[1] = 50, torch.arange(7, 0, -1)[:, None] * 10.0
    q[1, 4] = -500  # all scores of a query are below -12000
    _tiles(student, draw, (q, k, v, 2), "with large scores", EXTREMES)
    with expect.stage("with causal=True"):
        if expect.stands(EXTREMES):
            given = {"causal": True}
            context, _ = _pair(student(q, k, v, block=3, **given))
            what = "with block=3, causal=True it is wrong"
            expect.close(context, _dense(q, k, v, True)[0], what)
    for sizes in (((2,), 3, 6, 7, 5, 1), ((3,), 1, 5, 1, 2, 2), ((2,), 7, 1, 3, 1, 4)):
        _drawn_tiles(student, draw, *sizes, EXTREMES, care=True)


def _pair(result):
    """Context and lse; what comes alone is the context, and lacks lse, no more."""
    return (result, None) if torch.is_tensor(result) else expect.parts(result, "context", "lse")


def _fits(lse, shape):
    expect.true(lse is not None, "there should be 2 results", "one result", "2: context, lse")
    expect.shape(lse, shape, axes="..., T_q")


def _mean_of(student, v, mean, stage):
    zeros, lse = torch.zeros_like(v), None
    with expect.stage(stage):
        context, lse = _pair(student(zeros, zeros, v, 2))
        expect.shape(context, v.shape, axes="T_q, d_v")
        numbers = ", ".join(f"{one:g}" for one in v.flatten().tolist())
        what = f"for scores of 0 the context should be the mean of {numbers}"
        expect.close(context, torch.full_like(v, mean), what)
    with expect.stage("lse"):
        if stage == FITS or expect.stands(EXTREMES):
            _fits(lse, v.shape[:1])
            what = f"for {len(v)} scores of 0 lse should be log {len(v)}"
            expect.close(lse, torch.full_like(v[:, 0], math.log(len(v))), what)


def _drawn_tiles(student, draw, lead, T_q, T_k, d_k, d_v, block, stage, care=False):
    q, k = draw.normal(*lead, T_q, d_k), draw.normal(*lead, T_k, d_k)
    v = draw.normal(*lead, T_k, d_v)
    where = f"with q {tuple(q.shape)}, k {tuple(k.shape)} and block={block}"
    _tiles(student, draw, (2 * q, k, v, block), where, stage, care)


def _tiles(student, draw, arguments, where, stage, care=False):
    """The context in its stage; lse and what is causal in theirs, unless such tiles are too much.

    care  whether all of it is a matter of care
    """
    *tensors, block = arguments
    with_care, lse = expect.care if care else contextlib.nullcontext, None
    expected = _dense(*tensors)
    with expect.stage(stage), with_care():
        context, lse = _pair(student(*map(draw.strided, tensors), block, False))
        expect.shape(context, expected[0].shape, axes="..., T_q, d_v")
        _exact(context, expected[0], f"{where} the context differs from PyTorch's attention")
    if not expect.stands(EXTREMES):
        return
    with expect.stage("lse"), with_care():
        _fits(lse, expected[1].shape)
        _exact(lse, expected[1], f"{where} lse is wrong")
    expected = _dense(*tensors, causal=True)
    with expect.stage("with causal=True"), with_care():
        context, lse = _pair(student(*map(draw.strided, tensors), block, True))
        expect.shape(context, expected[0].shape, axes="..., T_q, d_v")
        what = f"{where}, causal, the context differs from PyTorch's attention"
        _exact(context, expected[0], what)
        if expect.stands("lse"):
            _fits(lse, expected[1].shape)
            _exact(lse, expected[1], f"{where}, causal, lse is wrong")


@check(
    without={"gradients": "the results are gradients already, not differentiated again"},
    rests_on=(
        "Carry a gradient back through `flash_attention`",
        "weights = exp(scores − lse)",
        "(grad_q, grad_k, grad_v), shaped like q, k and v",
        "how many queries, and how many keys, a tile has",
    ),
    stages={"grad_v": 1, "grad_k": 1, "grad_q": 1},
)
def flash_attention_backward(student, draw):
    """The three gradients against autograd's, for tiles that fit and tiles that do not."""
    for lead, T_q, T_k, d_k, d_v, block in (
        ((), 5, 7, 6, 8, 20),
        ((2, 3), 5, 7, 6, 8, 3),
        ((2,), 9, 5, 3, 7, 2),
    ):
        _carries_back_drawn(student, draw, lead, T_q, T_k, d_k, d_v, block)
    for scores in (120, 800):  # for float32 and for float64: exp of them overflows
        q, k = draw.normal(2, 5, 6), draw.normal(2, 7, 6)
        q[..., 0], k[0, :, 0] = math.sqrt(scores), math.sqrt(6 * scores)
        k[1, :, 0] = -math.sqrt(6 * scores)
        v, grad = draw.normal(2, 7, 3), draw.normal(2, 5, 3)
        where = f"with scores around {scores} and -{scores}"
        _carries_back(student, draw, (q, k, v, grad), 2, where, care=True)
    q, k = draw.normal(3, 5, 6, scale=3.0), draw.normal(3, 7, 6)
    v, grad = draw.normal(3, 7, 5) + 20, draw.normal(3, 5, 5, scale=100.0)
    grad[0, 0, 0] = 150.0  # with scores as loud, the gradients would be rounding alone
    _carries_back(student, draw, (q, k, v, grad), 2, "with large numbers", care=True)
    for sizes in (((1,), 1, 3, 1, 2, 2), ((2,), 5, 1, 9, 1, 1)):
        _carries_back_drawn(student, draw, *sizes, care=True)


def _carries_back_drawn(student, draw, lead, T_q, T_k, d_k, d_v, block, care=False):
    q, k = draw.normal(*lead, T_q, d_k), draw.normal(*lead, T_k, d_k)
    v, grad = draw.normal(*lead, T_k, d_v), draw.normal(*lead, T_q, d_v)
    where = f"with q {tuple(q.shape)}, k {tuple(k.shape)} and block={block}"
    _carries_back(student, draw, (q, k, v, grad), block, where, care)


def _carries_back(student, draw, tensors, block, where, care=False):
    *inputs, grad = tensors
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        context, lse = _dense(*leaves)
        expected = torch.autograd.grad((context * grad).sum(), leaves)
    handed = [draw.strided(x) for x in (*inputs, context.detach(), lse.detach(), grad)]
    with_care, got = expect.care if care else contextlib.nullcontext, None
    for place, name in ((2, "grad_v"), (1, "grad_k"), (0, "grad_q")):
        with expect.stage(name), with_care():
            got = got or expect.parts(student(*handed, block), "grad_q", "grad_k", "grad_v")
            expect.shape(got[place], expected[place].shape)
            expect.close(got[place], expected[place], f"{where} {name} differs from autograd's")


def _features(x):
    """elu(x) + 1, one piece at a time."""
    return torch.where(x > 0, x, 0.0) + torch.where(x > 0, 1.0, torch.exp(x.clamp(max=0.0)))


def _by_kernel(q, k, v, causal=False):
    """Kernel regression as in lesson 01: similarities, then weights that sum to 1."""
    similarity = torch.einsum("...qd,...kd->...qk", _features(q), _features(k))
    similarity = similarity.tril() if causal else similarity
    return torch.einsum("...qk,...kd->...qd", similarity / similarity.sum(-1, keepdim=True), v)


@check(
    rests_on=(
        "positive_features(query) · positive_features(key)",
        "the average of the values, weighted by",
        "Where all features are small this changes the average.",
        "The check calls it with 400 000 positions.",
        "The scores are not scaled.",
    )
)
def linear_attention(student, draw):
    """Similarities by hand, then the dense form; a length at which that one cannot exist."""
    zero, k = torch.zeros(1, 1, dtype=F64), _tensor(0, 2).view(2, 1)
    v = _tensor(10, 30).view(2, 1)
    context = student(zero, k, v)
    expect.shape(context, (1, 1), axes="T_q, d_v")
    expect.close(context, _tensor(25).view(1, 1), "for similarities of 1 and 3 it is wrong")
    _averages(student, draw, (2, 3), 5, 7, 6, 8, 2.0)
    _averages(student, draw, (), 9, 5, 3, 7, 2.0)
    q = draw.normal(2, 5, 6) - 12  # all similarities are tiny: their ratios are not
    k, v = draw.normal(2, 7, 6) - 12, draw.normal(2, 7, 3)
    what = "where all features are tiny it differs from the weighted average"
    expect.close(student(q, k, v), _by_kernel(q, k, v), what)
    T = 400_000  # a (T, T) matrix of this length takes a terabyte
    q, k, v = draw.normal(T, 1), draw.normal(T, 1), draw.normal(T, 1)
    shares = _features(k) / _features(k).sum()
    expected = (shares * v).sum().expand(T, 1)  # with one feature, all queries see the same
    expect.close(student(q, k, v), expected, "in a sequence of 400 000 a context is wrong")
    for sizes in (
        ((2,), 5, 6, 3, 7, 150.0),
        ((3,), 1, 4, 1, 2, 2.0),
        ((1,), 6, 1, 3, 1, 2.0),
    ):
        with expect.care():
            _averages(student, draw, *sizes)


def _averages(student, draw, lead, T_q, T_k, d_k, d_v, scale):
    q, k = draw.normal(*lead, T_q, d_k, scale=scale), draw.normal(*lead, T_k, d_k)
    q[..., 0, 0], k[..., 0, 0] = 100.0, 100.0
    v = draw.normal(*lead, T_k, d_v)
    where = f"with q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)}"
    if scale > 100:  # a query of which some features are nearly 0, but not all
        q[..., 0] = 1 + q[..., 0].abs()
    context = student(draw.strided(q), draw.strided(k), draw.strided(v))
    expect.shape(context, (*lead, T_q, d_v), axes="..., T_q, d_v")
    expect.close(context, _by_kernel(q, k, v), f"{where} it differs from the weighted average")


@check(
    rests_on=(
        "context (..., d_v) of the new position, which sees itself and all before",
        "the sums with the new position in them",
        "sum of features(key) · valueᵀ over all positions before; at first 0",
        "Where all features are small this changes the average.",
        "The sums that came in must not be changed.",
    ),
    core=("inputs",),
    stages={"the new sums": 1, "the context": 1, "with axes in front": 1},
)
def linear_attention_step(student, draw):
    """The first steps by hand; then whole sequences against the dense form under a mask."""
    plain = "the new sums", "the context"
    _two_positions(student)
    _reads_drawn(student, draw, (), 4, 7, 3, 2.0, plain)
    q, k = draw.normal(3, 6) - 12, draw.normal(3, 6) - 12  # all features are tiny
    _reads(student, draw, q, k, draw.normal(3, 5), plain)
    in_front = ("with axes in front",) * 2
    with expect.stage(in_front[0]):
        what = "without axes in front neither the new sums nor the context are right"
        expect.true(any(map(expect.stands, plain)), what)
    _reads_drawn(student, draw, (2, 3), 5, 6, 7, 2.0, in_front)
    q, k = draw.normal(2, 3, 6) - 12, draw.normal(2, 3, 6) - 12
    _reads(student, draw, q, k, draw.normal(2, 3, 5), in_front)
    for sizes in (((5,), 3, 1, 2, 100.0), ((1, 2), 3, 3, 1, 2.0)):
        _reads_drawn(student, draw, *sizes, in_front, care=True)


def _two_positions(student):
    zero = torch.zeros(1, dtype=F64)
    with expect.stage("the context"):
        step = _step(student(zero, zero, _tensor(10), zero.view(1, 1), zero), (), 1, 1)
        what = "at the first position the context should be its own value"
        expect.close(step[0], _tensor(10), what)
        state = _tensor(10).view(1, 1), _tensor(1)
        step = _step(student(zero, _tensor(2), _tensor(30), *state), (), 1, 1)
        what = "at the second position, with similarities of 1 and 3, the context is wrong"
        expect.close(step[0], _tensor(25), what)


def _reads_drawn(student, draw, lead, T, d_k, d_v, scale, stages, care=False):
    q, k = draw.normal(*lead, T, d_k), draw.normal(*lead, T, d_k, scale=scale)
    q[..., 0, 0] = k[..., 0, 0] = 150.0
    _reads(student, draw, q, k, draw.normal(*lead, T, d_v, scale=3.0), stages, care)


def _reads(student, draw, q, k, v, stages, care=False):
    """``stages``: the names of the two that the sums and the context belong to."""
    contexts = _by_kernel(q, k, v, causal=True)
    lead, d_k, d_v = q.shape[:-2], q.shape[-1], v.shape[-1]
    state = torch.zeros(*lead, d_k, d_v, dtype=F64)
    normaliser = torch.zeros(*lead, d_k, dtype=F64)
    with_care = expect.care if care else contextlib.nullcontext
    for t in range(q.shape[-2]):
        now, got = [draw.strided(x[..., t, :]) for x in (q, k, v)], None
        where = f"with q {tuple(now[0].shape)} and v {tuple(now[2].shape)}, at position {t},"
        handed = *now, draw.strided(state), draw.strided(normaliser)
        features = _features(k[..., : t + 1, :])
        state = torch.einsum("...tk,...td->...kd", features, v[..., : t + 1, :])
        normaliser = features.sum(-2)
        with expect.stage(stages[0]), with_care():
            got = _step(student(*handed), lead, d_k, d_v)
            if expect.stands("the new sums"):
                expect.close(got[2], normaliser, f"{where} the normaliser is wrong")
                expect.close(got[1], state, f"{where} the state is wrong")
        with expect.stage(stages[1]), with_care():
            if expect.stands("the context"):
                got = got or _step(student(*handed), lead, d_k, d_v)
                what = f"{where} the context differs from the dense form under a causal mask"
                expect.close(got[0], contexts[..., t, :], what)


def _step(result, lead, d_k, d_v):
    result = expect.parts(result, "context", "state", "normaliser")
    expect.shape(result[0], (*lead, d_v), axes="..., d_v")
    expect.shape(result[1], (*lead, d_k, d_v), axes="..., d_k, d_v")
    expect.shape(result[2], (*lead, d_k), axes="..., d_k")
    return result
