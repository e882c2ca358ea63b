"""Checks of lesson 07. The oracle is nn.MultiheadAttention, with the weights copied."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking import expect
from autograder.checking.registry import check

F64 = torch.float64
LAYERS = ("W_q", "W_k", "W_v", "W_o")


def _heads_in_loops(x, n_heads):
    B, T, d_model = x.shape
    d_head = d_model // n_heads
    pieces = [x[:, :, h * d_head : (h + 1) * d_head] for h in range(n_heads)]
    return torch.stack([piece.clone() for piece in pieces], 1)


@check
def split_heads(student, draw):
    """Head h holds its own slice of the features, at every position."""
    x = torch.arange(120).view(2, 5, 12)
    heads = student(x, 3)
    expect.shape(heads, (2, 3, 5, 4), axes="B, H, T, d_head")
    _same_features(heads, x)
    for n_heads in (1, 2, 6, 12):
        got = student(draw.strided(x), n_heads)
        expect.shape(got, (2, n_heads, 5, 12 // n_heads), axes="B, H, T, d_head")
        what = f"with {n_heads} heads the values are in the wrong places"
        expect.close(got, _heads_in_loops(x, n_heads), what)
    reals, cotangent = draw.normal(2, 5, 12), draw.normal(2, 3, 5, 4)
    expect.gradients(student, _heads_in_loops, reals, 3, cotangent=cotangent)


def _same_features(heads, x):
    """x counts on from 0, so every value tells which position and feature it comes from."""
    for h in range(3):
        wanted = x[0, :, 4 * h : 4 * h + 4]
        if not torch.equal(heads[0, h], wanted):
            row = (heads[0, h] != wanted).any(1).nonzero()[0].item()
            places = [divmod(value, 12) for value in heads[0, h, row].tolist()]
            got = ", ".join(f"({position}, {feature})" for position, feature in places)
            expect.true(
                False,
                "the shape is right, the values are in the wrong heads",
                f"head {h}, row {row} holds (position, feature) {got}",
                f"features {4 * h} to {4 * h + 3} of position {row}",
            )


@check
def merge_heads(student, draw):
    """The pieces of a position stand side by side, in the order of the heads."""
    x = torch.arange(120).view(2, 5, 12)
    merged = student(_heads_in_loops(x, 3))
    expect.shape(merged, (2, 5, 12), axes="B, T, H · d_head")
    expect.close(merged, x, "the values of a position do not stand in the order of the heads")
    for n_heads in (1, 2, 6, 12):
        merged = student(draw.strided(_heads_in_loops(x, n_heads)))
        expect.close(merged, x, f"with {n_heads} heads the values are in the wrong places")

    def reference(heads):
        return torch.cat(heads.unbind(1), -1)

    expect.gradients(student, reference, draw.normal(2, 3, 5, 4), cotangent=draw.normal(2, 5, 12))


def _load(module, draw):
    """Give the module weights that are large enough for a wrong scale to show."""
    values = {}
    for layer in LAYERS:
        values[f"{layer}.weight"] = draw.normal(12, 12, scale=0.6)
        values[f"{layer}.bias"] = draw.normal(12)
    module.load(values)
    return values


def _oracle(values):
    """nn.MultiheadAttention with these weights, and the same arguments as the library's."""
    layer = nn.MultiheadAttention(12, 3, batch_first=True, dtype=F64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([values[f"{name}.weight"] for name in LAYERS[:3]]))
        layer.in_proj_bias.copy_(torch.cat([values[f"{name}.bias"] for name in LAYERS[:3]]))
        layer.out_proj.weight.copy_(values["W_o.weight"])
        layer.out_proj.bias.copy_(values["W_o.bias"])

    def forward(query, key, value, mask=None):
        if mask is not None:  # for this layer, True is forbidden
            shape = (len(query), query.shape[1], key.shape[1])
            mask = ~mask.expand(shape).repeat_interleave(3, 0)
        return layer(query, key, value, attn_mask=mask, average_attn_weights=False)

    return forward


