"""Checks of lesson 09. The oracles are PyTorch's own layers, with the weights copied."""

import itertools

import torch
from torch.nn import functional as F

from autograder.checking.toolbox import expect, layer_oracles
from autograder.checking.toolbox.inputs import LONG
from autograder.checking.toolbox.registry import check

F64 = torch.float64
SIZES = (18, 3, 20)  # d_model, n_heads, d_ff
SMALL = (6, 2, 3)  # small enough to list all that dropout can do
P = 0.4  # an ordinary probability of dropout
BOTH = {"post-norm": False, "pre-norm": True}
COURSES = {False: "the profile without skip", True: "the profile with skip"}
MASK, MASKS, DROPOUT = "with a mask", "the causal mask and the others", "with dropout"


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


@check(
    asks={
        "learning": "then a learned scale and shift per feature",
    },
    rests_on=(
        "LayerNorm brings every vector to mean 0 and variance 1",
        "Normalise over the last axis: (..., d_model) to (..., d_model)",
        "so that a constant vector does not divide by 0",
        "A vector far from 0 keeps its digits",
        "(d_model,) each, begin as ones and zeros",
    ),
    stages={"mean 0": 1, "variance 1 and eps": 1, "weight and bias": 1},
)
def LayerNorm(student, draw):  # noqa: N802
    """The mean, the variance and the parameters by themselves, then nn.LayerNorm with eps=0.1."""
    values = {"weight": draw.normal(7), "bias": draw.normal(7)}
    with expect.stage("weight and bias"):  # first: so its calls are asked for gradients
        _has_two_parameters(student)
        _scales_and_shifts(student, draw, values)
    with expect.stage("mean 0"):
        _centres(student, draw)
    with expect.stage("variance 1 and eps"):
        _brings_to_variance_1(student, draw)
    with expect.stage("weight and bias"):
        if expect.stands("mean 0") and expect.stands("variance 1 and eps"):
            _equals_pytorch(student, draw)
            module = student.build(7, eps=0.1)
            module.load(values)
            _trained_norm(student, draw, module, values)
            _norms_with_care(student, draw, module, values)


def _plain(student, d_model, dtype=F64, **options):
    """A norm that neither scales nor shifts, if its parameters are those that they should be."""
    module = student.build(d_model, **options)
    shapes = {name: tuple(value.shape) for name, value in module.parameters().items()}
    if shapes == {"weight": (d_model,), "bias": (d_model,)}:
        one, zero = torch.ones(d_model, dtype=dtype), torch.zeros(d_model, dtype=dtype)
        module.load({"weight": one, "bias": zero})
    return module


def _centres(student, draw):
    """What comes back is x minus its mean, but for a factor: vector by vector."""
    module, x = _plain(student, 7, eps=0.1), 2 * draw.normal(2, 5, 7) + 3
    normed = module(x)
    expect.shape(normed, (2, 5, 7), axes="B, T, d_model")
    what = "the mean of every vector should be 0"
    expect.close(normed.mean(2), torch.zeros(2, 5, dtype=F64), what, atol=1e-6)
    what = "but for a factor, a vector should become what it was, minus its mean"
    expected = F.normalize(x - x.mean(2, keepdim=True), dim=2)
    expect.close(F.normalize(normed, dim=2), expected, what, rtol=1e-5)
    alone = module(x[1:, 2:3])
    expect.close(alone, normed[1:, 2:3], "a vector's result depends on the vectors beside it")


def _brings_to_variance_1(student, draw):
    """The variance v of every vector becomes v / (v + eps), whatever its mean becomes."""
    # Mean 3, variance 4: the deviations of -2 and 2 are divided by the root of 4 + 5.
    what = "with eps=5, the variance of 1, 1, 5, 5 is normalised wrongly"
    _has_variance(_plain(student, 4, eps=5.0), _tensor(1, 1, 5, 5), 5.0, what)
    module, equal = _plain(student, 7, eps=0.1), torch.full((2, 7), 3.0, dtype=F64)
    what = "with eps=0.1 the vectors should get another variance"
    _has_variance(module, 2 * draw.normal(2, 5, 7) + 3, 0.1, what)
    what = "the variance of a vector of equal numbers should stay 0"
    _has_variance(module, equal, 0.1, what)
    what = "with the eps that is the default, small numbers should get another variance"
    _has_variance(_plain(student, 7), draw.normal(3, 7, scale=0.003), 1e-5, what)
    far = (3000 + draw.normal(8, 7)).float()
    what = "in float32, with 3000 added to every number, digits of the variance are lost"
    _has_variance(_plain(student, 7, torch.float32, eps=0.1), far, 0.1, what, 0.02)


