"""Checks of lesson 07. The oracle is nn.MultiheadAttention, with the weights copied."""

import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
# d_head is 1, 9 or 25 where it is a scale: roots that float32 holds exactly.
LAYERS = ("W_q", "W_k", "W_v", "W_o")


def _heads_in_loops(x, n_heads):
    B, T, d_model = x.shape
    d_head = d_model // n_heads
    pieces = [x[:, :, h * d_head : (h + 1) * d_head] for h in range(n_heads)]
    return torch.stack([piece.clone() for piece in pieces], 1)


def _side_by_side(heads):
    return torch.cat(heads.unbind(1), -1)


def _weights(draw, d_model):
    """Weights that are large enough for a wrong scale to show."""
    values = {}
    for layer in LAYERS:
        values[f"{layer}.weight"] = draw.normal(d_model, d_model, scale=2 * d_model**-0.5)
        values[f"{layer}.bias"] = draw.normal(d_model)
    return values


def _loaded(student, values, n_heads, *args, **kwargs):
    module = student.build(len(values["W_o.bias"]), n_heads, *args, **kwargs)
    module.load(values)
    return module


def _oracle(values, n_heads):
    """nn.MultiheadAttention with these weights, and the same arguments as the library's."""
    layer = nn.MultiheadAttention(len(values["W_o.bias"]), n_heads, batch_first=True, dtype=F64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([values[f"{name}.weight"] for name in LAYERS[:3]]))
        layer.in_proj_bias.copy_(torch.cat([values[f"{name}.bias"] for name in LAYERS[:3]]))
        layer.out_proj.weight.copy_(values["W_o.weight"])
        layer.out_proj.bias.copy_(values["W_o.bias"])

    def forward(query, key, value, mask=None):
        if mask is not None:  # for this layer, True is forbidden
            shape = (len(query), query.shape[1], key.shape[1])
            mask = ~mask.expand(shape).repeat_interleave(n_heads, 0)
        return layer(query, key, value, attn_mask=mask, average_attn_weights=False)

    return forward


def _close(got, expected, what):
    """Equal up to what float32 rounds: scores and outputs are sums of dozens of numbers."""
    expect.close(got, expected, what, rtol=1e-4, atol=2e-5)


@check(
    asks={
        "learning": "a gradient must reach every weight",
    },
    rests_on=(
        "The check has compared it with nn.MultiheadAttention",
        "The projections W_q, W_k, W_v and W_o are linear layers with bias",
        "the heads attend as in lesson 06, with dropout on the weights",
        "use PyTorch's fused attention whenever the weights are not asked for",
        "or a gate per head, (H,) or (B, H): its context is multiplied by it",
        "with return_weights=True also weights (B, H, T_q, T_k)",
        "We train one layer with 1, 2 and 4 heads",
        "Raises ValueError if n_heads does not divide d_model",
    ),
    stages={
        "without a mask": 2,
        "with a mask": 1,
        "with head_mask": 1,
        "with dropout, fused and return_weights": 1,
    },
)
def MultiHeadAttention(student, draw):  # noqa: N802
    """Equal to nn.MultiheadAttention for self and cross, under masks, gated, fused, in training."""
    values = _weights(draw, 27)
    module, oracle = _loaded(student, values, 3), _oracle(values, 3)
    x, keys, memory = draw.normal(2, 5, 27), draw.normal(2, 7, 27), draw.normal(2, 7, 27)
    expected, weights = oracle(x, keys, memory)
    with expect.stage("without a mask"):
        output = module(x, x, x)
        expect.shape(output, (2, 5, 27), axes="B, T, d_model")
        expect.dtype(output, F64)
        _close(output, oracle(x, x, x)[0], "self-attention differs from nn.MultiheadAttention")
        output = module(draw.strided(x), draw.strided(keys), draw.strided(memory))
        _close(output, expected, "with T_q=5 and T_k=7 it differs from nn.MultiheadAttention")
    with expect.stage("with a mask"):
        _obeys_masks(module, draw, values, x, keys, memory)
        _obeys_below(student)
    with expect.stage("with head_mask"):
        _gates_heads(module, draw, values, x, keys, memory)
    for n_heads in (4, 54):
        what = f"n_heads={n_heads} does not divide d_model=27: a ValueError should say so"
        expect.raises(student, ValueError, 27, n_heads, what=what)
    fused = _loaded(student, values, 3, fused=True)
    with expect.stage("with dropout, fused and return_weights"):
        _returns_weights(module, expected, weights, x, keys, memory)
        _close(fused(x, keys, memory), expected, "with fused=True the output is another one")
        _returns_weights(fused, expected, weights, x, keys, memory, also="fused=True and ")
    with expect.stage("with a mask"):
        _obeys_masks(fused, draw, values, x, keys, memory, also="fused=True and ")
    with expect.stage("with head_mask"):
        _gates_heads(fused, draw, values, x, keys, memory, also="fused=True and ")
    with expect.stage("with dropout, fused and return_weights"):
        _drops_in_training_only(student, draw, 0.3)
        _drops_in_training_only(student, draw, 0.6, fused=True)
    with expect.stage("with head_mask"):
        if expect.stands("with a mask") and expect.stands("with dropout, fused and return_weights"):
            for layer, also in ((module, ""), (fused, "fused=True and ")):
                _does_all_at_once(layer, draw, values, x, keys, memory, also=also)
    with expect.stage("without a mask"):
        _sends_gradients(module, oracle, draw.normal(2, 5, 27), x, keys, memory)
        for sizes in (
            (9, 1, 2, 3, 5, 1.0),
            (6, 6, 1, 1, 7, 1.0),
            (18, 2, 1, 5, 1, 1.0),
            (27, 3, 3, 1, 1, 1.0),
            (18, 2, 2, 3, 7, 100.0),
        ):
            with expect.care():
                _fits_other_sizes(student, draw, *sizes)


