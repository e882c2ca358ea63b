"""Checks of lesson 09. The oracles are PyTorch's own layers, with the weights copied."""

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking import counterexamples, expect, layers
from autograder.checking.registry import check

F64 = torch.float64
SIZES = (18, 3, 20)  # d_model, n_heads, d_ff
SMALL = (6, 2, 3)  # small enough to list all that dropout can do
P = 0.4  # an ordinary probability of dropout
BOTH = {"post-norm": False, "pre-norm": True}


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


@check(
    rests_on=(
        "LayerNorm brings every vector to mean 0 and variance 1",
        "Normalise over the last axis: (..., d_model) to (..., d_model)",
        "so that a constant vector does not divide by 0",
        "A vector far from 0 keeps its digits",
        "(d_model,) each, begin as ones and zeros",
    )
)
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
    _trained_norm(student, draw, module)


def _trained_norm(student, draw, module):
    """Other weights, all numbers of axes, vectors of every size, the eps that is the default."""
    values = {"weight": draw.normal(7), "bias": draw.normal(7)}
    module.load(values)
    for shape in ((7,), (3, 7), (2, 5, 7), (2, 3, 5, 7)):
        _norms_a_shape(module, draw, values, shape)
    same = torch.full((2, 7), 3.0, dtype=F64)
    what = "of a vector of equal numbers only the bias should be left"
    expect.close(module(same), values["bias"].expand(2, 7), what, atol=1e-8)
    x = draw.normal(3, 7, scale=0.5)
    expected = F.layer_norm(x, (7,), **values, eps=0.1)
    module.eval()
    expect.close(module(x), expected, "after eval() the result is another one", atol=1e-8)
    _keeps_digits(student, draw, values)
    by_default, x = student.build(7), draw.normal(3, 7, scale=0.003)
    by_default.load(values)
    expected = F.layer_norm(x, (7,), **values)
    expect.close(by_default(x), expected, "with the eps that is the default it differs", rtol=1e-5)
    with expect.care():
        for shape in ((2, 3, 1, 7), (1, 1, 7)):
            _norms_a_shape(module, draw, values, shape)
    with expect.care():
        x = draw.normal(3, 7) * _tensor(300, 0, 0.01)[:, None] + _tensor(0, 3, 0)[:, None]
        expected = F.layer_norm(x, (7,), **values, eps=0.1)
        what = "of a vector of large numbers, one of equal and one of small ones, one is wrong"
        expect.close(module(x), expected, what, atol=1e-8)
    with expect.care():
        far = 1e8 + draw.normal(3, 7)
        expected = F.layer_norm(far - 1e8, (7,), **values, eps=0.1)
        what = "with 1e8 added to every number the result changes: digits are lost on the way"
        expect.close(module(far), expected, what, rtol=1e-3, atol=1e-3)
    with expect.care():
        single = student.build(1)
        single.load({"weight": _tensor(2), "bias": _tensor(3)})
        what = "with d_model=1, where each number is its own mean, only the bias is left"
        expect.close(single(_tensor(5, -8).view(2, 1)), _tensor(3, 3).view(2, 1), what)


def _norms_a_shape(module, draw, values, shape):
    x = draw.normal(*shape, scale=0.5)
    expected = F.layer_norm(x, (7,), **values, eps=0.1)
    what = f"with trained parameters and an input of {shape} it differs from nn.LayerNorm"
    expect.close(module(draw.strided(x)), expected, what)


def _keeps_digits(student, draw, values):
    """In float32, where numbers around 3000 have four digits behind the point, their squares 1."""
    module, far = student.build(7, eps=0.1), (3000 + draw.normal(8, 7)).float()
    module.load({name: value.float() for name, value in values.items()})
    expected = F.layer_norm(far.double() - 3000, (7,), **values, eps=0.1)
    normed = module(far)
    expect.shape(normed, (8, 7), axes="B, d_model")
    what = "in float32, with 3000 added to every number, digits are lost on the way"
    expect.close(normed.to(F64), expected, what, rtol=0.01, atol=0.01)