def _has_variance(module, x, eps, what, rtol=1e-5):
    normed, variance = module(x), _variance(x)
    expect.shape(normed, x.shape)
    expect.close(_variance(normed), variance / (variance + eps), what, rtol=rtol, atol=1e-6)


def _variance(x):
    return x.double().var(-1, correction=0)


def _has_two_parameters(student):
    named = student.build(4, eps=5.0).parameters()
    wanted = "weight and bias, as parameters"
    got = ", ".join(named) or "none"
    expect.true({*named} == {"weight", "bias"}, "the parameters are other ones", got, wanted)
    for name, start in (("weight", torch.ones(4)), ("bias", torch.zeros(4))):
        expect.close(named[name].double(), start.double(), f"{name} begins with other values")


def _scales_and_shifts(student, draw, values):
    """Whatever a vector becomes: with other parameters it is that times weight, plus bias."""
    module, other = _plain(student, 7, eps=0.1), student.build(7, eps=0.1)
    other.load(values)
    _is_finished(module, other, values, draw.normal(7))
    with expect.care():
        for shape in ((1, 7), (1, 1, 7)):
            _is_finished(module, other, values, draw.normal(*shape))


def _is_finished(module, other, values, x):
    normed, got = module(x), other(x)
    expect.shape(normed, x.shape)
    expected = normed * values["weight"] + values["bias"]
    what = "what is normalised should be multiplied by weight, then added to bias"
    expect.close(got, expected, what, rtol=1e-5, atol=1e-8)


def _equals_pytorch(student, draw):
    normed = _plain(student, 4, eps=5.0)(_tensor(1, 1, 5, 5))
    expected = _tensor(-2, -2, 2, 2) / 3
    expect.close(normed, expected, "with eps=5, the vector 1, 1, 5, 5 is normalised wrongly")
    module, x = _plain(student, 7, eps=0.1), 2 * draw.normal(2, 5, 7) + 3
    expected = F.layer_norm(x, (7,), eps=0.1)
    expect.close(module(x), expected, "it differs from nn.LayerNorm", rtol=1e-5)


def _trained_norm(student, draw, module, values):
    """Other weights, all numbers of axes, vectors of every size, the eps that is the default."""
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


def _norms_with_care(student, draw, module, values):
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
        "Work on every position separately: (..., d_model) to (..., d_model)",
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
    first = layer_oracles.linear(draw, "linear_1", d_model, d_ff)
    return first | layer_oracles.linear(draw, "linear_2", d_ff, d_model)


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
    layer_oracles.elementwise(left, _loud(_hidden(values, x)), P, what)


def _loud(whole):
    """With 0, which says nothing, in the place of numbers that float32 knows to few digits."""
    return whole.masked_fill(whole.abs() < 0.2, 0.0)


