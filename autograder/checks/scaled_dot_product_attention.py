"""Checks of lesson 05. Oracles: loops over Python floats, PyTorch's kernel, and autograd."""

import contextlib
import math

import torch
from torch.nn import functional as F

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
NAMES = ("W_q.weight", "W_k.weight", "W_v.weight")


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


@check(
    without={
        "gradients": "the statistics are read, not trained",
        "offset": "the mean of the squares minus the square of the mean is right here",
    },
    rests_on=(
        "Row i of q and row i of k make a pair.",
        "squared distance from the mean (divided by n, not n - 1)",
    ),
)
def dot_product_statistics(student, draw):
    """Mean and variance over the rows, the variance divided by n."""
    hand = _tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 1.0, 5.0], [2.0, 2.0, 2.0]])
    signs = _tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, -2.0, 3.0]])
    mean, variance = _pair(student(hand, signs))
    expect.close(mean, 3.0, "the mean of the products 3, -1, 6, 4 is wrong")
    expect.close(variance, 6.5, "the variance of the products 3, -1, 6, 4 is wrong")
    for number in (mean, variance):
        if isinstance(number, torch.Tensor):
            expect.dtype(number, F64)

    _like_a_loop(student, draw, 50, 7, 2.0)
    _like_a_loop(student, draw, 6, 9, 1.0)
    with expect.care():
        _like_a_loop(student, draw, 6, 9, 200.0)
    with expect.care():
        _like_a_loop(student, draw, 5, 1, 1.0)
        _like_a_loop(student, draw, 1, 3, 1.0)


def _like_a_loop(student, draw, n, d_k, scale):
    q, k = draw.normal(n, d_k, scale=scale), draw.normal(n, d_k) + 0.5
    products = [math.fsum(a * b for a, b in zip(*rows, strict=True)) for rows in _rows(q, k)]
    expected = math.fsum(products) / n
    mean, variance = _pair(student(draw.strided(q), draw.strided(k)))
    what = f"with n={n} and d_k={d_k} the mean differs from a loop"
    expect.close(mean, expected, what, rtol=1e-5, atol=1e-5)
    expected = math.fsum((product - expected) ** 2 for product in products) / n
    what = f"with n={n} and d_k={d_k} the variance differs from a loop"
    expect.close(variance, expected, what, rtol=1e-5, atol=1e-5)


def _pair(result):
    fits = isinstance(result, tuple | list) and len(result) == 2
    expect.true(fits, "the result is not a pair", expect.describe(result), "(mean, variance)")
    return result


def _rows(q, k):
    return zip(q.tolist(), k.tolist(), strict=True)


@check(
    without={"gradients": "the norm is read, not trained: autograd's own Jacobian is right, too"},
    asks={
        "any shape": "scores may have any number of leading axes",
    },
    rests_on=(
        "scores may have any number of leading axes",
        "the root of the sum of all squared entries",
        "What is every entry when one weight is 1 and the others are 0?",
    ),
)
def softmax_gradient_norm(student, draw):
    """Frobenius norm of the Jacobian, for any leading axes; small when softmax is saturated."""
    norms = student(_tensor([[0.0, 0.0], [0.0, math.log(3)]]))
    expect.shape(norms, (2,))
    expect.dtype(norms, F64)
    expect.close(
        norms, _tensor([0.5, 0.375]), "the norms for scores (0, 0) and (0, log 3) are wrong"
    )

    for lead in ((2, 5), (2, 3, 4), (3,)):
        scores, norms = _of_leading_axes(student, draw, lead)
    expect.close(student(scores[0]), norms[0], "a single row of scores gives another norm")
    loud = _tensor([[1000.0, -1000.0, 0.0], [1000.0, 1000.0, -1000.0]])
    what = "for the scores (1000, -1000, 0) and (1000, 1000, -1000) the norms are wrong"
    expect.close(student(loud), _tensor([0.0, 0.5]), what)
    # Nearly saturated: what is left of a closed form may be less than 0, and its root NaN.
    near = _tensor([[0.0, score] for score in (0.0, 16.5, 17.0, 17.5, 18.0, 18.5, 18.9, 19.5)])
    what = "for the scores (0, 0) and (0, 16.5) to (0, 19.5) the norms are wrong"
    expect.close(student(near), _tensor([_jacobian_norm(row) for row in near]), what)
    with expect.care("any shape"):
        for lead in ((1, 3), (2, 3, 1)):
            _of_leading_axes(student, draw, lead)
    with expect.care():
        what = "adding 300 to every score changes the norm"
        expect.close(student(scores + 300), norms, what)
    with expect.care():
        what = "with one key its weight is 1 whatever the score, so the norm should be 0"
        expect.close(student(draw.normal(3, 1)), torch.zeros(3, dtype=F64), what)