@check(
    rests_on=(
        "the same two linear layers at every position, with a ReLU between them",
        "The dropout is given: it belongs on the hidden units",
        "Work on every position by itself: (..., d_model) to (..., d_model)",
        "probability that a hidden unit is dropped in training",
    )
)
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
    expect.close(output, _two_layers(values, x), "it differs from the two linear layers by hand")
    expect.close(module(x[:, 3:4]), output[:, 3:4], "a position's result depends on the others")
    for shape in ((6,), (3, 6), (2, 3, 5, 6)):
        x = draw.normal(*shape)
        what = f"with an input of {shape} it differs from the two linear layers by hand"
        expect.close(module(x), _two_layers(values, x), what)
    _drops_hidden_units(student, draw, values)
    with expect.care():
        x = draw.normal(2, 5, 6)
        x[0, 1] *= 200
        expect.close(module(x), _two_layers(values, x), "with large numbers in x it is wrong")


def _linear_layers(draw, d_model, d_ff):
    first = layers.linear(draw, "linear_1", d_model, d_ff)
    return first | layers.linear(draw, "linear_2", d_ff, d_model)


def _hidden(values, x):
    return (x @ values["linear_1.weight"].T + values["linear_1.bias"]).clamp(min=0)


def _two_layers(values, x):
    return _hidden(values, x) @ values["linear_2.weight"].T + values["linear_2.bias"]


def _drops_hidden_units(student, draw, values):
    module, x = student.build(6, 11, 1.0), draw.normal(2, 5, 6)
    module.load(values)
    module.eval()
    what = "after eval() there should be no dropout"
    expect.close(module(x), _two_layers(values, x), what)
    module = student.build(6, 11, dropout=1.0)
    module.load(values)
    module.train()
    what = "in training with dropout=1.0 every hidden unit is dropped: the bias of linear_2 is left"
    expect.close(module(x), values["linear_2.bias"].expand(2, 5, 6), what)
    module, values = student.build(6, 6, P), _linear_layers(draw, 6, 6)
    values["linear_2.weight"] = torch.eye(6, dtype=F64)
    module.load(values)
    module.train()
    x = draw.normal(40, 10, 6)
    what = f"in training with dropout={P} the hidden units are not dropped as they should be"
    left = module(x) - values["linear_2.bias"]
    layers.elementwise(left, _loud(_hidden(values, x)), P, what)


def _loud(whole):
    """With 0, which says nothing, in the place of numbers that float32 knows to few digits."""
    return whole.masked_fill(whole.abs() < 0.2, 0.0)


@check(
    rests_on=(
        "in training with dropout on the update",
        "and what is kept divided by $1 - p$; after eval() a plain sum",
        "an entry is dropped where its noise is below p",
        "None draws new noise",
    )
)
def Residual(student, draw):  # noqa: N802
    """With given noise, nothing about dropout is random."""
    near = {"rtol": 1e-6, "atol": 1e-4}  # the factor 1 / (1 - p) may be of single precision
    module = student.build(0.2)
    x, update = _tensor(10, 20, 30, 40), _tensor(1, 2, 4, 8)
    noise = _tensor(0.1, 0.2, 0.9, 0.19)
    module.train()
    result = module(x, update, noise)
    module.eval()
    evaluated = module(x, update, noise)
    expect.shape(result, (4,), axes="d_model")
    what = "in training with p=0.2 and the noise 0.1, 0.2, 0.9, 0.19 the sum is wrong"
    expect.close(result, _tensor(10, 22.5, 35, 40), what, **near)
    what = "after eval() the update should be added as it is"
    expect.close(evaluated, x + update, what)
    for mode in ("eval", "train"):
        _adds(student, draw, mode, (2, 5, 6), near)
    _own_noise(student, draw)
    for shape in ((2, 5, 6), (1, 1, 6), (3, 1)):
        for mode in ("eval", "train"):
            with expect.care():
                _adds(student, draw, mode, shape, near, times=150)