def _built(student, values, pre_norm, sizes=SIZES, dropout=0.0, **options):
    """In evaluation."""
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
    ),
    stages={"post-norm": 1, "pre-norm": 1, MASK: 1, DROPOUT: 1},
)
def EncoderLayer(student, draw):  # noqa: N802
    """Equal to nn.TransformerEncoderLayer in both norms, under masks; dropout in its place."""
    values, x = layer_oracles.layer(draw, SIZES), draw.normal(2, 5, 18)
    oracles = {
        name: layer_oracles.pytorch_layer(values, SIZES, pre_norm=pre_norm)
        for name, pre_norm in BOTH.items()
    }
    for name, pre_norm in BOTH.items():
        with expect.stage(name):
            output = _built(student, values, pre_norm)(x)
            expect.shape(output, (2, 5, 18), axes="B, T, d_model")
            expect.dtype(output, F64)
            what = f"the {name} layer differs from nn.TransformerEncoderLayer"
            expect.close(output, oracles[name](x), what)
    with expect.stage(MASK):
        for name in _right() or BOTH:
            _obeys_a_mask(_built(student, values, BOTH[name]), draw, name)
        for name in _right():
            _masked_encoder(_built(student, values, BOTH[name]), draw, oracles[name], name)
            fused = _built(student, values, BOTH[name], fused=True)
            what = f"with fused=True and a causal mask the {name} layer is wrong"
            expected = oracles[name](x, src_mask=~_causal(5))
            expect.close(fused(x, _causal(5)), expected, what)
    with expect.stage(DROPOUT):
        _drops_in_training_only(student, values, x)
        _drops_updates(student, draw, ("attention", "feed_forward"), _right())
    for name in _right():
        with expect.stage(name):
            module = _built(student, values, BOTH[name])
            _encodes_unusual_inputs(module, draw, oracles[name], name)


def _right():
    """The names of the drawings that have been found right."""
    return [name for name in BOTH if expect.stands(name)]


def _causal(T):
    return torch.ones(T, T, dtype=torch.bool).tril()


def _obeys_a_mask(module, draw, name):
    """What may not be attended to changes nothing, what may be changes something."""
    x, other = draw.normal(2, 5, 18), draw.normal(2, 5, 18)
    future, past = x.clone(), x.clone()
    future[:, 4:], past[:, :1] = other[:, 4:], other[:, :1]
    output, after, before = (module(each, _causal(5)) for each in (x, future, past))
    expect.shape(output, (2, 5, 18), axes="B, T, d_model")
    what = f"with a causal mask, position 4 changes what the {name} layer makes of those before it"
    expect.close(after[:, :4], output[:, :4], what)
    what = f"with a causal mask, position 0 changes nothing at position 4 of the {name} layer"
    expect.true((before[:, 4] - output[:, 4]).abs().max() > 1e-5, what)
    real = torch.arange(5) < torch.tensor([5, 3])[:, None]  # (B, T)
    padded = torch.where(real[..., None], x, other)
    what = f"with a padding mask, padding changes what the {name} layer makes of real tokens"
    after, output = module(padded, real[:, None]), module(x, real[:, None])
    expect.close(after[real], output[real], what)


def _encodes_unusual_inputs(module, draw, oracle, name):
    """Another memory layout, a large vector, one sentence, one word."""
    with expect.care():
        x = draw.normal(2, 5, 18)
        expect.close(module(draw.strided(x)), oracle(x), "another memory layout changes the output")
    if expect.stands(MASK):
        with expect.care():
            x = draw.normal(2, 5, 18)
            x[1, 1] *= 200
            what = f"with large numbers in x and a causal mask the {name} layer is wrong"
            expect.close(module(x, _causal(5)), oracle(x, src_mask=~_causal(5)), what)
    for B, T in ((1, 5), (3, 1)):
        with expect.care():
            x = draw.normal(B, T, 18)
            expect.close(module(x), oracle(x), f"with B={B} and T={T} the {name} layer is wrong")


def _masked_encoder(module, draw, oracle, name):
    x = draw.normal(2, 5, 18)
    real = torch.arange(5) < torch.tensor([5, 3])[:, None]  # (B, T)
    expected = oracle(x, src_mask=layer_oracles.forbidden(real[:, None], 3, 2, 5, 5))
    what = f"with a padding mask the {name} layer is wrong at a real token"
    expect.close(module(x, real[:, None])[real], expected[real], what)
    what = f"with a causal mask the {name} layer is wrong"
    expect.close(module(x, mask=_causal(5)), oracle(x, src_mask=~_causal(5)), what)
    some = (draw.uniform(2, 5, 5) < 0.5) | torch.eye(5, dtype=torch.bool)
    what = f"with a mask of its own for every sentence the {name} layer is wrong"
    expected = oracle(x, src_mask=layer_oracles.forbidden(some, 3, 2, 5, 5))
    expect.close(module(x, some), expected, what)