def _of_leading_axes(student, draw, lead):
    """The scores that were asked for, and their norms."""
    scores = draw.normal(*lead, 7, scale=2.0)
    norms = student(draw.strided(scores))
    expect.shape(norms, lead)
    expected = _tensor([_jacobian_norm(row) for row in scores.reshape(-1, 7)]).reshape(lead)
    what = f"for scores of shape {tuple(scores.shape)} the norms differ from autograd's Jacobian"
    expect.close(norms, expected, what)
    return scores, expected


def _jacobian_norm(row):
    jacobian = torch.autograd.functional.jacobian(lambda scores: torch.softmax(scores, 0), row)
    return math.sqrt(math.fsum(entry**2 for entry in jacobian.flatten().tolist()))


PLAIN, LEADING = "without a mask", "with leading axes"
MASKED = "with a mask and return_weights"


@check(
    asks={
        "any shape": "The leading axes can be anything",
    },
    rests_on=(
        "leading axes can be anything: nothing, a batch, a batch and heads",
        "bool that broadcasts to (..., T_q, T_k)",
        "A forbidden key must get the weight 0",
        "With return_weights=True return the pair context, weights",
        "say why dot products of long vectors are large",
        "Scores of ±1000 must work",
    ),
    stages={PLAIN: 1, LEADING: 1, MASKED: 1},
)
def scaled_dot_product_attention(student, draw):
    """Equation 1 with a mask, for any leading axes, against loops and PyTorch's kernel."""
    q, k, v = draw.normal(2, 3, 5, 6, scale=2.0), draw.normal(2, 3, 7, 6), draw.normal(2, 3, 7, 8)
    with expect.stage(PLAIN):
        three = _tensor([[3.0] + [0.0] * 8]), _tensor([[math.log(3)] + [0.0] * 8, [*range(9)]])
        context = student(*three, _tensor([[4.0, 0.0, 8.0], [8.0, 8.0, 0.0]]))
        what = "weights 0.75 and 0.25, worked by hand, are missed"
        expect.close(context, _tensor([[5.0, 2.0, 6.0]]), what)
        what = "the context differs from a loop"
        expect.close(student(q[0, 0], k[0, 0], v[0, 0]), _in_loops(q[0, 0], k[0, 0], v[0, 0]), what)
    with expect.stage(LEADING):
        context = student(q, k, v)
        expect.shape(context, (2, 3, 5, 8), axes="B, H, T_q, d_v")
        expect.dtype(context, F64)
        context = student(draw.strided(q), draw.strided(k), draw.strided(v))
        expected = F.scaled_dot_product_attention(q, k, v)
        expect.close(context, expected, "the context differs from F.scaled_dot_product_attention")
    with expect.stage(MASKED):
        _obeys_by_itself(student, draw)
        if expect.stands(PLAIN) and expect.stands(LEADING):
            weights = _weights_of(student(q, k, v, return_weights=True), expected)
            expect.shape(weights, (2, 3, 5, 7), axes="B, H, T_q, T_k")
            expect.rows_sum_to_one(weights, -1, "the weights of a query do not sum to 1")
            _obeys_the_mask(student, draw, q, k, v)
    _of_size(student, draw, (), 5, 7, 6, 3, scale=300.0)
    _of_size(student, draw, (2,), 5, 7, 6, 3)
    _of_size(student, draw, (), 1, 1, 3, 2, block=expect.care)
    _of_size(student, draw, (1,), 1, 7, 9, 1, block=expect.care)
    _of_size(student, draw, (2, 1), 5, 1, 6, 3, block=expect.care)
    _of_size(student, draw, (3,), 2, 5, 1, 6, block=expect.care)
    with expect.stage(LEADING), expect.care("gradients"):
        cotangent = draw.normal(2, 3, 5, 8)
        reference = F.scaled_dot_product_attention
        expect.gradients(student, reference, q, k, v, cotangent=cotangent)