def _adds(student, draw, mode, shape, near, times=1):
    module = student.build(0.7)
    getattr(module, mode)()
    x, update, noise = draw.normal(*shape), draw.normal(*shape), draw.uniform(*shape)
    x[0], update[0] = times * x[0], -times * update[0]
    result = module(draw.strided(x), draw.strided(update), draw.strided(noise))
    expected = (_dropped if mode == "train" else _summed)(x, update, noise)
    what = "with p=0.7" + (" and large numbers" if times > 1 else "")
    expect.close(result, expected, what + " the sum is wrong", **near)


def _own_noise(student, draw):
    never = student.build(0.0)
    never.train()
    x, update = draw.normal(80, 3, 5), draw.normal(80, 3, 5)
    expect.close(never(x, update), x + update, "with p=0 nothing should be dropped")
    module = student.build(P)
    module.train()
    what = f"without given noise and with p={P} the update is not dropped as it should be"
    layers.elementwise(module(x, update) - x, _loud(update), P, what)
    module.eval()
    what = "after eval() and without given noise the update should be added as it is"
    expect.close(module(x, update), x + update, what)


def _dropped(x, update, noise, p=0.7):
    return x + torch.where(noise < p, torch.zeros_like(update), update / (1 - p))


def _summed(x, update, noise):
    return update + x


def _built(student, values, pre_norm, sizes=SIZES, dropout=1.0, **options):
    """In evaluation; with a probability of 1, what dropout does is not random."""
    module = student.build(*sizes, dropout, pre_norm, **options)
    module.load(values)
    module.eval()
    return module


@check(
    rests_on=(
        "Write forward for both drawings",
        "None, or bool that broadcasts to (B, T, T); True = may attend",
        "what goes into a sublayer has been normalised",
        "equal to PyTorch's",
        "dropout before the sum, the norm, and the feed-forward network",
    )
)
def EncoderLayer(student, draw):  # noqa: N802
    """Equal to nn.TransformerEncoderLayer in both norms, under masks; dropout in its place."""
    values, x = layers.layer(draw, SIZES), draw.normal(2, 5, 18)
    for name, pre_norm in BOTH.items():
        module = _built(student, values, pre_norm)
        oracle = layers.pytorch_layer(values, SIZES, pre_norm=pre_norm)
        output = module(x)
        expect.shape(output, (2, 5, 18), axes="B, T, d_model")
        expect.dtype(output, F64)
        what = f"the {name} layer differs from nn.TransformerEncoderLayer"
        expect.close(output, oracle(x), what)
        _masked_encoder(module, draw, oracle, name)
    for name, pre_norm in BOTH.items():
        fused = _built(student, values, pre_norm, fused=True)
        causal = torch.ones(5, 5, dtype=torch.bool).tril()
        what = f"with fused=True and a causal mask the {name} layer is wrong"
        expected = layers.pytorch_layer(values, SIZES, pre_norm=pre_norm)(x, src_mask=~causal)
        expect.close(fused(x, causal), expected, what)
    _drops_updates(student, draw, ("attention", "feed_forward"))
    for name, pre_norm in BOTH.items():
        module = _built(student, values, pre_norm)
        oracle = layers.pytorch_layer(values, SIZES, pre_norm=pre_norm)
        _encodes_unusual_inputs(module, draw, oracle, name)


def _encodes_unusual_inputs(module, draw, oracle, name):
    """Another memory layout, a large vector, one sentence, one word."""
    with expect.care():
        x = draw.normal(2, 5, 18)
        expect.close(module(draw.strided(x)), oracle(x), "another memory layout changes the output")
    with expect.care():
        x = draw.normal(2, 5, 18)
        x[1, 1] *= 200
        causal = torch.ones(5, 5, dtype=torch.bool).tril()
        what = f"with large numbers in x and a causal mask the {name} layer is wrong"
        expect.close(module(x, causal), oracle(x, src_mask=~causal), what)
    for B, T in ((1, 5), (3, 1)):
        with expect.care():
            x = draw.normal(B, T, 18)
            expect.close(module(x), oracle(x), f"with B={B} and T={T} the {name} layer is wrong")


