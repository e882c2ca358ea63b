"""Checks of lesson 09. The oracles are PyTorch's own layers, with the weights copied."""

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking import expect
from autograder.checking.registry import check

F64 = torch.float64
SIZES = (12, 3, 20)  # d_model, n_heads, d_ff


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


@check
def LayerNorm(student, draw):  # noqa: N802
    """Parameters, the four steps by hand, then nn.LayerNorm with eps=0.1 and other weights."""
    module = student.build(4, eps=5.0)
    named = module.parameters()
    wanted = "weight and bias, as parameters"
    got = ", ".join(named) or "none"
    expect.true({*named} == {"weight", "bias"}, "the parameters are other ones", got, wanted)
    for name, start in (("weight", torch.ones(4)), ("bias", torch.zeros(4))):
        expect.close(named[name].double(), start.double(), f"{name} begins with other values")
    module.load({"weight": torch.ones(4, dtype=F64), "bias": torch.zeros(4, dtype=F64)})
    # Mean 3, variance 4: the deviations of -2 and 2 are divided by the root of 4 + 5.
    normed = module(_tensor(1, 1, 5, 5))
    expect.shape(normed, (4,), axes="d_model")
    expected = _tensor(-2, -2, 2, 2) / 3
    expect.close(normed, expected, "with eps=5, the vector 1, 1, 5, 5 is not normalised rightly")

    module, x = student.build(7, eps=0.1), 2 * draw.normal(2, 5, 7) + 3
    module.load({"weight": torch.ones(7, dtype=F64), "bias": torch.zeros(7, dtype=F64)})
    normed = module(x)
    expect.shape(normed, (2, 5, 7), axes="B, T, d_model")
    what = "the mean of every vector should be 0"
    expect.close(normed.mean(2), torch.zeros(2, 5, dtype=F64), what, atol=1e-6)
    alone = module(x[1:, 2:3])
    expect.close(alone, normed[1:, 2:3], "a vector's result depends on the vectors beside it")
    expect.close(normed, F.layer_norm(x, (7,), eps=0.1), "it differs from nn.LayerNorm", rtol=1e-5)
    values = {"weight": draw.normal(7), "bias": draw.normal(7)}
    module.load(values)
    for shape in ((7,), (3, 7), (2, 5, 7), (2, 3, 4, 7)):
        x = draw.normal(*shape, scale=0.5)
        expected = F.layer_norm(x, (7,), **values, eps=0.1)
        what = f"with trained parameters and an input of {shape} it differs from nn.LayerNorm"
        expect.close(module(draw.strided(x)), expected, what)
    module.eval()
    expect.close(module(x), expected, "after eval() the result is another one")
    _same_gradients(module, lambda x: F.layer_norm(x, (7,), **values, eps=0.1), draw.normal(2, 7))
    by_name, _ = module.gradients(draw.normal(2, 7))
    for name, gradient in by_name.items():
        expect.true(gradient is not None, f"no gradient reaches {name}", "None", "a gradient")


