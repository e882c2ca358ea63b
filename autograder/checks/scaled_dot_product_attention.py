"""Checks of lesson 05. Oracles: loops over Python floats, PyTorch's kernel, and autograd."""

import math

import torch
from torch.nn import functional as F

from autograder.checking import counterexamples, expect
from autograder.checking.registry import check

F64 = torch.float64
NAMES = ("W_q.weight", "W_k.weight", "W_v.weight")


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


@check(
    without={
        "gradients": "the statistics are read, not trained",
        "offset": "the mean of the squares minus the square of the mean is right here",
    }
)
def dot_product_statistics(student, draw):
    """Mean and variance over the rows, the variance divided by n."""
    hand = _tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 1.0, 5.0], [2.0, 2.0, 2.0]])
    signs = _tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, -2.0, 3.0]])
    mean, variance = _pair(student(hand, signs))
    expect.close(mean, 3.0, "the mean of the products 3, -1, 6, 4 is wrong")
    expect.close(variance, 6.5, "the variance of the products 3, -1, 6, 4 is wrong")

    for n, d_k, scale in ((50, 7, 2.0), (6, 9, 200.0), (5, 1, 1.0), (1, 3, 1.0)):
        q, k = draw.normal(n, d_k, scale=scale), draw.normal(n, d_k) + 0.5
        products = [math.fsum(a * b for a, b in zip(*rows, strict=True)) for rows in _rows(q, k)]
        expected = math.fsum(products) / n
        mean, variance = _pair(student(draw.strided(q), draw.strided(k)))
        expect.close(mean, expected, f"with n={n} and d_k={d_k} the mean differs from a loop")
        expected = math.fsum((product - expected) ** 2 for product in products) / n
        what = f"with n={n} and d_k={d_k} the variance differs from a loop"
        expect.close(variance, expected, what)


def _pair(result):
    fits = isinstance(result, tuple | list) and len(result) == 2
    expect.true(fits, "the result is not a pair", expect.describe(result), "(mean, variance)")
    return result


def _rows(q, k):
    return zip(q.tolist(), k.tolist(), strict=True)


@check(
    without={"gradients": "the norm is read, not trained: autograd's own Jacobian is right, too"}
)
def softmax_gradient_norm(student, draw):
    """Frobenius norm of the Jacobian, for any leading axes; small when softmax is saturated."""
    norms = student(_tensor([[0.0, 0.0], [0.0, math.log(3)]]))
    expect.shape(norms, (2,))
    expect.dtype(norms, F64)
    expect.close(
        norms, _tensor([0.5, 0.375]), "the norms for scores (0, 0) and (0, log 3) are wrong"
    )

    for lead in ((2, 5), (1, 3), (2, 3, 1), (3,)):
        scores = draw.normal(*lead, 7, scale=2.0)
        norms = student(draw.strided(scores))
        expect.shape(norms, lead)
        expected = _tensor([_jacobian_norm(row) for row in scores.reshape(-1, 7)]).reshape(lead)
        what = (
            f"for scores of shape {tuple(scores.shape)} the norms differ from autograd's Jacobian"
        )
        expect.close(norms, expected, what)
    flat = student(scores[0])
    expect.close(flat, expected[0], "a single row of scores gives another norm")
    expect.close(student(scores + 300), norms, "adding 300 to every score changes the norm")
    loud = _tensor([[1000.0, -1000.0, 0.0], [1000.0, 1000.0, -1000.0]])
    what = "for the scores (1000, -1000, 0) and (1000, 1000, -1000) the norms are wrong"
    expect.close(student(loud), _tensor([0.0, 0.5]), what)
    what = "with one key its weight is 1 whatever the score, so the norm should be 0"
    expect.close(student(draw.normal(3, 1)), torch.zeros(3, dtype=F64), what)


def _jacobian_norm(row):
    jacobian = torch.autograd.functional.jacobian(lambda scores: torch.softmax(scores, 0), row)
    return math.sqrt(math.fsum(entry**2 for entry in jacobian.flatten().tolist()))


@check
def scaled_dot_product_attention(student, draw):
    """Equation 1 with a mask, for any leading axes, against loops and PyTorch's kernel."""
    q, k, v = draw.normal(2, 3, 5, 6, scale=2.0), draw.normal(2, 3, 7, 6), draw.normal(2, 3, 7, 8)
    context = student(q, k, v)
    expect.shape(context, (2, 3, 5, 8), axes="B, H, T_q, d_v")
    expect.dtype(context, F64)
    result = student(q, k, v, return_weights=True)
    weights = _weights_of(result, context)
    expect.shape(weights, (2, 3, 5, 7), axes="B, H, T_q, T_k")
    expect.rows_sum_to_one(weights, -1, "the weights of a query do not sum to 1")

    three = _tensor([[3.0] + [0.0] * 8]), _tensor([[math.log(3)] + [0.0] * 8, [*range(9)]])
    context = student(*three, _tensor([[4.0, 0.0, 8.0], [8.0, 8.0, 0.0]]))
    what = "weights 0.75 and 0.25, worked by hand, are missed"
    expect.close(context, _tensor([[5.0, 2.0, 6.0]]), what)
    what = "the context differs from a loop"
    expect.close(student(q[0, 0], k[0, 0], v[0, 0]), _in_loops(q[0, 0], k[0, 0], v[0, 0]), what)
    context = student(draw.strided(q), draw.strided(k), draw.strided(v))
    expected = F.scaled_dot_product_attention(q, k, v)
    expect.close(context, expected, "the context differs from F.scaled_dot_product_attention")

    _obeys_the_mask(student, draw, q, k, v)
    _of_other_sizes(student, draw)
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