def _masked_encoder(module, draw, oracle, name):
    x = draw.normal(2, 5, 18)
    real = torch.arange(5) < torch.tensor([5, 3])[:, None]  # (B, T)
    expected = oracle(x, src_mask=layers.forbidden(real[:, None], 3, 2, 5, 5))
    what = f"with a padding mask the {name} layer is wrong at a real token"
    expect.close(module(x, real[:, None])[real], expected[real], what)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    what = f"with a causal mask the {name} layer is wrong"
    expect.close(module(x, mask=causal), oracle(x, src_mask=~causal), what)
    some = (draw.uniform(2, 5, 5) < 0.5) | torch.eye(5, dtype=torch.bool)
    what = f"with a mask of its own for every sentence the {name} layer is wrong"
    expected = oracle(x, src_mask=layers.forbidden(some, 3, 2, 5, 5))
    expect.close(module(x, some), expected, what)


def _drops_updates(student, draw, sublayers):
    """First with a probability of 1; then of one sublayer at a time, of positions that stand alone.

    With so few weights, all that dropout can do can be listed.
    """
    last = len(sublayers)
    x, memory = draw.normal(100, 6), draw.normal(100, 2, 6)
    inputs = [x[:, None], memory][: last - 1]
    values = layers.layer(draw, SMALL, cross=last == 3)
    for name, pre_norm in BOTH.items():
        expected = x if pre_norm else _through(x, values, 1, last)
        what = f"in training with dropout=1.0 all updates of the {name} layer should be dropped"
        expect.close(_trained(student, values, pre_norm, 1.0, inputs), expected, what)
        for number, sublayer in enumerate(sublayers, start=1):
            loud = layers.silent(values, but=(sublayer,))
            stream = x if pre_norm else _through(x, values, 1, number - 1)
            asks = layers.normed(x, values, f"norm_{number}") if pre_norm else stream
            heard = memory if sublayer == "cross_attention" else asks[:, None]
            known = (loud, sublayer, stream, asks, heard)
            outcomes, masks = layers.sublayer_outcomes(*known, SMALL[1], P)
            outcomes = outcomes if pre_norm else _through(outcomes, values, number, last)
            what = (
                f"in training with dropout={P} the {name} layer does not drop what it should, "
                f"where only its {sublayer} adds anything"
            )
            result = _trained(student, loud, pre_norm, P, inputs)
            layers.one_of(result, outcomes, masks, P, what)


def _trained(student, values, pre_norm, dropout, inputs):
    """What a layer in training makes of sequences of one position."""
    module = _built(student, values, pre_norm, SMALL, dropout)
    module.train()
    result = module(*inputs)
    expect.shape(result, (100, 1, 6), axes="B, T, d_model")
    return result[:, 0]


def _through(x, values, first, last):
    """``x`` behind the norms from number ``first`` to number ``last``."""
    for number in range(first, last + 1):
        x = layers.normed(x, values, f"norm_{number}")
    return x


@check(
    rests_on=(
        "Write forward for both norms",
        "that nobody sees the future is added here",
        "queries from the stream, keys and values from memory",
        "None, or bool that broadcasts to (B, T_q, T_k): which of the source are real",
        "what the encoder made of the source; it is not normalised",
        "Each update is added to the stream",
    )
)
def DecoderLayer(student, draw):  # noqa: N802
    """No future, then nn.TransformerDecoderLayer in both norms, T_q ≠ T_k, with both masks."""
    values = layers.layer(draw, SIZES, cross=True)
    x, memory = draw.normal(2, 5, 18), 1 + 2 * draw.normal(2, 7, 18)
    causal = ~torch.ones(5, 5, dtype=torch.bool).tril()
    for name, pre_norm in BOTH.items():
        module = _built(student, values, pre_norm)
        oracle = layers.pytorch_layer(values, SIZES, cross=True, pre_norm=pre_norm)
        output = module(x, memory)
        expect.shape(output, (2, 5, 18), axes="B, T_q, d_model")
        _hides_the_future(module, draw, x, memory, output)
        expected = oracle(x, memory, tgt_mask=causal)
        what = f"the {name} layer differs from nn.TransformerDecoderLayer"
        expect.close(output, expected, what)
        _masked_decoder(module, draw, oracle, name)
    fused = _built(student, values, True, fused=True)
    _masked_decoder(fused, draw, oracle, "fused pre-norm")
    _drops_updates(student, draw, ("attention", "cross_attention", "feed_forward"))
    for name, pre_norm in BOTH.items():
        module = _built(student, values, pre_norm)
        oracle = layers.pytorch_layer(values, SIZES, cross=True, pre_norm=pre_norm)
        _decodes_unusual_inputs(module, draw, oracle, name)