def _drops_in_training_only(student, values, *inputs):
    """What is right without dropout, with it in evaluation is the same; with a probability of 1."""
    for name in _right() or BOTH:
        expected = _built(student, values, BOTH[name])(*inputs)
        expect.shape(expected, inputs[0].shape, axes="B, T, d_model")
        output = _built(student, values, BOTH[name], dropout=1.0)(*inputs)
        what = f"after eval() the {name} layer with dropout=1.0 is not that without dropout"
        expect.close(output, expected, what)


def _drops_updates(student, draw, sublayers, right):
    """First with a probability of 1; then of one sublayer at a time, of positions that stand alone.

    With so few weights, all that dropout can do can be listed. Of the drawings only those are asked
    that are right without dropout. Where none is, all that is asked is that x is left, or as many
    norms of it as there are, whichever they are.
    """
    last = len(sublayers)
    x, memory = draw.normal(100, 6), draw.normal(100, 2, 6)
    inputs = [x[:, None], memory if right else memory[:, :1]][: last - 1]
    values = layer_oracles.layer(draw, SMALL, cross=last == 3)
    for name in right or BOTH:
        left = _trained(student, values, BOTH[name], 1.0, inputs)
        if not right and any(torch.allclose(left, each) for each in _norms_of(x, values, last)):
            continue
        expected = x if BOTH[name] else _through(x, values, 1, last)
        what = f"in training with dropout=1.0 all updates of the {name} layer should be dropped"
        expect.close(left, expected, what)
    for name in right:
        for sublayer in sublayers:
            if sublayer != "attention" or expect.stands(MASKS):
                _drops_one(student, values, name, sublayers, sublayer, inputs)


def _drops_one(student, values, name, sublayers, sublayer, inputs):
    """Where this sublayer alone adds something."""
    number, last, pre_norm = sublayers.index(sublayer) + 1, len(sublayers), BOTH[name]
    x, loud = inputs[0][:, 0], layer_oracles.silent(values, but=(sublayer,))
    stream = x if pre_norm else _through(x, values, 1, number - 1)
    asks = layer_oracles.normed(x, values, f"norm_{number}") if pre_norm else stream
    heard = inputs[1] if sublayer == "cross_attention" else asks[:, None]
    known = (loud, sublayer, stream, asks, heard)
    outcomes, masks = layer_oracles.sublayer_outcomes(*known, SMALL[1], P)
    outcomes = outcomes if pre_norm else _through(outcomes, values, number, last)
    what = (
        f"in training with dropout={P} the {name} layer does not drop what it should, "
        f"where only its {sublayer} adds anything"
    )
    result = _trained(student, loud, pre_norm, P, inputs)
    layer_oracles.one_of(result, outcomes, masks, P, what)


def _norms_of(x, values, last):
    yield x
    for numbers in itertools.product(range(1, last + 1), repeat=last):
        each = x
        for number in numbers:
            each = layer_oracles.normed(each, values, f"norm_{number}")
        yield each


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
        x = layer_oracles.normed(x, values, f"norm_{number}")
    return x