def _same_gradients(module, reference, *inputs):
    """The gradients of the inputs equal those of the oracle."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        result = reference(*leaves)
        cotangent = torch.linspace(-1, 2, result.numel(), dtype=F64).view(result.shape)
        loss = (result * cotangent).sum()
        wanted = torch.autograd.grad(loss, leaves, allow_unused=True)
    _, found = module.gradients(*inputs, cotangent=cotangent)
    for place, (got, expected) in enumerate(zip(found, wanted, strict=True), start=1):
        if expected is None:
            continue
        which = f"argument {place}"
        expect.true(got is not None, f"no gradient reaches {which}", "None", "a gradient")
        expect.close(got, expected, f"the gradient of {which} is wrong")


@check
def FeedForward(student, draw):  # noqa: N802
    """Two units by hand, then two linear maps, position by position, and dropout between them."""
    module = student.build(1, 2)
    by_hand = {
        "linear_1.weight": _tensor(1, -1).view(2, 1),
        "linear_1.bias": _tensor(0, 0),
        "linear_2.weight": _tensor(1, 2).view(1, 2),
        "linear_2.bias": _tensor(-1),
    }
    module.load(by_hand)
    output = module(_tensor(-3, 0.5, 2).view(1, 3, 1))
    expect.shape(output, (1, 3, 1), axes="B, T, d_model")
    what = "for -3, 0.5 and 2, relu(x) + 2 relu(-x) - 1 is wrong"
    expect.close(output, _tensor(5, -0.5, 1).view(1, 3, 1), what)

    module, values = student.build(6, 11), _linear_layers(draw, 6, 11)
    module.load(values)
    x = draw.normal(2, 5, 6)
    output = module(draw.strided(x))
    expect.shape(output, (2, 5, 6), axes="B, T, d_model")
    expect.close(output, _two_layers(values)(x), "it differs from the two linear layers by hand")
    expect.close(module(x[:, 3:4]), output[:, 3:4], "a position's result depends on the others")
    _same_gradients(module, _two_layers(values), x)

    module = student.build(6, 11, 1.0)
    module.load(values)
    module.eval()
    expect.close(module(x), output, "after eval() there should be no dropout")
    module.train()
    what = "in training with dropout=1.0 every hidden unit is dropped: the bias of linear_2 is left"
    expect.close(module(x), values["linear_2.bias"].expand(2, 5, 6), what)


def _linear_layers(draw, d_model, d_ff, prefix=""):
    return {
        f"{prefix}linear_1.weight": draw.normal(d_ff, d_model, scale=0.5),
        f"{prefix}linear_1.bias": draw.normal(d_ff),
        f"{prefix}linear_2.weight": draw.normal(d_model, d_ff, scale=0.4),
        f"{prefix}linear_2.bias": draw.normal(d_model),
    }


def _two_layers(values):
    def forward(x):
        hidden = torch.einsum("btd,fd->btf", x, values["linear_1.weight"])
        hidden = (hidden + values["linear_1.bias"]).clamp(min=0)
        return (
            torch.einsum("btf,df->btd", hidden, values["linear_2.weight"])
            + (values["linear_2.bias"])
        )

    return forward


@check
def Residual(student, draw):  # noqa: N802
    """With given noise, nothing about dropout is random."""
    near = {"rtol": 1e-6, "atol": 1e-6}  # the factor 1 / (1 - p) may be of single precision
    module = student.build(0.2)
    x, update = _tensor(10, 20, 30, 40), _tensor(1, 2, 4, 8)
    noise = _tensor(0.1, 0.2, 0.9, 0.19)
    module.train()
    result = module(x, update, noise)
    module.eval()
    evaluated = module(x, update, noise)  # asked for first: what it tells helps to name a mistake
    expect.shape(result, (4,), axes="d_model")
    what = "in training with p=0.2 and the noise 0.1, 0.2, 0.9, 0.19 the sum is wrong"
    expect.close(result, _tensor(10, 22.5, 35, 40), what, **near)
    what = "after eval() the update should be added as it is"
    expect.close(evaluated, x + update, what)

    module = student.build(0.7)
    x, update, noise = draw.normal(2, 5, 6), draw.normal(2, 5, 6), draw.uniform(2, 5, 6)
    for mode, reference in ((module.train, _dropped), (module.eval, _summed)):
        mode()
        result = module(draw.strided(x), draw.strided(update), draw.strided(noise))
        expect.close(result, reference(x, update, noise), "with p=0.7 the sum is wrong", **near)
    module.train()
    _same_gradients(module, _dropped, x, update, noise)
    never = student.build(0.0)
    never.train()
    expect.close(never(x, update, noise), x + update, "with p=0 nothing should be dropped")
    big = module(torch.zeros(100, 100, dtype=F64), torch.ones(100, 100, dtype=F64))
    share = (big == 0).double().mean().item()
    what = "without given noise another share of the entries is dropped than p=0.7"
    expect.true(0.65 < share < 0.75, what, f"{share:.2f}", "about 0.70")


def _dropped(x, update, noise, p=0.7):
    kept = torch.where(noise < p, torch.zeros_like(update), update / (1 - p))
    return x + kept


def _summed(x, update, noise):
    return x + update


def _parameters(draw, norms, attentions=("attention",)):
    """Weights for a layer, large enough for every slip to show."""
    d_model, _, d_ff = SIZES
    values = _linear_layers(draw, d_model, d_ff, "feed_forward.")
    for name in attentions:
        for part in ("W_q", "W_k", "W_v", "W_o"):
            values[f"{name}.{part}.weight"] = draw.normal(d_model, d_model, scale=0.5)
            values[f"{name}.{part}.bias"] = draw.normal(d_model)
    for number in range(1, norms + 1):
        values[f"norm_{number}.weight"] = draw.uniform(d_model, low=0.5, high=2.0)
        values[f"norm_{number}.bias"] = draw.normal(d_model)
    return values


def _oracle(values, pre_norm, decoder=False):
    """PyTorch's layer with these weights, in evaluation."""
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    layer = kind(*SIZES, batch_first=True, norm_first=pre_norm, dtype=F64).eval()
    ours = {"self_attn": "attention", "multihead_attn": "cross_attention"}
    copied = {}
    for name in layer.state_dict():
        part, _, rest = name.partition(".")
        if part in ours:
            attention = ours[part]
            if rest.startswith("in_proj_"):
                kind = rest.removeprefix("in_proj_")
                stacked = [values[f"{attention}.{W}.{kind}"] for W in ("W_q", "W_k", "W_v")]
                copied[name] = torch.cat(stacked)
            else:
                copied[name] = values[f"{attention}.W_o.{rest.removeprefix('out_proj.')}"]
        else:
            number = f"{part[:-1]}_{part[-1]}.{rest}"  # linear1 is linear_1, norm1 is norm_1
            copied[name] = values[number if "norm" in part else f"feed_forward.{number}"]
    layer.load_state_dict(copied)
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    return layer