@check
def MultiHeadAttention(student, draw):  # noqa: N802
    """Equal to nn.MultiheadAttention for self and cross, under masks, gated, fused, in training."""
    module = student.build(12, 3)
    values = _load(module, draw)
    oracle = _oracle(values)
    x, keys, memory = draw.normal(2, 5, 12), draw.normal(2, 7, 12), draw.normal(2, 7, 12)
    output = module(x, x, x)
    expect.shape(output, (2, 5, 12), axes="B, T, d_model")
    expect.dtype(output, F64)
    expected, _ = oracle(x, x, x)
    expect.close(output, expected, "self-attention differs from nn.MultiheadAttention")
    expected, weights = oracle(x, keys, memory)
    output = module(draw.strided(x), draw.strided(keys), draw.strided(memory))
    expect.close(output, expected, "with T_q=5 and T_k=7 it differs from nn.MultiheadAttention")
    result = module(x, keys, memory, return_weights=True)
    fits = isinstance(result, tuple | list) and len(result) == 2
    what = "with return_weights=True the result is not a pair"
    expect.true(fits, what, expect.describe(result), "(output, weights)")
    expect.shape(result[1], (2, 3, 5, 7), axes="B, H, T_q, T_k")
    expect.close(result[1], weights, "the weights of the heads are wrong")

    _obeys_masks(module, draw, oracle, values, x, keys, memory)
    _gates_heads(module, draw, values, x, keys, memory)
    _drops_in_training_only(student, values, oracle, x, keys, memory)
    module = student.build(12, 3, fused=True)
    module.load(values)
    expected, _ = oracle(x, keys, memory)
    expect.close(module(x, keys, memory), expected, "with fused=True the output is another one")
    _sends_gradients(module, oracle, draw.normal(2, 5, 12), x, keys, memory)


def _obeys_masks(module, draw, oracle, values, x, keys, memory):
    for shape in ((5, 7), (2, 1, 7), (2, 5, 7)):
        mask = draw.uniform(*shape) < 0.5
        mask[..., 3] = True
        output = module(x, keys, memory, mask)
        expected, _ = oracle(x, keys, memory, mask)
        expect.close(output, expected, f"with a mask of shape {shape} the output is wrong")
    nothing = torch.zeros(2, 1, 7, dtype=torch.bool)
    output = module(x, keys, memory, nothing)
    what = "with nothing to attend to the output should be the bias of W_o"
    expect.close(output, values["W_o.bias"].expand(2, 5, 12), what)


def _gates_heads(module, draw, values, x, keys, memory):
    """One gate per head, (H,) or (B, H), against a sum over single heads."""
    for gates in (torch.tensor([1.0, 0.0, 1.0], dtype=F64), draw.uniform(2, 3)):
        output = module(x, keys, memory, head_mask=gates)
        total = values["W_o.bias"].expand(2, 5, 12)
        for h in range(3):
            gate = gates.expand(2, 3)[:, h].view(2, 1, 1)
            total = total + gate * _one_head(values, slice(4 * h, 4 * h + 4), x, keys, memory)
        what = f"with a head_mask of shape {tuple(gates.shape)} the output is wrong"
        expect.close(output, total, what)


def _one_head(values, part, *inputs):
    """What one head adds to the output: its slice of the three projections, then that of W_o."""
    q, k, v = (
        F.linear(given, values[f"{name}.weight"][part], values[f"{name}.bias"][part])
        for given, name in zip(inputs, LAYERS[:3], strict=True)
    )
    context = F.scaled_dot_product_attention(q, k, v)
    return torch.einsum("btd,md->btm", context, values["W_o.weight"][:, part])


def _drops_in_training_only(student, values, oracle, x, keys, memory):
    """A probability of 1 drops every weight: what it does is not random."""
    module = student.build(12, 3, 1.0)
    module.load(values)
    module.eval()
    expected, _ = oracle(x, keys, memory)
    expect.close(module(x, keys, memory), expected, "after eval() there should be no dropout")
    module.train()
    what = "in training with dropout=1.0 every weight is dropped: only the bias of W_o is left"
    expect.close(module(x, keys, memory), values["W_o.bias"].expand(2, 5, 12), what)


def _sends_gradients(module, oracle, cotangent, *inputs):
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        wanted = torch.autograd.grad((oracle(*leaves)[0] * cotangent).sum(), leaves)
    by_name, found = module.gradients(*inputs, cotangent=cotangent)
    for name, gradient in by_name.items():
        expect.true(gradient is not None, f"no gradient reaches {name}", "None", "a gradient")
        expect.finite(gradient, f"the gradient of {name} is not finite")
    for got, expected, name in zip(found, wanted, ("query", "key", "value"), strict=True):
        expect.true(got is not None, f"no gradient reaches the {name}", "None", "a gradient")
        expect.close(got, expected, f"the gradient of the {name} is wrong")


@check
def attention_parameters(student, draw):
    """Against the sizes of real layers."""
    count = student(d_model=10, n_heads=3, d_head=2)
    # Three layers 10 → 6 and one 6 → 10: 3 · (60 + 6) + (60 + 10).
    expect.close(count, 268, "with d_model=10, n_heads=3 and d_head=2 the count is wrong")
    expect.equal(count, 268, "the count should be an int")
    count = student(d_model=10, n_heads=3, d_head=2, bias=False)
    expect.close(count, 240, "without bias the count is wrong")
    for sizes in ((512, 8, 64), tuple(draw.integers(2, 9, 3).tolist())):
        for bias in (True, False):
            d_model, inner = sizes[0], sizes[1] * sizes[2]
            layers = [nn.Linear(d_model, inner, bias=bias) for _ in range(3)]
            layers.append(nn.Linear(inner, d_model, bias=bias))
            expected = sum(p.numel() for layer in layers for p in layer.parameters())
            what = f"with (d_model, n_heads, d_head) = {sizes} and bias={bias} the count is wrong"
            expect.close(student(*sizes, bias=bias), expected, what)