@check(
    rests_on=(
        "Write forward for both norms",
        "the causal mask is added here",
        "queries from the stream, keys and values from memory",
        "None, or bool that broadcasts to (B, T_q, T_k): real source positions",
        "the encoder's output; it is not normalised here",
        "Each update is added to the stream",
    ),
    stages={"post-norm": 1, "pre-norm": 1, MASKS: 1, DROPOUT: 1},
)
def DecoderLayer(student, draw):  # noqa: N802
    """No future, then nn.TransformerDecoderLayer in both norms, T_q ≠ T_k, with both masks."""
    values = layer_oracles.layer(draw, SIZES, cross=True)
    x, memory = draw.normal(2, 5, 18), 1 + 2 * draw.normal(2, 7, 18)
    oracles = {
        name: layer_oracles.pytorch_layer(values, SIZES, cross=True, pre_norm=pre_norm)
        for name, pre_norm in BOTH.items()
    }
    for name, pre_norm in BOTH.items():
        with expect.stage(name):
            output = _built(student, values, pre_norm)(x, memory[:, :5])
            expect.shape(output, (2, 5, 18), axes="B, T_q, d_model")
            what = f"the {name} layer differs from nn.TransformerDecoderLayer"
            _close_under_some_masks(output, oracles[name], x, memory[:, :5], what)
    with expect.stage(MASKS):
        for name in _right() or BOTH:
            module = _built(student, values, BOTH[name])
            source = memory if _right() else memory[:, :5]  # a mistaken call has a result
            _hides_the_future(module, draw, x, source, module(x, source))
            _obeys_its_masks(module, draw, name)
        for name in _right():
            module = _built(student, values, BOTH[name])
            what = f"the {name} layer differs from nn.TransformerDecoderLayer"
            for given in (x, draw.normal(2, LONG, 18)):
                expected = oracles[name](given, memory, tgt_mask=~_causal(given.shape[1]))
                expect.close(module(given, memory), expected, f"with T_q={given.shape[1]} {what}")
            _masked_decoder(module, draw, oracles[name], name)
        if expect.stands("pre-norm"):
            fused = _built(student, values, True, fused=True)
            _masked_decoder(fused, draw, oracles["pre-norm"], "fused pre-norm")
    with expect.stage(DROPOUT):
        _drops_in_training_only(student, values, x, memory[:, :5])
        sublayers = ("attention", "cross_attention", "feed_forward")
        _drops_updates(student, draw, sublayers, _right())
    for name in _right() if expect.stands(MASKS) else ():
        with expect.stage(name):
            module = _built(student, values, BOTH[name])
            _decodes_unusual_inputs(module, draw, oracles[name], name)


def _decodes_unusual_inputs(module, draw, oracle, name):
    """Another memory layout, a large vector, one sentence, one word."""
    causal = ~_causal(5)
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


def _close_under_some_masks(output, oracle, x, memory, what):
    """The layer is right, or would be if target and source were masked as they should be."""
    causal = _causal(5)
    for target in (torch.ones_like(causal), causal, causal.tril(-1), causal.mT):
        for source in (torch.ones_like(causal), causal):
            # Where nothing may be attended to, PyTorch has NaN: that is at position 0.
            expected = oracle(x, memory, tgt_mask=~target, memory_mask=~source)[:, 1:]
            if torch.allclose(output[:, 1:].to(F64), expected, rtol=1e-4, atol=1e-6):
                return
    expect.close(output, oracle(x, memory, tgt_mask=~causal), what)


def _obeys_its_masks(module, draw, name):
    """What may not be attended to changes nothing, what may be changes something."""
    x, memory, other = (draw.normal(2, 5, 18) for _ in range(3))
    there = torch.ones(2, 5, dtype=torch.bool)
    hole, end = torch.arange(5) != 1, torch.arange(5) < 3  # of the target, of the source
    for what, target, source, lost in (
        ("position 0 of the target", there, there, (torch.arange(5) == 0, None)),
        ("position 0 of the source", there, there & end, (None, torch.arange(5) == 0)),
        ("padding of the target", there & hole, there, (~hole, None)),
        ("padding of the source", there, there & end, (None, ~end)),
    ):
        changed = [
            each if places is None else torch.where(places[:, None], other, each)
            for each, places in zip((x, memory), lost, strict=True)
        ]
        masks = target[:, None], source[:, None]
        moved = (module(*changed, *masks) - module(x, memory, *masks))[:, 2:].abs().max() > 1e-5
        is_real = not what.startswith("padding")
        found = f"{what} changes " + ("nothing" if is_real else "what it should not")
        expect.true(bool(moved) == is_real, f"{found} in the {name} layer, with both masks")


def _hides_the_future(module, draw, x, memory, output):
    other = x.clone()
    other[:, 3:] = draw.normal(2, 2, 18)
    after = module(other, memory)
    what = "another future, positions 3 and 4, changes the output before it"
    expect.close(after[:, :3], output[:, :3], what)