def _returns_weights(module, output, weights, *inputs, also=""):
    result = module(*inputs, return_weights=True)
    fits = isinstance(result, tuple | list) and len(result) == 2
    what = f"with {also}return_weights=True "
    expect.true(
        fits, what + "the result is not a pair", expect.describe(result), "(output, weights)"
    )
    _close(result[0], output, what + "the output is another one")
    expect.shape(result[1], weights.shape, axes="B, H, T_q, T_k")
    _close(result[1], weights, what + "the weights of the heads are wrong")


def _obeys_masks(module, draw, values, *inputs, also=""):
    shapes = ((5, 7), (2, 5, 7)) if also else ((5, 7), (2, 1, 7), (2, 5, 7), (1, 5, 7), (2, 5, 1))
    for shape in shapes:
        mask = draw.uniform(*shape) < 0.5
        if shape[-1] > 1:
            mask[..., 3], mask[..., 4] = True, False
        if shape[-2] > 1:
            mask[..., 1, :], mask[..., 2, -1] = False, True  # position 1 may attend to nothing
        output = module(*inputs, mask)
        expected, _ = _by_heads(values, *inputs, mask=mask)
        _close(output, expected, f"with {also}a mask of shape {shape} the output is wrong")
    nothing = torch.zeros(2, 1, 7, dtype=torch.bool)
    output = module(*inputs, nothing)
    what = f"with {also}nothing to attend to the output should be the bias of W_o"
    _close(output, values["W_o.bias"].expand(2, 5, 27), what)


def _obeys_below(student):
    """Two heads of one feature each; all that a query may see scores 1000 below what it may not."""
    weights = {f"{layer}.weight": torch.eye(2, dtype=F64) for layer in LAYERS}
    module = _loaded(student, weights | {f"{layer}.bias": _zeros(2) for layer in LAYERS}, 2)
    query, key = torch.full((1, 1, 2), 512.0, dtype=F64), _zeros(1, 3, 2)
    key[0, :2] = torch.tensor([[-1024.0], [-1023.0]]) / 512
    value = torch.tensor([[[1.0, 5.0], [3.0, -2.0], [-7.0, 4.0]]], dtype=F64)
    shares = torch.tensor([-1024.0, -1023.0], dtype=F64).softmax(0)
    output = module(query, key, value, torch.tensor([[True, True, False]]))
    what = "where the scores that may be seen are around -1000, and 0 what may not, it is wrong"
    _close(output, (shares @ value[:, :2]).view(1, 1, 2), what)


def _zeros(*shape):
    return torch.zeros(shape, dtype=F64)


def _gates_heads(module, draw, values, *inputs, also=""):
    """One gate per head, (H,) or (B, H)."""
    several = (torch.tensor([1.0, 0.0, 1.0], dtype=F64), draw.uniform(3), draw.uniform(2, 3))
    for gates in several[-1:] if also else several:
        what = f"with {also}a head_mask of shape {tuple(gates.shape)} "
        expected, _ = _by_heads(values, *inputs, gates=gates)
        output = module(*inputs, head_mask=gates)
        _close(output, expected, what + "the output is wrong")
    if also:
        return
    three = [item[:1].expand(3, -1, -1).clone() for item in inputs]  # as many sequences as heads
    for gates in (draw.uniform(3), draw.uniform(3, 3)):
        _gates_three(module, values, three, gates)
    with expect.care():
        _gates_three(module, values, three, draw.uniform(1, 3))