def _attend(q, k, mask=None):
    """The weights as an equation."""
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
    return torch.softmax(scores if mask is None else scores.where(mask, -math.inf), -1)


def _of_other_sizes(student, draw):
    """Sizes of 1 on every axis, and scores in the hundreds, which are loud."""
    for lead, T_q, T_k, d_k, d_v, scale in (
        ((), 1, 1, 3, 2, 1.0),
        ((1,), 1, 7, 9, 1, 1.0),
        ((2, 1), 5, 1, 6, 3, 1.0),
        ((3,), 2, 5, 1, 6, 1.0),
        ((2,), 5, 7, 6, 3, 300.0),
    ):
        q, k = draw.normal(*lead, T_q, d_k, scale=scale), draw.normal(*lead, T_k, d_k)
        v, mask = draw.normal(*lead, T_k, d_v), draw.uniform(T_q, T_k) < 0.6
        mask[:, 0], mask[:, -1] = True, T_k == 1
        loud = " and large scores" * (scale > 1)
        place = f"with q {tuple(q.shape)}, k {tuple(k.shape)}{loud}"
        context, weights = student(q, k, v), _attend(q, k)
        expect.close(context, weights @ v, f"{place} the context is wrong")
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
        expect.shape(weights, (2, 3, 5, 7), axes="B, H, T_q, T_k")
        leaked = weights[(~mask).expand_as(weights)].abs().max().item()
        what = "a key that the mask forbids gets some weight"
        expect.true(leaked == 0, what, f"a weight of {leaked:.4g}", "0 where the mask is False")
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


def _head(x, memory, W_q, W_k, W_v, mask=None):
    """One head as an equation: x asks, memory answers."""
    q, k, v = (
        torch.einsum("btm,hm->bth", *pair) for pair in ((x, W_q), (memory, W_k), (memory, W_v))
    )
    return F.scaled_dot_product_attention(q, k, v, mask)


@check
def SelfAttentionHead(student, draw):  # noqa: N802
    """Three projections of one sequence; equivariant; equal to the equation, and its gradients."""
    module = student.build(10, 6)
    weights = _load(module, draw, [(6, 10)] * 3)
    x = draw.normal(2, 5, 10)
    context = module(x)
    expect.shape(context, (2, 5, 6), axes="B, T, d_head")
    expect.dtype(context, F64)
    expected = _head(x, x, *weights)
    expect.close(context, expected, "the context differs from softmax(q kᵀ / √d_head) v")
    expect.close(module(draw.strided(x)), expected, "another memory layout gives another context")

    order = draw.permutation(5)
    what = "shuffling the positions does not just shuffle the contexts"
    expect.close(module(x[:, order]), expected[:, order], what)
    for shape in ((5, 5), (2, 5, 5), (2, 1, 5)):
        mask = (draw.uniform(*shape) < 0.5) | torch.eye(5, dtype=torch.bool)
        mask[..., 1, :] |= mask[..., 0, :] if shape[-2] > 1 else True
        expected = _head(x, x, *weights, mask)
        expect.close(
            module(x, mask), expected, f"with a mask of shape {shape} the context is wrong"
        )
    got = module(x, mask=mask)
    expect.close(got, expected, "with a mask given by its name the context is wrong")
    _same_gradients(module, lambda x, *w: _head(x, x, *w), [x], weights, draw.normal(2, 5, 6))

    for d_model, d_head, B, T in ((3, 1, 1, 6), (1, 3, 4, 1), (7, 9, 1, 5)):
        module = student.build(d_model, d_head)
        weights = _load(module, draw, [(d_head, d_model)] * 3)
        x = draw.normal(B, T, d_model, scale=100.0)
        x[0, 0, 0] = 150.0
        sizes = f"d_model={d_model}, d_head={d_head}, B={B}, T={T}"
        expected = _head(x, x, *weights)
        expect.close(module(x), expected, f"with {sizes} and large numbers the context is wrong")