def _masked_decoder(module, draw, oracle, name, times=1):
    """First with as many keys as queries, so that mistaken masks have a result, then with more."""
    causal = _causal(5)
    # A hole in the target: padding behind it would be hidden by the causal mask alone.
    target = torch.arange(5) != torch.tensor([1, 2])[:, None]  # (B, T_q)
    every = causal & target[:, None]  # (B, T_q, T_q)
    of_target = layer_oracles.forbidden(every, 3, 2, 5, 5)
    for T_k in (5, 7):
        x, memory = draw.normal(2, 5, 18), draw.normal(2, T_k, 18)
        memory[0, 1] *= times
        source = torch.arange(T_k) < torch.tensor([2, T_k])[:, None]  # (B, T_k)
        output = module(x, memory, target[:, None], source[:, None])
        of_source = layer_oracles.forbidden(source[:, None], 3, 2, 5, T_k)
        expected = oracle(x, memory, tgt_mask=of_target, memory_mask=of_source)
        what = f"with both masks and T_k={T_k} the {name} layer is wrong"
        expect.close(output, expected, what)
    output = module(x, memory, memory_mask=source[:, None])
    expected = oracle(x, memory, tgt_mask=~causal, memory_mask=of_source)
    expect.close(output, expected, f"with memory_mask alone the {name} layer is wrong")
    expected = oracle(x, memory, tgt_mask=of_target)
    expect.close(module(x, memory, every), expected, f"with mask alone the {name} layer is wrong")


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
    stages={"the profile without skip": 1, "the profile with skip": 1, "the exact norms": 1},
)
def gradient_norms(student, draw):
    """Layers of a single number, but for a factor; then the gradients of the chain rule."""
    for skip, name in COURSES.items():
        with expect.stage(name):
            _changes_over_the_layers(student, draw, skip)
    right = [skip for skip, name in COURSES.items() if expect.stands(name)]
    with expect.stage("the exact norms"):
        x, weights = draw.normal(5, 6), draw.normal(1, 6, 6, scale=0.5)
        for skip in right or (False,):
            expected, what = _chain_rule(x, weights, skip), f"of one layer, with skip={skip}, "
            expect.close(student(x, weights, skip), expected, what + "the norm is wrong")
        if True in right:
            by_hand = student(_tensor(1).view(1, 1), torch.zeros(3, 1, 1, dtype=F64), True)
            expect.shape(by_hand, (3,), axes="n_layers")
            what = "layers that add 0 should hand the gradient 2 · 1 on unchanged"
            expect.close(by_hand, _tensor(2, 2, 2), what)
        x, weights = draw.normal(5, 6), draw.normal(3, 6, 6, scale=0.5)
        for skip in right:
            expected = _chain_rule(x, weights, skip)
            expect.close(
                student(x, weights, skip), expected, f"with skip={skip} the norms are wrong"
            )
        if len(right) == 2:
            _measures_with_care(student, draw, x, weights)


def _changes_over_the_layers(student, draw, skip):
    """Of layers of one number every loss has the same gradients, and a root, but for a factor.

    With skip they add little, so that their tanh hardly bends.
    """
    x = draw.uniform(1, 1, low=0.5) * (1e-4 if skip else 1)
    weights = draw.uniform(4, 1, 1, low=0.5, high=1.5)
    found, expected = student(x, weights, skip), _chain_rule(x, weights, skip)
    expect.tensor(found, (4,), axes="n_layers")
    numbers = "numbers, one for each layer"
    expect.true(found.numel() == 4, "the shape is wrong", expect.describe(found), f"4 {numbers}")
    found, expected = (norms.flatten() / norms.flatten()[-1] for norms in (found, expected))
    if not torch.allclose(found.to(F64), expected.square(), rtol=1e-3):
        what = f"with skip={skip}, divided by that of the last layer, the norms are wrong"
        expect.close(found.to(F64), expected, what, rtol=1e-3)


def _measures_with_care(student, draw, x, weights):
    with expect.care():
        norms = student(draw.strided(x), draw.strided(weights), skip=True)
        expected = _chain_rule(x, weights, True)
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