def _weights_of(result, context):
    fits = isinstance(result, tuple | list) and len(result) == 2
    what = "with return_weights=True the result is not a pair"
    expect.true(fits, what, expect.describe(result), "(context, weights)")
    expect.close(result[0], context, "return_weights=True changes the context")
    expect.tensor(result[1])
    return result[1]


def _obeys_by_itself(student, draw):
    """Weights of 0 and 1, at whatever scale, among scores of ±1000 and beyond."""
    q, k = _tensor([[-1024], [-1024], [1024], [1024]]), _tensor([[1], [1.5], [2], [-1], [0]])
    v = draw.normal(5, 2, scale=4.0)
    mask = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 0], [1, 1, 0, 0, 1]]).bool()
    wanted = _tensor([[1, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 1, 0, 0, 0]])
    result = student(q, k, v, mask, return_weights=True)
    fits = isinstance(result, tuple | list) and len(result) == 2
    what = "with return_weights=True the result is not a pair"
    expect.true(fits, what, expect.describe(result), "(context, weights)")
    _forbids(result[1], mask, wanted.shape, "T_q, T_k")
    what = "with a mask, vectors of length 1 and scores of ±1000 "
    expect.close(result[1], wanted, f"{what}the weights are wrong")
    expect.close(result[0], wanted @ v, f"{what}the context is wrong")
    expect.close(student(q, k, v, mask), wanted @ v, f"{what}the context alone is wrong")


def _forbids(weights, mask, shape, axes):
    """What the mask forbids has no weight at all."""
    expect.shape(weights, shape, axes=axes)
    leaked = weights[(~mask).expand_as(weights)].abs().max().item()
    what = "a key that the mask forbids gets some weight"
    expect.true(leaked == 0, what, f"a weight of {leaked:.4g}", "0 where the mask is False")


def _attend(q, k, mask=None):
    """The weights as an equation."""
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
    return torch.softmax(scores if mask is None else scores.where(mask, -math.inf), -1)


def _of_size(student, draw, lead, T_q, T_k, d_k, d_v, scale=1.0, block=contextlib.nullcontext):
    """Without a mask and with one; scores in the hundreds are loud."""
    q, k = draw.normal(*lead, T_q, d_k, scale=scale), draw.normal(*lead, T_k, d_k)
    v, mask = draw.normal(*lead, T_k, d_v), draw.uniform(T_q, T_k) < 0.6
    mask[:, 0], mask[:, -1] = True, T_k == 1
    loud = " and large scores" * (scale > 1)
    place = f"with q {tuple(q.shape)}, k {tuple(k.shape)}{loud}"
    stage = LEADING if lead else PLAIN
    with expect.stage(stage), block():
        expect.close(student(q, k, v), _attend(q, k) @ v, f"{place} the context is wrong")
    with expect.stage(MASKED), block():
        if expect.stands(stage):
            context, got = student(q, k, v, mask=mask, return_weights=True)
            weights = _attend(q, k, mask)
            expect.close(got, weights, f"{place}, with a mask, the weights are wrong")
            expect.close(context, weights @ v, f"{place}, with a mask, the context is wrong")