def _build(student, values, pre_norm):
    """In evaluation; a probability of 1 drops everything, so what dropout does is not random."""
    module = student.build(*SIZES, 1.0, pre_norm)
    module.load(values)
    module.eval()
    return module


@check
def EncoderLayer(student, draw):  # noqa: N802
    """Equal to nn.TransformerEncoderLayer in both norms, under masks; dropout in its place."""
    values, x = _parameters(draw, norms=2), draw.normal(2, 5, 12)
    real = torch.arange(5) < torch.tensor([5, 3])[:, None]  # (B, T)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    modules = [_build(student, values, pre_norm) for pre_norm in (False, True)]
    outputs = [module(x) for module in modules]  # both first: together they name more mistakes
    for pre_norm, module, output in zip((False, True), modules, outputs, strict=True):
        kind, oracle = _norm(pre_norm), _oracle(values, pre_norm)
        expect.shape(output, (2, 5, 12), axes="B, T, d_model")
        expect.dtype(output, F64)
        what = f"the {kind} layer differs from nn.TransformerEncoderLayer"
        expect.close(output, oracle(x), what)
        expect.close(module(draw.strided(x)), oracle(x), "another memory layout changes the output")
        output = module(x, real[:, None])
        expected = oracle(x, src_key_padding_mask=~real)
        what = f"with a padding mask the {kind} layer is wrong at a real token"
        expect.close(output[real], expected[real], what)
        what = f"with a causal mask the {kind} layer is wrong"
        expect.close(module(x, causal), oracle(x, src_mask=~causal), what)
        _same_gradients(module, oracle, x)
    for pre_norm, module in zip((False, True), modules, strict=True):
        module.train()
        expected = x if pre_norm else _normed(_normed(x, values, 1), values, 2)
        what = f"in training with dropout=1.0 the updates of the {_norm(pre_norm)} layer should go"
        expect.close(module(x), expected, what)


def _norm(pre_norm):
    return "pre-norm" if pre_norm else "post-norm"


def _normed(x, values, number):
    return F.layer_norm(x, (12,), values[f"norm_{number}.weight"], values[f"norm_{number}.bias"])


@check
def DecoderLayer(student, draw):  # noqa: N802
    """No future, then nn.TransformerDecoderLayer in both norms, T_q ≠ T_k, with both masks."""
    values = _parameters(draw, 3, ("attention", "cross_attention"))
    x, memory = draw.normal(2, 5, 12), 1 + 2 * draw.normal(2, 7, 12)
    modules = [_build(student, values, pre_norm) for pre_norm in (False, True)]
    outputs = [module(x, memory) for module in modules]
    for pre_norm, module, output in zip((False, True), modules, outputs, strict=True):
        oracle = _oracle(values, pre_norm, decoder=True)
        expect.shape(output, (2, 5, 12), axes="B, T_q, d_model")
        _hides_the_future(module, draw, x, memory, output)
        causal = ~torch.ones(5, 5, dtype=torch.bool).tril()
        what = f"the {_norm(pre_norm)} layer differs from nn.TransformerDecoderLayer"
        expect.close(output, oracle(x, memory, tgt_mask=causal), what)
        output = module(draw.strided(x), draw.strided(memory))
        expected = oracle(x, memory, tgt_mask=causal)
        expect.close(output, expected, "another memory layout changes the output")
        _obeys_masks(module, draw, oracle, pre_norm)
        _same_gradients(module, lambda x, m, o=oracle, c=causal: o(x, m, tgt_mask=c), x, memory)
    for pre_norm, module in zip((False, True), modules, strict=True):
        module.train()
        expected = x
        for number in () if pre_norm else (1, 2, 3):
            expected = _normed(expected, values, number)
        what = f"in training with dropout=1.0 the updates of the {_norm(pre_norm)} layer should go"
        expect.close(module(x, memory), expected, what)