def _decodes_unusual_inputs(module, draw, oracle, name):
    """Another memory layout, a large vector, one sentence, one word."""
    causal = ~torch.ones(5, 5, dtype=torch.bool).tril()
    with expect.care():
        x, memory = draw.normal(2, 5, 18), draw.normal(2, 7, 18)
        expected = oracle(x, memory, tgt_mask=causal)
        output = module(draw.strided(x), draw.strided(memory))
        expect.close(output, expected, "another memory layout changes the output")
    with expect.care():
        _masked_decoder(module, draw, oracle, name, times=150)
    for B, T_q, T_k in ((1, 1, 7), (3, 5, 1)):
        with expect.care():
            ones = draw.normal(B, T_q, 18), draw.normal(B, T_k, 18)
            expected = oracle(*ones, tgt_mask=causal[:T_q, :T_q])
            what = f"with B={B}, T_q={T_q} and T_k={T_k} the {name} layer is wrong"
            expect.close(module(*ones), expected, what)


def _hides_the_future(module, draw, x, memory, output):
    other = x.clone()
    other[:, 3:] = draw.normal(2, 2, 18)
    after = module(other, memory)
    what = "another future, positions 3 and 4, changes the output before it"
    expect.close(after[:, :3], output[:, :3], what)


def _masked_decoder(module, draw, oracle, name, times=1):
    """First with as many keys as queries, so that mistaken masks have a result, then with more."""
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    # A hole in the target: padding behind it would be hidden by the causal mask alone.
    target = torch.arange(5) != torch.tensor([1, 2])[:, None]  # (B, T_q)
    every = causal & target[:, None]  # (B, T_q, T_q)
    of_target = layers.forbidden(every, 3, 2, 5, 5)
    for T_k in (5, 7):
        x, memory = draw.normal(2, 5, 18), draw.normal(2, T_k, 18)
        memory[0, 1] *= times
        source = torch.arange(T_k) < torch.tensor([2, T_k])[:, None]  # (B, T_k)
        output = module(x, memory, target[:, None], source[:, None])
        of_source = layers.forbidden(source[:, None], 3, 2, 5, T_k)
        expected = oracle(x, memory, tgt_mask=of_target, memory_mask=of_source)
        what = f"with both masks and T_k={T_k} the {name} layer is wrong"
        expect.close(output, expected, what)
    output = module(x, memory, memory_mask=source[:, None])
    expected = oracle(x, memory, tgt_mask=~causal, memory_mask=of_source)
    expect.close(output, expected, f"with memory_mask alone the {name} layer is wrong")
    expected = oracle(x, memory, tgt_mask=of_target)
    expect.close(module(x, memory, every), expected, f"with mask alone the {name} layer is wrong")


@check(
    without={"care": "whole numbers go in, and one comes out"},
    rests_on=(
        "Count the parameters of a layer. All linear layers and norms have biases",
        "an int; all linear layers and norms have biases",
        "there are one attention and one norm more",
    ),
)
def layer_parameters(student, draw):
    """By hand, then against the sizes of PyTorch's layers."""
    count, decoder = student(d_model=3, d_ff=7), student(d_model=3, d_ff=7, cross=True)
    # Attention 4 · (9 + 3), feed-forward (21 + 7) + (21 + 3), two norms of 6.
    expect.close(count, 112, "with d_model=3 and d_ff=7 the encoder layer has another size")
    expect.equal(count, 112, "the count should be an int")
    expect.close(decoder, 166, "with d_model=3 and d_ff=7 the decoder layer has another size")
    expect.equal(decoder, 166, "the count should be an int")
    drawn = (5 + 2 * draw.integers(0, 4, 1).item(), 6 + 2 * draw.integers(0, 4, 1).item())
    for d_model, d_ff in ((1, 5), (6, 1), (512, 2048), drawn):
        for cross in (False, True):
            kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
            layer = kind(d_model, 1, d_ff, device="meta")
            expected = sum(parameter.numel() for parameter in layer.parameters())
            what = f"with d_model={d_model}, d_ff={d_ff} and cross={cross} the count is wrong"
            expect.close(student(d_model, d_ff, cross), expected, what)