@check
def captured_variance(student, draw):
    """Cumulated shares of the squared singular values, against eigenvalues of A Aᵀ."""
    shares = student(torch.diag(torch.tensor([1.0, 3.0, 0.0], dtype=F64)))
    expect.shape(shares, (3,))
    expect.dtype(shares, F64)
    expected = torch.tensor([0.9, 1.0, 1.0], dtype=F64)
    expect.close(shares, expected, "for the singular values 1, 3 and 0 the shares are wrong")
    matrices = draw.normal(3, 5, 7)
    shares = student(draw.strided(matrices))
    expect.shape(shares, (3, 5))
    energy = torch.linalg.eigvalsh(torch.einsum("bik,bjk->bij", matrices, matrices)).flip(-1)
    parts = [[sum(row[: i + 1]) / sum(row) for i in range(5)] for row in energy.tolist()]
    expect.close(shares, torch.tensor(parts, dtype=F64), "the shares differ from those of A Aᵀ")
    expect.close(
        student(100 * matrices), shares, "multiplying the matrix by 100 changes the shares"
    )
    line = torch.outer(draw.normal(4), draw.normal(6))
    expect.close(student(line), torch.ones(4, dtype=F64), "a matrix of rank 1 is not recognised")


@check
def share_heads(student, draw):
    """Neighbouring query heads share; equal to PyTorch's grouped-query attention."""
    shared = student(torch.tensor([10.0, 20.0, 30.0], dtype=F64).view(1, 3, 1, 1), 6)
    expect.shape(shared, (1, 6, 1, 1), axes="B, n_heads, T, d_head")
    expected = torch.tensor([10.0, 10, 20, 20, 30, 30], dtype=F64).view(1, 6, 1, 1)
    expect.close(shared, expected, "6 heads that share 3 keys should get 0, 0, 1, 1, 2, 2")
    q, k, v = draw.normal(2, 6, 5, 4), draw.normal(2, 3, 7, 4), draw.normal(2, 3, 7, 4)
    shared = [student(draw.strided(tensor), 6) for tensor in (k, v)]
    expect.shape(shared[0], (2, 6, 7, 4), axes="B, n_heads, T, d_head")
    expected = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    what = "attention with shared heads differs from PyTorch's enable_gqa=True"
    expect.close(F.scaled_dot_product_attention(q, *shared), expected, what)
    expect.close(student(k, 3), k, "with as many heads as keys nothing should change")
    one = student(k[:, :1], 4)
    expect.close(one, k[:, :1].expand(2, 4, 7, 4), "all heads should share a single key head")

    def reference(k, n_heads):
        return torch.stack([k[:, h // 2] for h in range(n_heads)], 1)

    expect.gradients(student, reference, k, 6, cotangent=draw.normal(2, 6, 7, 4))


@check
def collaborative_heads(student, draw):
    """Any mixing against a loop over heads; block one-hot mixing is ordinary heads."""
    q, k, v = draw.normal(2, 5, 6, scale=1.5), draw.normal(2, 7, 6), draw.normal(2, 3, 7, 4)
    mixing = draw.normal(3, 6)
    context = student(q, k, v, mixing, 4)
    expect.shape(context, (2, 3, 5, 4), axes="B, H, T_q, d_v")
    expect.dtype(context, F64)
    expected = _mixed(q, k, v, mixing, 4)
    expect.close(context, expected, "the contexts differ from a loop over the heads")
    context = student(draw.strided(q), draw.strided(k), draw.strided(v), draw.strided(mixing), 4)
    expect.close(context, expected, "another memory layout gives other contexts")

    q, k = draw.normal(2, 5, 12), draw.normal(2, 7, 12)
    blocks = torch.eye(3, dtype=F64).repeat_interleave(4, 1)
    expected = F.scaled_dot_product_attention(_heads_in_loops(q, 3), _heads_in_loops(k, 3), v)
    what = "with block one-hot mixing it differs from ordinary heads"
    expect.close(student(q, k, v, blocks, 4), expected, what)
    cotangent = draw.normal(2, 3, 5, 4)
    expect.gradients(student, _mixed, q, k, v, draw.normal(3, 12), 4, cotangent=cotangent)


def _mixed(q, k, v, mixing, d_head):
    """Head after head: scale the shared features of the queries by the head's mixture."""
    rows = [
        F.scaled_dot_product_attention(q * mixing[h], k, v[:, h], scale=1 / math.sqrt(d_head))
        for h in range(len(mixing))
    ]
    return torch.stack(rows, 1)