@check
def CrossAttentionHead(student, draw):  # noqa: N802
    """Queries from x, keys and values from memory, of another length and width."""
    module = student.build(10, 10, 6)
    weights = _load(module, draw, [(6, 10)] * 3)
    x, memory = draw.normal(2, 7, 10), draw.normal(2, 7, 10)
    context = module(x, memory)
    expect.shape(context, (2, 7, 6), axes="B, T_q, d_head")
    expected = _head(x, memory, *weights)
    expect.close(context, expected, "with x and memory of one shape the context is wrong")

    module = student.build(10, 9, 6)
    weights = _load(module, draw, [(6, 10), (6, 9), (6, 9)])
    x, memory = draw.normal(2, 5, 10), draw.normal(2, 7, 9)
    context = module(draw.strided(x), draw.strided(memory))
    expect.shape(context, (2, 5, 6), axes="B, T_q, d_head")
    expected = _head(x, memory, *weights)
    expect.close(context, expected, "with T_q=5, T_k=7 and d_memory=9 the context is wrong")
    order = draw.permutation(7)
    what = "the order of the memory changes the context"
    expect.close(module(x, memory[:, order]), expected, what)
    for shape in ((2, 5, 7), (5, 7), (2, 1, 7)):
        mask = draw.uniform(*shape) < 0.5
        mask[..., 2], mask[..., 3] = True, False
        expected = _head(x, memory, *weights, mask)
        what = f"with a mask of shape {shape} the context is wrong"
        expect.close(module(x, memory, mask), expected, what)
    got = module(x, memory, mask=mask)
    expect.close(got, expected, "with a mask given by its name the context is wrong")
    _same_gradients(module, _head, [x, memory], weights, draw.normal(2, 5, 6))

    for sizes in ((3, 5, 1, 1, 1, 6), (1, 3, 9, 4, 2, 1), (8, 1, 6, 1, 5, 3)):
        d_model, d_memory, d_head, B, T_q, T_k = sizes
        module = student.build(d_model, d_memory, d_head)
        shapes = [(d_head, d_model), (d_head, d_memory), (d_head, d_memory)]
        weights = _load(module, draw, shapes)
        x, memory = draw.normal(B, T_q, d_model) + 200, draw.normal(B, T_k, d_memory, scale=9.0)
        names = "d_model={}, d_memory={}, d_head={}, B={}, T_q={}, T_k={}".format(*sizes)
        what = f"with {names} and large numbers the context is wrong"
        expect.close(module(x, memory), _head(x, memory, *weights), what)


def _same_gradients(module, reference, inputs, weights, cotangent):
    leaves = [tensor.clone().requires_grad_() for tensor in (*inputs, *weights)]
    with torch.enable_grad():
        loss = (reference(*leaves) * cotangent).sum()
        expected = torch.autograd.grad(loss, leaves)
    by_name, found = module.gradients(*inputs, cotangent=cotangent)
    for got, wanted in zip(found, expected, strict=False):
        _same_gradient(got, wanted, "an input")
    for name, wanted in zip(NAMES, expected[len(inputs) :], strict=True):
        _same_gradient(by_name[name], wanted, name)


def _same_gradient(got, wanted, name):
    expect.true(got is not None, f"no gradient reaches {name}", "None", "a gradient")
    expect.close(got, wanted, f"the gradient of {name} is wrong")


@check
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


@check(without={"gradients": "the results are gradients already, not differentiated again"})
def attention_backward(student, draw):
    """The three gradients against autograd, with and without leading axes, small and loud."""
    for lead, T_q, T_k, d_k, d_v in (
        ((), 5, 7, 6, 8),
        ((2, 3), 5, 7, 6, 8),
        ((1,), 1, 3, 1, 2),
        ((2,), 5, 1, 9, 1),
    ):
        q, k = draw.normal(*lead, T_q, d_k), draw.normal(*lead, T_k, d_k)
        v, grad_context = draw.normal(*lead, T_k, d_v), draw.normal(*lead, T_q, d_v)
        _carries_back(student, draw, q, k, v, grad_context, f"with q {tuple(q.shape)} ")
    q, k = draw.normal(3, 2, 6), draw.normal(3, 5, 6)
    v, grad_context = draw.normal(3, 5, 8) + 200, draw.normal(3, 2, 8, scale=300.0)
    _carries_back(student, draw, q, k, v, grad_context, "with large numbers ")


def _carries_back(student, draw, q, k, v, grad_context, place):
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    with torch.enable_grad():
        context = F.scaled_dot_product_attention(*leaves)
        expected = torch.autograd.grad((context * grad_context).sum(), leaves)
    result = student(q, draw.strided(k), v, draw.strided(_attend(q, k)), grad_context)
    fits = isinstance(result, tuple | list) and len(result) == 3
    what = "the result is not three gradients"
    expect.true(fits, what, expect.describe(result), "(grad_q, grad_k, grad_v)")
    for got, wanted, name in zip(result[::-1], expected[::-1], ("v", "k", "q"), strict=True):
        expect.close(got, wanted, f"{place}grad_{name} differs from autograd's")


@check(without=counterexamples.WITHOUT)
def break_scaled_dot_product_attention(student, draw):
    """An input on which divides_by_the_root_of_d_v is wrong."""
    counterexamples.judge(
        student,
        "scaled_dot_product_attention",
        "divides_by_the_root_of_d_v",
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