def _does_all_at_once(module, draw, values, *inputs, also=""):
    """A mask, gates, and the weights asked for."""
    mask, gates = draw.uniform(2, 5, 7) < 0.5, draw.uniform(2, 3)
    mask[..., 3] = True
    expected, weights = _by_heads(values, *inputs, mask=mask, gates=gates)
    output, got = module(*inputs, mask, gates, True)
    what = f"with {also}a head_mask of shape {tuple(gates.shape)} "
    _close(output, expected, what + "and a mask the output is wrong")
    _close(got, weights, what + "the weights should be those without it")


def _gates_three(module, values, three, gates):
    expected, _ = _by_heads(values, *three, gates=gates)
    what = f"for 3 sequences, with a head_mask of shape {tuple(gates.shape)} "
    _close(module(*three, head_mask=gates), expected, what + "the output is wrong")


def _by_heads(values, *inputs, mask=None, gates=None, n_heads=3):
    """A sum over single heads: each has its slice of the three projections, then that of W_o."""
    shape = (len(inputs[0]), inputs[0].shape[1], inputs[1].shape[1])
    mask = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    gates = torch.ones(n_heads, dtype=F64) if gates is None else gates
    gates, total, kept = gates.expand(shape[0], n_heads), values["W_o.bias"], []
    for h, part in enumerate(torch.arange(len(total)).chunk(n_heads)):
        q, k, v = (
            F.linear(given, values[f"{name}.weight"][part], values[f"{name}.bias"][part])
            for given, name in zip(inputs, LAYERS[:3], strict=True)
        )
        scores = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(len(part))
        weights = torch.softmax(scores.masked_fill(~mask, -math.inf), -1).nan_to_num(0.0)
        context = torch.einsum("bij,bjd->bid", weights, v) * gates[:, h, None, None]
        total = total + torch.einsum("btd,md->btm", context, values["W_o.weight"][:, part])
        kept.append(weights)
    return total, torch.stack(kept, 1)


def _fits_other_sizes(student, draw, d_model, n_heads, B, T_q, T_k, scale):
    """Sizes of one, as many heads as features, and scores in the thousands."""
    values = _weights(draw, d_model)
    inputs = [draw.normal(B, T, d_model, scale=scale) for T in (T_q, T_k, T_k)]
    expected, weights = _oracle(values, n_heads)(*inputs)
    module = _loaded(student, values, n_heads)
    output = module(*inputs)
    what = f"with d_model={d_model}, n_heads={n_heads}, B={B}, T_q={T_q}, T_k={T_k}"
    what += " and large numbers" if scale > 1 else ""
    _close(output, expected, what + " the output is wrong")
    if expect.stands("with dropout, fused and return_weights"):  # else they are paid for there
        _close(module(*inputs, return_weights=True)[1], weights, what + " the weights are wrong")


def _drops_in_training_only(student, draw, p, **options):
    """The output shows the weights: each stands in three features of its head, side by side."""
    values = _weights(draw, 27)
    for layer in ("W_v", "W_o"):
        values[f"{layer}.weight"] = torch.eye(27, dtype=F64)
        values[f"{layer}.bias"] = torch.zeros(27, dtype=F64)
    query, key = draw.normal(2, 100, 27, scale=0.5), draw.normal(2, 3, 27, scale=0.5)
    value = torch.eye(3, dtype=F64).repeat_interleave(3, 1).repeat(1, 3).expand(2, 3, 27).clone()
    module = _loaded(student, values, 3, p, **options)
    words = ", ".join([f"dropout={p}", *(f"{name}={value}" for name, value in options.items())])
    expected, _ = _by_heads(values, query, key, value)
    module.eval()
    what = f"with {words} the output after eval() is not that without dropout"
    _close(module(query, key, value), expected, what)
    module.train()
    outputs = [module(query, key, value) for _ in range(2)]
    outputs.append(module(query, key, value, return_weights=True)[0])
    for output in outputs:
        expect.shape(output, expected.shape, axes="B, T, d_model")
        _are_dropped(output, expected, p, f"in training with {words} ")
    alike = torch.equal(outputs[0], outputs[1])
    expect.true(not alike, f"in training with {words} two calls drop the same weights")