def _hides_the_future(module, draw, x, memory, output):
    other = x.clone()
    other[:, 3:] = draw.normal(2, 2, 12)
    after = module(other, memory)
    what = "another future, positions 3 and 4, changes the output before it"
    expect.close(after[:, :3], output[:, :3], what)


def _obeys_masks(module, draw, oracle, pre_norm):
    """First with as many keys as queries, so that mistaken masks have a result, then with more."""
    for T_k in (5, 7):
        x, memory = draw.normal(2, 5, 12), draw.normal(2, T_k, 12)
        causal = torch.ones(5, 5, dtype=torch.bool).tril()
        # A hole in the target: padding behind it would be hidden by the causal mask alone.
        target = torch.arange(5) != torch.tensor([1, 2])[:, None]  # (B, T_q)
        source = torch.arange(T_k) < torch.tensor([2, T_k])[:, None]  # (B, T_k)
        output = module(x, memory, target[:, None], source[:, None])
        expected = oracle(
            x,
            memory,
            tgt_mask=~causal,
            tgt_key_padding_mask=~target,
            memory_key_padding_mask=~source,
        )
        what = f"with both masks and T_k={T_k} the {_norm(pre_norm)} layer is wrong"
        expect.close(output, expected, what)


@check
def layer_parameters(student, draw):
    """Against the sizes of PyTorch's layers."""
    count, decoder = student(d_model=4, d_ff=6), student(d_model=4, d_ff=6, cross=True)
    # Attention 4 · (16 + 4), feed-forward (24 + 6) + (24 + 4), two norms of 8.
    expect.close(count, 154, "with d_model=4 and d_ff=6 the encoder layer has another size")
    expect.equal(count, 154, "the count should be an int")
    expect.close(decoder, 242, "with d_model=4 and d_ff=6 the decoder layer has another size")
    for d_model, d_ff in ((512, 2048), tuple(draw.integers(2, 9, 2).tolist())):
        for cross in (False, True):
            kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
            layer = kind(d_model, 1, d_ff, device="meta")
            expected = sum(parameter.numel() for parameter in layer.parameters())
            what = f"with d_model={d_model}, d_ff={d_ff} and cross={cross} the count is wrong"
            expect.close(student(d_model, d_ff, cross=cross), expected, what)


@check
def gradient_norms(student, draw):
    """Two layers by hand, then against gradients worked out by the chain rule."""
    one = torch.ones(1, 1, dtype=F64)
    weights = torch.zeros(3, 1, 1, dtype=F64)
    by_hand = student(one, weights, True)
    x, weights = draw.normal(4, 6), draw.normal(3, 6, 6, scale=0.5)
    found = [student(x, weights, skip) for skip in (False, True)]
    expect.shape(by_hand, (3,), axes="n_layers")
    what = "layers that add 0 should hand the gradient 2 · 1 on unchanged"
    expect.close(by_hand, _tensor(2, 2, 2), what)
    for skip, norms in zip((False, True), found, strict=True):
        expected = _chain_rule(x, weights, skip)
        expect.close(norms, expected, f"with skip={skip} the norms are wrong")
    norms = student(draw.strided(x), draw.strided(weights), True)
    expect.close(norms, expected, "another memory layout gives other norms")


def _chain_rule(x, weights, skip):
    """Backwards by hand: from the loss to every layer."""
    inputs, slopes, h = [], [], x
    for weight in weights:
        update = torch.tanh(h @ weight)
        inputs.append(h)
        slopes.append(1 - update.square())
        h = h + update if skip else update
    arriving, norms = 2 * h / h.numel(), []
    for layer in range(len(weights) - 1, -1, -1):
        inner = arriving * slopes[layer]
        norms.append((inputs[layer].T @ inner).norm())
        back = inner @ weights[layer].T
        arriving = arriving + back if skip else back
    return torch.stack(norms[::-1])