def _in_loops(q, k, v):
    rows = []
    for query in q.tolist():
        scores = [
            math.fsum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query))
            for key in k.tolist()
        ]
        weights = [math.exp(score) for score in scores]
        total = math.fsum(weights)
        columns = v.T.tolist()
        pairs = [zip(weights, column, strict=True) for column in columns]
        rows.append([math.fsum(w * x for w, x in pair) / total for pair in pairs])
    return _tensor(rows)


def _obeys_the_mask(student, draw, q, k, v):
    """Masks for all, for each example, for each head, and for keys alone; one key at least."""
    for shape in ((5, 7), (2, 1, 5, 7), (2, 1, 1, 7), (3, 1, 7)):
        mask = draw.uniform(*shape) < 0.4
        mask[..., 3], mask[..., 5] = True, False
        context, weights = student(q, k, v, mask, return_weights=True)
        _forbids(weights, mask, (2, 3, 5, 7), "B, H, T_q, T_k")
        expect.rows_sum_to_one(weights, -1, "with a mask the weights do not sum to 1")
        what = f"with a mask of shape {shape} the weights are wrong"
        expect.close(weights, _attend(q, k, mask), what)
        expected = F.scaled_dot_product_attention(q, k, v, mask)
        what = f"with a mask of shape {shape} the context is wrong"
        expect.close(context, expected, what)
        alone = student(q, k, v, mask)
        expect.close(alone, expected, f"{what} if no weights are asked for")


def _load(module, draw, shapes):
    """Give the module weights large enough that a wrong scale or a swap shows."""
    weights = [draw.normal(*shape) / math.sqrt(shape[1]) * 2 for shape in shapes]
    module.load(dict(zip(NAMES, weights, strict=True)))
    return weights


def _obeys_among_low_scores(module, d_model):
    """Scores of -704 and -703 that may be seen, one of 0 that may not."""
    W_q, W_k, W_v = weights = [torch.zeros(4, d_model, dtype=F64) for _ in NAMES]
    W_q[0, 0], W_k[0, 1], W_v[:, 2:6] = 1.0, 1.0, torch.eye(4)
    x = torch.zeros(1, 3, d_model, dtype=F64)
    x[..., 0], x[0, :, 1] = 1024.0, _tensor([-704.0, -703.0, 0.0]) / 512
    x[..., 2:6] = torch.arange(12.0).view(3, 4) - 5
    module.load(dict(zip(NAMES, weights, strict=True)))
    mask = torch.tensor([[True, True, False]]).repeat(3, 1)
    what = "where the scores that may be seen are around -700 the context is wrong"
    expect.close(module(x, mask=mask), _head(x, *weights, mask), what)


def _head(x, W_q, W_k, W_v, mask=None):
    """One head as an equation."""
    q, k, v = (torch.einsum("btm,hm->bth", x, W) for W in (W_q, W_k, W_v))
    return F.scaled_dot_product_attention(q, k, v, mask)