def _are_dropped(output, expected, p, when):
    """Each weight of (B, T_q, H, T_k) is gone or grown by 1 / (1 - p), with a chance of its own."""
    got, wanted = (x.unflatten(-1, (3, 3, 3)) for x in (output, expected / (1 - p)))
    dropped = got == 0
    share = dropped.double().mean().item()
    expect.true(share, when + "no weight is dropped", "no weight is 0", f"about {p:.0%} zeros")
    what = when + "a weight that is not dropped should grow by 1 / (1 - dropout)"
    _close(got, wanted.masked_fill(dropped, 0.0), what)
    what = when + "something else than single weights is dropped"
    together = torch.equal(dropped.all(-1), dropped.any(-1))
    some = "features of a head that use the same weight"
    expect.true(together, what, f"{some} are not dropped together", f"{some}: all or none")
    what = when + "the wrong share of the weights is dropped"
    expect.true(abs(share - p) < 0.08, what, f"{share:.0%}", f"about {p:.0%}")
    for axis, name in enumerate(("sequence", "query", "head", "key")):
        first = dropped.narrow(axis, 0, 1).expand_as(dropped)
        what = when + f"the same weights are dropped for every {name}"
        expect.true(not torch.equal(first, dropped), what)


def _sends_gradients(module, oracle, cotangent, *inputs):
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        wanted = torch.autograd.grad((oracle(*leaves)[0] * cotangent).sum(), leaves)
    by_name, found = module.gradients(*inputs, cotangent=cotangent)
    for name, gradient in by_name.items():
        expect.true(gradient is not None, f"no gradient reaches {name}", "None", "a gradient")
        expect.finite(gradient, f"the gradient of {name} is not finite")
    with expect.care("gradients"):
        for got, expected, name in zip(found, wanted, ("query", "key", "value"), strict=True):
            expect.true(got is not None, f"no gradient reaches the {name}", "None", "a gradient")
            _close(got, expected, f"the gradient of the {name} is wrong")


@check(
    rests_on=(
        "From the heads' contexts and $W_o$, compute the update of every head: (B, H, T, d_model)",
        "the first d_head rows belong to head 0, the next d_head to head 1, and so on",
        "added up over the heads, it is the merged contexts times W_o",
    )
)
def head_updates(student, draw):
    """Each head's context times its own rows of W_o; the sum is that of the merged contexts."""
    by_hand = torch.tensor([2.0, 3.0], dtype=F64).view(1, 2, 1, 1)
    W_o = torch.tensor([[1.0, 0.0, 10.0], [0.0, 1.0, 100.0]], dtype=F64)
    updates = student(by_hand, W_o)
    expect.shape(updates, (1, 2, 1, 3), axes="B, H, T, d_model")
    expect.dtype(updates, F64)
    expected = torch.tensor([[2.0, 0.0, 20.0], [0.0, 3.0, 300.0]], dtype=F64).view(1, 2, 1, 3)
    what = "for contexts 2 and 3, and a W_o of the rows (1, 0, 10) and (0, 1, 100), it is wrong"
    expect.close(updates, expected, what)
    heads = draw.normal(2, 3, 5, 6)
    for d_model in (18, 7):  # H · d_head, and another width
        W_o = draw.normal(18, d_model)
        updates = student(heads, W_o)
        expect.shape(updates, (2, 3, 5, d_model), axes="B, H, T, d_model")
        what = f"with d_model={d_model} the updates do not add up to the merged contexts times W_o"
        _close(updates.sum(1), _side_by_side(heads) @ W_o, what)
        what = f"with d_model={d_model} the sum is right, but not what each head adds to it"
        _close(updates, _one_at_a_time(heads, W_o), what)
    _updates(student, draw.normal(1, 5, 7, 3), draw.normal(15, 15))
    strided = draw.strided(heads), draw.strided(draw.normal(18, 18))
    _updates(student, *strided)
    with expect.care():
        for sizes, d_model in (((3, 1, 5, 2), 6), ((2, 3, 1, 1), 5), ((1, 2, 3, 7), 1)):
            _updates(student, draw.normal(*sizes), draw.normal(sizes[1] * sizes[3], d_model))
    with expect.care():
        _updates(student, draw.normal(2, 3, 5, 6, scale=1000.0), draw.normal(18, 18))
    with expect.care("gradients"):
        cotangent = draw.normal(2, 3, 5, 7)
        expect.gradients(student, _one_at_a_time, heads, draw.normal(18, 7), cotangent=cotangent)