@check(
    without={**counterexamples.WITHOUT, "care": "an example is asked for: there is none to take"},
    rests_on=(
        "An input on which takes_four_times_d_model counts other numbers than layer_parameters",
        "returns a tuple (d_model, d_ff) or (d_model, d_ff, cross)",
    ),
)
def break_layer_parameters(student, draw):
    """An input on which takes_four_times_d_model is wrong."""
    counterexamples.judge(
        student, "layer_parameters", "takes_four_times_d_model", allowed=_sizes_of_a_layer
    )


def _sizes_of_a_layer(d_model, d_ff, cross=False):
    for size in (d_model, d_ff):
        what = "a size is a whole number above 0"
        expect.true(type(size) is int and size > 0, what, expect.describe(size), "1, 2, 3, …")
    expect.true(isinstance(cross, bool), "`cross` is no truth value", expect.describe(cross))


@check(
    without={
        "gradients": "the norms of gradients are measured, not differentiated again",
        "offset": "the mean is that of squares",
    },
    rests_on=(
        "layer l turns h into tanh(h @ weights[l])",
        "norm of the gradient of the loss with respect to weights[l]",
        "the mean of all squared numbers that leave the last layer",
        "whether h is added to that: a residual connection",
    ),
)
def gradient_norms(student, draw):
    """Two layers by hand, then against gradients worked out by the chain rule."""
    one = torch.ones(1, 1, dtype=F64)
    weights = torch.zeros(3, 1, 1, dtype=F64)
    by_hand = student(one, weights, True)
    x, weights = draw.normal(5, 6), draw.normal(3, 6, 6, scale=0.5)
    found = [student(x, weights, skip) for skip in (False, True)]
    expect.shape(by_hand, (3,), axes="n_layers")
    what = "layers that add 0 should hand the gradient 2 · 1 on unchanged"
    expect.close(by_hand, _tensor(2, 2, 2), what)
    for skip, norms in zip((False, True), found, strict=True):
        expected = _chain_rule(x, weights, skip)
        expect.close(norms, expected, f"with skip={skip} the norms are wrong")
    with expect.care():
        norms = student(draw.strided(x), draw.strided(weights), skip=True)
        expect.close(norms, expected, "another memory layout gives other norms")
    for B, n_layers in ((1, 2), (7, 1)):
        with expect.care():
            x, weights = draw.normal(B, 3), draw.normal(n_layers, 3, 3, scale=0.5)
            what = f"with B={B} and n_layers={n_layers} the norms are wrong"
            expect.close(student(x, weights, skip=False), _chain_rule(x, weights, False), what)
    with expect.care():
        x, weights = draw.normal(5, 6), draw.normal(3, 6, 6, scale=0.5)
        x[0, 0], weights[:, 0] = 200.0, 0.001 * weights[:, 0]
        what = "with a large number in x the norms are wrong"
        expect.close(student(x, weights, True), _chain_rule(x, weights, True), what)


def _chain_rule(x, weights, skip):
    """Backwards by hand: from the loss to every layer."""
    inputs, slopes, h = [], [], x
    for weight in weights:
        new = (h @ weight).tanh()
        inputs.append(h)
        slopes.append(1 - new.square())
        h = new + h if skip else new
    arriving, norms = 2 * h / h.numel(), []
    for layer in range(len(weights) - 1, -1, -1):
        inner = arriving * slopes[layer]
        norms.append((inputs[layer].T @ inner).norm())
        back = inner @ weights[layer].T
        arriving = arriving + back if skip else back
    return torch.stack(norms[::-1])