@check(
    rests_on=(
        "three `nn.Linear` without bias, named `W_q`, `W_k` and `W_v`",
        "queries, keys and values are three views of the same sequence",
        "bool that broadcasts to (B, T, T); True = may attend",
        "each role gets a matrix of its own",
        "A forbidden key must get the weight 0",
    )
)
def SelfAttentionHead(student, draw):  # noqa: N802
    """Three projections of one sequence; equivariant; equal to the equation, and its gradients."""
    module = student.build(10, 6)
    weights = _load(module, draw, [(6, 10)] * 3)
    x = draw.normal(2, 5, 10)
    context = module(x)
    expect.shape(context, (2, 5, 6), axes="B, T, d_head")
    expect.dtype(context, F64)
    expected = _head(x, *weights)
    expect.close(context, expected, "the context differs from softmax(q kᵀ / √d_head) v")

    order = draw.permutation(5)
    what = "shuffling the positions does not just shuffle the contexts"
    expect.close(module(x[:, order]), expected[:, order], what)
    for shape in ((5, 5), (2, 5, 5), (2, 1, 5)):
        mask = (draw.uniform(*shape) < 0.5) | torch.eye(5, dtype=torch.bool)
        mask[..., 1, :] |= mask[..., 0, :] if shape[-2] > 1 else True
        expected = _head(x, *weights, mask)
        expect.close(
            module(x, mask), expected, f"with a mask of shape {shape} the context is wrong"
        )
    got = module(x, mask=mask)
    expect.close(got, expected, "with a mask given by its name the context is wrong")
    _same_gradients(module, [x], weights, draw.normal(2, 5, 6))
    _obeys_among_low_scores(student.build(10, 4), 10)

    with expect.care():
        what = "another memory layout gives another context"
        expect.close(module(draw.strided(x)), _head(x, *weights), what)
    with expect.care():
        for d_model, d_head, B, T in ((3, 1, 1, 6), (1, 3, 4, 1), (7, 9, 1, 5)):
            module = student.build(d_model, d_head)
            weights = _load(module, draw, [(d_head, d_model)] * 3)
            x = draw.normal(B, T, d_model, scale=100.0)
            x[0, 0, 0] = 150.0
            sizes = f"d_model={d_model}, d_head={d_head}, B={B}, T={T}"
            what = f"with {sizes} and large numbers the context is wrong"
            expect.close(module(x), _head(x, *weights), what)


def _same_gradients(module, inputs, weights, cotangent):
    leaves = [tensor.clone().requires_grad_() for tensor in (*inputs, *weights)]
    with torch.enable_grad():
        loss = (_head(*leaves) * cotangent).sum()
        expected = torch.autograd.grad(loss, leaves)
    by_name, found = module.gradients(*inputs, cotangent=cotangent)
    with expect.care("gradients"):
        for name, wanted in zip(NAMES, expected[len(inputs) :], strict=True):
            _same_gradient(by_name[name], wanted, name)
        for got, wanted in zip(found, expected, strict=False):
            _same_gradient(got, wanted, "an input")


def _same_gradient(got, wanted, name):
    expect.true(got is not None, f"no gradient reaches {name}", "None", "a gradient")
    expect.close(got, wanted, f"the gradient of {name} is wrong")


@check(
    without={"care": "only whole numbers go in, and only a whole number comes out"},
    rests_on=(
        "How many multiplications of numbers are there in the two matrix products of attention",
        "an int; the scale, the softmax and the projections are left out",
    ),
)
def attention_multiplications(student, draw):
    """T_q · T_k · (d_k + d_v)."""
    count = student(T_q=2, T_k=3, d_k=10, d_v=100)
    expect.close(count, 660, "with T_q=2, T_k=3, d_k=10 and d_v=100 the count is wrong")
    expect.equal(count, 660, "the count should be an int")
    drawn = [draw.permutation(59)[:4].add(2).tolist() for _ in range(2)]
    for T_q, T_k, d_k, d_v in (*drawn, (1, 5, 3, 2), (7, 1, 1, 6)):
        sizes = T_q, T_k, d_k, d_v
        scores = sum(1 for _ in range(T_q) for _ in range(T_k) for _ in range(d_k))
        context = sum(1 for _ in range(T_q) for _ in range(d_v) for _ in range(T_k))
        what = f"with (T_q, T_k, d_k, d_v) = {sizes} the count is wrong"
        count = student(*sizes)
        expect.close(count, scores + context, what)
        expect.equal(count, scores + context, "the count should be an int")


KINDS = ("recurrent", "convolution", "self-attention")


OF_VALUES, OF_NUMBERS = "grad_v", "grad_q and grad_k with d_k = 1"
OF_ALL = "with any d_k and leading axes"