def _updates(student, heads, W_o):
    what = (
        f"for heads of shape {tuple(heads.shape)} and W_o of shape {tuple(W_o.shape)} it is wrong"
    )
    expect.close(student(heads, W_o), _one_at_a_time(heads, W_o), what, rtol=1e-4, atol=2e-5)


def _one_at_a_time(heads, W_o):
    """What the whole layer makes of one head, where all others are silent."""
    updates = []
    for h in range(heads.shape[1]):
        gate = torch.zeros(heads.shape[1], 1, 1, dtype=heads.dtype)
        gate[h] = 1.0
        updates.append(_side_by_side(heads * gate) @ W_o)
    return torch.stack(updates, 1)


# One item is 8 + 8 + 8 numbers of three names, and the 4 of its content.


def _items(draw):
    """Rows of items (6, 8, 28), and the places (2, 6, 8) of the two that each one asks for."""
    names = torch.stack([draw.permutation(8) for _ in range(6)])
    asked = draw.integers(0, 8, 2, 6, 8)
    one_hot = [F.one_hot(some, 8).to(F64) for some in (names, *asked)]
    places = torch.stack([names.argsort(1).gather(1, some) for some in asked])
    return torch.cat([*one_hot, draw.normal(6, 8, 4)], -1), places


@check(
    without={"care": "only a number comes in", "gradients": "nothing is learned through it"},
    rests_on=(
        "Let head 0 look at the first item that is asked for, and head 1 at the second",
        "each (28, 28) and to the right of x",
        "Columns 0 to 13 make the queries, keys and values of head 0",
        "The first eight numbers of a key are the item's own name",
        "the score of the item that is asked for must be strength, and that of every other item 0",
        "The first four numbers of a value are the content",
        "All other entries are 0",
    ),
)
def heads_by_hand(student, draw):
    """The scores and values of both heads on random rows of items, then the entries."""
    strength = draw.uniform(low=3, high=9).item()
    matrices = expect.parts(student(strength), "W_q", "W_k", "W_v")
    for W in matrices:
        expect.shape(W, (28, 28))
    x, places = _items(draw)
    for h, which in enumerate(("first", "second")):
        q, k, v = ((x @ W.to(F64))[..., 14 * h : 14 * h + 14] for W in matrices)
        scores, place = q @ k.mT / math.sqrt(14), F.one_hot(places[h], 8)  # (6, 8, 8) each
        looks = scores.argmax(-1).eq(places[h]).all() and (scores.amax(-1) > 0).all()
        got = f"scores {[round(one, 2) for one in scores[0, 0].tolist()]} of the eight items"
        wanted = f"the largest at place {places[h, 0, 0]}"
        what = f"head {h} does not look at the {which} item that is asked for"
        expect.true(looks, what, f"for the item at place 0, {got}", wanted)
        what = f"head {h} looks at the right item, but its scores are not strength and 0"
        close = torch.allclose(scores, strength * place.to(F64), rtol=1e-4, atol=1e-4)
        expect.true(close, f"{what}, with strength={strength:.4g}", got, f"{strength:.4g} and 0")
        what = f"a value of head {h} does not begin with the content of the item"
        expect.close(v[..., :4], x[..., 24:], what, rtol=1e-4, atol=1e-4)
    for name, W, wanted in zip(("W_q", "W_k", "W_v"), matrices, _by_hand(strength), strict=True):
        what = f"the entries of {name} are not those that the text describes"
        expect.close(W.to(F64), wanted, what, rtol=1e-4, atol=1e-4)


def _by_hand(strength):
    """W_q, W_k and W_v, entry by entry."""
    W = torch.zeros(3, 28, 28, dtype=F64)
    for head, n in itertools.product(range(2), range(8)):
        W[0, 8 + 8 * head + n, 14 * head + n] = strength * 14**0.5
        W[1, n, 14 * head + n] = 1
        if n < 4:
            W[2, 24 + n, 14 * head + n] = 1
    return W


