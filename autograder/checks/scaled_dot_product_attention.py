"""Checks of lesson 05. Oracles: loops over Python floats, PyTorch's kernel, and autograd."""

import math

import torch
from torch.nn import functional as F

from autograder.checking import expect
from autograder.checking.registry import check

F64 = torch.float64
NAMES = ("W_q.weight", "W_k.weight", "W_v.weight")


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


@check
def dot_product_statistics(student, draw):
    """Mean and variance over the rows, the variance divided by n."""
    hand = _tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 1.0, 5.0], [2.0, 2.0, 2.0]])
    signs = _tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, -2.0, 3.0]])
    mean, variance = _pair(student(hand, signs))
    expect.close(mean, 3.0, "the mean of the products 3, -1, 6, 4 is wrong")
    expect.close(variance, 6.5, "the variance of the products 3, -1, 6, 4 is wrong")

    q, k = draw.normal(50, 7, scale=2.0), draw.normal(50, 7) + 0.5
    products = [math.fsum(a * b for a, b in zip(*rows, strict=True)) for rows in _rows(q, k)]
    expected = math.fsum(products) / 50
    mean, variance = _pair(student(draw.strided(q), draw.strided(k)))
    expect.close(mean, expected, "the mean differs from a loop")
    expected = math.fsum((product - expected) ** 2 for product in products) / 50
    expect.close(variance, expected, "the variance differs from a loop")


def _pair(result):
    fits = isinstance(result, tuple | list) and len(result) == 2
    expect.true(fits, "the result is not a pair", expect.describe(result), "(mean, variance)")
    return result


def _rows(q, k):
    return zip(q.tolist(), k.tolist(), strict=True)


@check
def softmax_gradient_norm(student, draw):
    """Frobenius norm of the Jacobian, for any leading axes; small when softmax is saturated."""
    norms = student(_tensor([[0.0, 0.0], [0.0, math.log(3)]]))
    expect.shape(norms, (2,))
    expect.dtype(norms, F64)
    expect.close(
        norms, _tensor([0.5, 0.375]), "the norms for scores (0, 0) and (0, log 3) are wrong"
    )

    scores = draw.normal(2, 5, 7, scale=2.0)
    norms = student(draw.strided(scores))
    expect.shape(norms, (2, 5))
    expected = [[_jacobian_norm(row) for row in rows] for rows in scores]
    expect.close(norms, _tensor(expected), "the norms differ from autograd's Jacobian")
    flat = student(scores[0, 0])
    expect.close(flat, _tensor(expected[0][0]), "a single row of scores gives another norm")
    expect.close(student(scores + 300), norms, "adding 300 to every score changes the norm")


def _jacobian_norm(row):
    jacobian = torch.autograd.functional.jacobian(lambda scores: torch.softmax(scores, 0), row)
    return math.sqrt(math.fsum(entry**2 for entry in jacobian.flatten().tolist()))


@check
def scaled_dot_product_attention(student, draw):
    """Equation 1 with a mask, for any leading axes, against loops and PyTorch's kernel."""
    q, k, v = draw.normal(2, 3, 5, 4, scale=2.0), draw.normal(2, 3, 7, 4), draw.normal(2, 3, 7, 6)
    context = student(q, k, v)
    expect.shape(context, (2, 3, 5, 6), axes="B, H, T_q, d_v")
    expect.dtype(context, F64)
    result = student(q, k, v, return_weights=True)
    fits = isinstance(result, tuple | list) and len(result) == 2
    what = "with return_weights=True the result is not a pair"
    expect.true(fits, what, expect.describe(result), "(context, weights)")
    expect.shape(result[1], (2, 3, 5, 7), axes="B, H, T_q, T_k")
    expect.rows_sum_to_one(result[1], -1, "the weights of a query do not sum to 1")
    expect.close(result[0], context, "return_weights=True changes the context")

    hand = _tensor([[2.0, 0, 0, 0]]), _tensor([[math.log(3), 0, 0, 0], [0, 1, 2, 3]])
    context = student(*hand, _tensor([[4.0, 0.0], [8.0, 8.0]]))
    expect.close(
        context, _tensor([[5.0, 2.0]]), "weights 0.75 and 0.25, worked by hand, are missed"
    )
    what = "the context differs from a loop"
    expect.close(student(q[0, 0], k[0, 0], v[0, 0]), _in_loops(q[0, 0], k[0, 0], v[0, 0]), what)
    context = student(draw.strided(q), draw.strided(k), draw.strided(v))
    expected = F.scaled_dot_product_attention(q, k, v)
    expect.close(context, expected, "the context differs from F.scaled_dot_product_attention")

    _obeys_the_mask(student, draw, q, k, v)
    cotangent = draw.normal(2, 3, 5, 6)
    reference = F.scaled_dot_product_attention
    expect.gradients(student, reference, q, k, v, cotangent=cotangent)


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
    """A mask for all, and one per example, that leave every query at least one key."""
    for shape in ((5, 7), (2, 1, 5, 7)):
        mask = draw.uniform(*shape) < 0.4
        mask[..., 3] = True
        context, weights = student(q, k, v, mask, return_weights=True)
        hidden = (~mask).expand_as(weights)
        leaked = weights[hidden].abs().max().item() if hidden.any() else 0.0
        what = "a key that the mask forbids gets some weight"
        expect.true(leaked == 0, what, f"a weight of {leaked:.4g}", "0 where the mask is False")
        expect.rows_sum_to_one(weights, -1, "with a mask the weights do not sum to 1")
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        expect.close(context, expected, f"with a mask of shape {shape} the context is wrong")


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
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@check
def SelfAttentionHead(student, draw):  # noqa: N802
    """Three projections of one sequence; equivariant; equal to the equation, and its gradients."""
    module = student.build(12, 4)
    weights = _load(module, draw, [(4, 12)] * 3)
    x = draw.normal(2, 5, 12)
    context = module(x)
    expect.shape(context, (2, 5, 4), axes="B, T, d_head")
    expect.dtype(context, F64)
    expected = _head(x, x, *weights)
    expect.close(context, expected, "the context differs from softmax(q kᵀ / √d_head) v")
    expect.close(module(draw.strided(x)), expected, "another memory layout gives another context")

    order = draw.permutation(5)
    what = "shuffling the positions does not just shuffle the contexts"
    expect.close(module(x[:, order]), expected[:, order], what)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    expect.close(module(x, mask), _head(x, x, *weights, mask), "with a mask the context is wrong")
    _same_gradients(module, lambda x, *w: _head(x, x, *w), [x], weights, draw.normal(2, 5, 4))