@check(
    without={"gradients": "the results are gradients already, not differentiated again"},
    rests_on=(
        "Find the gradients with respect to `q`, `k` and `v`",
        "(grad_q, grad_k, grad_v), shaped like q, k and v",
        "gradient of a loss with respect to the context",
    ),
    stages={OF_VALUES: 1, OF_NUMBERS: 2, OF_ALL: 1},
)
def attention_backward(student, draw):
    """The three gradients against autograd, with and without leading axes, small and loud."""
    one, given = _given(draw, (), 5, 7, 1, 8), _given(draw, (), 5, 7, 6, 8)
    with expect.stage(OF_VALUES):
        _carries_back(student, draw, *given, "v")
    with expect.stage(OF_NUMBERS):
        _carries_back(student, draw, *one, "kq")
    with expect.stage(OF_ALL):
        names = "vkq" if expect.stands(OF_VALUES) else "kq"
        _carries_back(student, draw, *given, names)
        _carries_back(student, draw, *_given(draw, (2, 3), 5, 7, 6, 8), names)
        with expect.care():
            _carries_back(student, draw, *_given(draw, (1,), 1, 3, 1, 2), names)
            _carries_back(student, draw, *_given(draw, (2,), 5, 1, 9, 1), names)
        with expect.care():
            q, k = draw.normal(3, 2, 6), draw.normal(3, 5, 6)
            v, grad_context = draw.normal(3, 5, 8) + 200, draw.normal(3, 2, 8, scale=300.0)
            _carries_back(student, draw, q, k, v, grad_context, names, "with large numbers ")


def _given(draw, lead, T_q, T_k, d_k, d_v):
    q, k = draw.normal(*lead, T_q, d_k), draw.normal(*lead, T_k, d_k)
    return q, k, draw.normal(*lead, T_k, d_v), draw.normal(*lead, T_q, d_v)


def _carries_back(student, draw, q, k, v, grad_context, names, place=""):
    """The gradients of ``names``."""
    place = place or f"with q {tuple(q.shape)} "
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    with torch.enable_grad():
        context = F.scaled_dot_product_attention(*leaves)
        expected = torch.autograd.grad((context * grad_context).sum(), leaves)
    result = student(q, draw.strided(k), v, draw.strided(_attend(q, k)), grad_context)
    fits = isinstance(result, tuple | list) and len(result) == 3
    what = "the result is not three gradients"
    expect.true(fits, what, expect.describe(result), "(grad_q, grad_k, grad_v)")
    for name in names:
        number = "qkv".index(name)
        expect.close(
            result[number], expected[number], f"{place}grad_{name} differs from autograd's"
        )


@check(
    without={
        **counterexamples.WITHOUT,
        "care": "an input is returned, in any dtype: nothing comes in",
    },
    rests_on=(
        "Write a function without arguments that returns an input (q, k, v)",
        "Your input must have shapes that the exercise allows.",
    ),
)
def break_scaled_dot_product_attention(student, draw):
    """An input on which almost_right is wrong."""
    counterexamples.judge(
        student,
        "scaled_dot_product_attention",
        "almost_right",
        allowed=_attention_fits,
    )


def _attention_fits(q, k, v, mask=None, return_weights=False):
    """Queries as long as keys, a value for every key, in one dtype."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        expect.tensor(tensor)
        fits = tensor.dim() >= 2 and tensor.is_floating_point() and tensor.numel() > 0
        wanted = "floating point numbers with at least two axes, none of length 0"
        expect.true(fits, f"{name} does not fit the exercise", expect.describe(tensor), wanted)
    pairs = (
        (q.shape[-1], k.shape[-1], "a query and a key have different lengths"),
        (k.shape[-2], v.shape[-2], "there are not as many values as keys"),
        (k.shape[:-2], v.shape[:-2], "k and v have different leading axes"),
        (q.shape[:-2], k.shape[:-2], "q and k have different leading axes"),
        (q.dtype, k.dtype, "q and k have different dtypes"),
        (k.dtype, v.dtype, "k and v have different dtypes"),
    )
    for got, wanted, what in pairs:
        expect.true(got == wanted, what, str(got), str(wanted))