@check(
    rests_on=(
        "the sum over the shared features d of q[d] · mixing[h, d] · k[d]",
        "the scores are divided by its root",
        "returns (B, H, T_q, d_v)",
        "on the features of head h and 0 elsewhere this is ordinary",
    ),
    stages={"one head": 1, "several heads": 1, "the scale": 1},
)
def collaborative_heads(student, draw):
    """Any mixing against a loop over heads; block one-hot mixing is ordinary heads."""
    q, k, v = draw.normal(2, 5, 6, scale=1.5), draw.normal(2, 7, 6), draw.normal(2, 3, 7, 8)
    mixing = draw.normal(3, 6)
    expected = _mixed(q, k, v, mixing, 9)
    wide = draw.normal(2, 5, 27), draw.normal(2, 7, 27), v
    with expect.stage("one head"):
        alone = q, k, v[:, :1], mixing[:1], 9
        _mixes_at_some_scale(student(*alone), *alone, "with one head the context is wrong")
    with expect.stage("several heads"):
        context = student(q, k, v, mixing, 9)
        expect.shape(context, (2, 3, 5, 8), axes="B, H, T_q, d_v")
        expect.dtype(context, F64)
        what = "the contexts differ from a loop over the heads"
        _mixes_at_some_scale(context, q, k, v, mixing, 9, what)
    with expect.stage("the scale"):
        ones = torch.ones(1, 6, dtype=F64)
        what = "with one head that listens to all features alike, the scores are not scaled rightly"
        alone = q, k, v[:, :1], ones, 9
        expect.close(student(*alone), _mixed(*alone), what)
        if expect.stands("one head") and expect.stands("several heads"):
            expect.close(context, expected, "the contexts differ from a loop over the heads")
            _are_ordinary_heads(student, *wide)
            with expect.care():
                strided = [draw.strided(tensor) for tensor in (q, k, v, mixing)]
                context = student(*strided, 9)
                expect.close(context, expected, "another memory layout gives other contexts")
            _mixes_with_care(student, draw, *wide)


def _mixes_at_some_scale(got, q, k, v, mixing, d_head, what):
    """The contexts are right, or would be if the scores were divided by what they should be."""
    expect.shape(got, (len(q), len(mixing), q.shape[1], v.shape[-1]), axes="B, H, T_q, d_v")
    for divisor in (d_head**2, 1, q.shape[-1], q.shape[-1] ** 2):
        if torch.allclose(got.to(F64), _mixed(q, k, v, mixing, divisor), rtol=1e-5, atol=1e-6):
            return
    expect.close(got, _mixed(q, k, v, mixing, d_head), what)


def _are_ordinary_heads(student, q, k, v):
    blocks = torch.eye(3, dtype=F64).repeat_interleave(9, 1)
    expected = F.scaled_dot_product_attention(_heads_in_loops(q, 3), _heads_in_loops(k, 3), v)
    what = "with block one-hot mixing it differs from ordinary heads"
    expect.close(student(q, k, v, blocks, 9), expected, what)


def _mixes_with_care(student, draw, q, k, v):
    # (B, H, T_q, T_k, d_shared, d_v), and d_head; the last one with scores in the thousands.
    for sizes, d_head, scale in (
        ((1, 1, 1, 7, 5, 3), 25, 1.0),
        ((1, 5, 3, 1, 1, 2), 9, 1.0),
        ((3, 3, 3, 3, 6, 1), 25, 1.0),
        ((2, 3, 5, 7, 6, 8), 1, 100.0),
    ):
        with expect.care():
            _mixes_in_other_sizes(student, draw, sizes, d_head, scale)
    with expect.care("gradients"):
        mixing, cotangent = draw.normal(3, 27), draw.normal(2, 3, 5, 8)
        expect.gradients(student, _mixed, q, k, v, mixing, 9, cotangent=cotangent)


def _mixes_in_other_sizes(student, draw, sizes, d_head, scale):
    B, H, T_q, T_k, d_shared, d_v = sizes
    q, k = draw.normal(B, T_q, d_shared, scale=scale), draw.normal(B, T_k, d_shared)
    v, mixing = draw.normal(B, H, T_k, d_v), draw.normal(H, d_shared)
    what = f"with (B, H, T_q, T_k, d_shared, d_v) = {sizes} and d_head={d_head}"
    what += " and large numbers in q" if scale > 1 else ""
    expected = _mixed(q, k, v, mixing, d_head)
    expect.close(student(q, k, v, mixing, d_head), expected, what + " the contexts are wrong")


def _mixed(q, k, v, mixing, d_head):
    """Head after head: scale the shared features of the queries by the head's mixture."""
    rows = [
        F.scaled_dot_product_attention(q * mixing[h], k, v[:, h], scale=1 / math.sqrt(d_head))
        for h in range(len(mixing))
    ]
    return torch.stack(rows, 1)