@check
def CrossAttentionHead(student, draw):  # noqa: N802
    """Queries from x, keys and values from memory, of another length and width."""
    module = student.build(12, 12, 4)
    weights = _load(module, draw, [(4, 12)] * 3)
    x, memory = draw.normal(2, 6, 12), draw.normal(2, 6, 12)
    context = module(x, memory)
    expect.shape(context, (2, 6, 4), axes="B, T_q, d_head")
    expected = _head(x, memory, *weights)
    expect.close(context, expected, "the queries should come from x, keys and values from memory")

    module = student.build(12, 10, 4)
    shapes = [(4, 12), (4, 10), (4, 10)]
    weights = _load(module, draw, shapes)
    x, memory = draw.normal(2, 5, 12), draw.normal(2, 7, 10)
    context = module(draw.strided(x), draw.strided(memory))
    expect.shape(context, (2, 5, 4), axes="B, T_q, d_head")
    expected = _head(x, memory, *weights)
    expect.close(context, expected, "with T_q=5, T_k=7 and d_memory=10 the context is wrong")
    order = draw.permutation(7)
    what = "the order of the memory changes the context"
    expect.close(module(x, memory[:, order]), expected, what)
    mask = draw.uniform(2, 5, 7) < 0.5
    mask[..., 2] = True
    expected = _head(x, memory, *weights, mask)
    expect.close(module(x, memory, mask), expected, "with a mask the context is wrong")
    _same_gradients(module, _head, [x, memory], weights, draw.normal(2, 5, 4))


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
    for _ in range(3):
        T_q, T_k, d_k, d_v = sizes = draw.integers(2, 60, 4).tolist()
        scores = sum(1 for _ in range(T_q) for _ in range(T_k) for _ in range(d_k))
        context = sum(1 for _ in range(T_q) for _ in range(d_v) for _ in range(T_k))
        what = f"with (T_q, T_k, d_k, d_v) = {tuple(sizes)} the count is wrong"
        expect.close(student(*sizes), scores + context, what)


@check
def attention_backward(student, draw):
    """The three gradients against autograd, with and without leading axes."""
    for lead in ((), (2, 3)):
        q, k, v = draw.normal(*lead, 5, 4), draw.normal(*lead, 7, 4), draw.normal(*lead, 7, 6)
        leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
        grad_context = draw.normal(*lead, 5, 6)
        with torch.enable_grad():
            context = F.scaled_dot_product_attention(*leaves)
            expected = torch.autograd.grad((context * grad_context).sum(), leaves)
        weights = torch.softmax(torch.einsum("...qd,...kd->...qk", q, k) / 2, -1)
        result = student(q, draw.strided(k), v, draw.strided(weights), grad_context)
        fits = isinstance(result, tuple | list) and len(result) == 3
        what = "the result is not three gradients"
        expect.true(fits, what, expect.describe(result), "(grad_q, grad_k, grad_v)")
        for got, wanted, name in zip(result[::-1], expected[::-1], ("v", "k", "q"), strict=True):
            expect.close(got, wanted, f"grad_{name} differs from autograd's")
