"""Checks of lesson 20. Oracles: loops, complex numbers that turn, published sizes, the SVD."""

import math
from itertools import pairwise

import torch
from torch.nn import functional as F

from attention.provided.stand_ins import Fading
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.inputs import LONG
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

F64 = torch.float64
PAD, EOS = 0, 2
SHARED, NORMS = "shared heads, turned", "norms of queries and keys"
WINDOW, PAST = "a window", "a past and padding"
SCORES, BEFORE, PADDING = "scores", "with a past", "padding"
NUMBERS = "numbers go in: no device, no dtype and no gradient"


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


def _near(got, expected, what):
    """Equal up to what float32 rounds in positions, scores and sums of dozens of numbers."""
    expect.close(got, expected, what, rtol=1e-4, atol=2e-5)


@check(
    rests_on=(
        "then scales each feature",
        "RMSNorm leaves out a LayerNorm's mean and shift",
        "A vector lies along the last axis, however many axes stand in front of it.",
        "x / √(mean of x² + eps) · weight",
    ),
)
def rms_norm(student, draw):
    """By hand, then F.rms_norm; a large eps, vectors as small as its root, one vector alone."""
    got = student(_tensor(3, 4, 0, 0).view(1, 4), _tensor(1, 1, 10, 2), eps=0.0)
    expect.shape(got, (1, 4), axes="..., d_model")
    expect.dtype(got, F64)
    what = "for (3, 4, 0, 0), whose root mean square is 2.5, with eps=0 it is wrong"
    expect.close(got, _tensor(1.2, 1.6, 0, 0).view(1, 4), what)
    what = "for (6, 8, 0, 0) with the weights 1, 2, 3, 4 and eps=11, so that the root is 6,"
    got = student(_tensor(6, 8, 0, 0).view(1, 4), _tensor(1, 2, 3, 4), eps=11.0)
    expect.close(got, _tensor(1, 8 / 3, 0, 0).view(1, 4), f"{what} it is wrong")
    for shape in ((2, 5, 7), (5, 6), (3,), (2, 3, 5, 8)):
        x, weight = 3 + 2 * draw.normal(*shape), draw.normal(shape[-1])
        _compares_norms(student, draw.strided(x), weight, {}, f"for x of shape {shape}")
        _compares_norms(student, x, weight, {"eps": 0.7}, f"for x of shape {shape} and eps=0.7")
    what = "for tiny numbers, where the default eps shows,"
    _compares_norms(student, 1e-3 * draw.normal(3, 7), 2 + draw.normal(7), {}, what)
    for shape, scale in (((3, 1), 1.0), ((1, 1, 5), 1.0), ((2, 7), 1e4)):
        with expect.care():
            what = f"for x of shape {shape}, with numbers of about {scale:g},"
            _compares_norms(student, scale * draw.normal(*shape), draw.normal(shape[-1]), {}, what)
    with expect.care():
        zero = torch.zeros(2, 5, dtype=F64)
        expect.close(student(zero, draw.normal(5)), zero, "zeros should stay zeros")
    with expect.care():
        x = 1000 + draw.normal(2, 6, scale=0.01)
        _compares_norms(student, x, draw.normal(6), {}, "for numbers near 1000")


def _compares_norms(student, x, weight, options, what):
    expected = F.rms_norm(x, x.shape[-1:], weight, options.get("eps", 1e-6))
    expect.close(student(x, weight, **options), expected, f"{what} it differs from F.rms_norm")


def _matrix(draw, rows, columns):
    """Weights that keep the size of what passes through."""
    return draw.normal(rows, columns, scale=1.5 / math.sqrt(columns))


def _swiglu_weights(draw, d_model, d_ff):
    sizes = {"W_gate": (d_ff, d_model), "W_up": (d_ff, d_model), "W_down": (d_model, d_ff)}
    return {f"{name}.weight": _matrix(draw, *size) for name, size in sizes.items()}


def _swiglu(values, x):
    """Unit by unit."""
    total = torch.zeros_like(x)
    for gate, up, down in zip(
        values["W_gate.weight"], values["W_up.weight"], values["W_down.weight"].T, strict=True
    ):
        z = (x * gate).sum(-1, keepdim=True)
        total = total + z / (1 + torch.exp(-z)) * (x * up).sum(-1, keepdim=True) * down
    return total


@check(
    rests_on=(
        "The output of W_gate goes through a silu, silu(z) = z · sigmoid(z)",
        "multiplied, number by number, by the output of W_up",
        "W_down brings the product back to d_model numbers",
        "All three are linear layers without bias, and have these names",
    ),
)
def SwiGLU(student, draw):  # noqa: N802, the name of the exercise
    """One unit by hand, then unit by unit."""
    module = student.build(1, 1)
    weights = {"W_gate": 2, "W_up": 3, "W_down": 5}
    module.load({f"{name}.weight": _tensor(one).view(1, 1) for name, one in weights.items()})
    got = module(_tensor(0.5).view(1, 1))
    expect.shape(got, (1, 1), axes="..., d_model")
    expect.dtype(got, F64)
    what = "with the weights 2 (W_gate), 3 (W_up) and 5 (W_down), 0.5 should become"
    expected = _tensor(5 * 1.5 * 0.7310585786300049).view(1, 1)
    expect.close(got, expected, f"{what} 5 · silu(1) · 1.5")
    for d_model, d_ff, shape in ((6, 10, (2, 5, 6)), (7, 3, (5, 7)), (3, 5, (4, 3))):
        _compares_units(student, draw, d_model, d_ff, draw.strided(draw.normal(*shape)))
    for d_model, d_ff, shape, scale in ((1, 5, (2, 1), 1.0), (5, 1, (1, 1, 5), 1.0)):
        with expect.care():
            _compares_units(student, draw, d_model, d_ff, draw.normal(*shape, scale=scale))
    with expect.care():
        _compares_units(student, draw, 6, 10, 200 * (1 + draw.uniform(2, 6)))


def _compares_units(student, draw, d_model, d_ff, x):
    values, module = _swiglu_weights(draw, d_model, d_ff), student.build(d_model, d_ff)
    module.load(values)
    what = f"with d_model={d_model}, d_ff={d_ff} and x of shape {tuple(x.shape)} it is wrong"
    expect.close(module(x), _swiglu(values, x), what)


# d_model, n_heads, n_kv_heads: heads of 8 numbers
SIZES = (48, 6, 3)


def _attention_weights(draw, d_model, n_heads, n_kv_heads, qk_norm=False, d_head=None):
    d_head = d_head or d_model // n_heads
    rows = {"W_q": n_heads, "W_k": n_kv_heads, "W_v": n_kv_heads}
    values = {f"{name}.weight": _matrix(draw, n * d_head, d_model) for name, n in rows.items()}
    values["W_o.weight"] = _matrix(draw, d_model, n_heads * d_head)
    for name in ("norm_q", "norm_k") if qk_norm else ():
        values[f"{name}.weight"] = draw.uniform(d_head, low=0.5, high=2.0)
    return values


def _built(student, values, sizes=SIZES, **options):
    module = student.build(*sizes, **options)
    module.load(values)
    return module


def _heads(values, name, x, n_heads):
    """(B, H, T, d_head), normed where there is a norm."""
    projected = x @ values[f"W_{name}.weight"].T
    heads = projected.unflatten(-1, (n_heads, -1)).transpose(1, 2)
    weight = values.get(f"norm_{name}.weight")
    return heads if weight is None else F.rms_norm(heads, heads.shape[-1:], weight, 1e-6)


def _turned(x, first, base):
    """(n, d_head): pairs of features are complex numbers, which are turned."""
    d_head, positions = x.shape[-1], torch.arange(first, first + len(x), dtype=F64)
    angles = positions[:, None] * base ** (-torch.arange(0, d_head, 2, dtype=F64) / d_head)
    turned = torch.view_as_complex(x.reshape(len(x), -1, 2)) * torch.polar(
        torch.ones_like(angles), angles
    )
    return torch.view_as_real(turned).flatten(1)


def _seen(T, n, window, real):
    """(T, n): 0 where the key may be seen, −∞ elsewhere; the queries are the last T positions."""
    seen = torch.full((T, n), -math.inf, dtype=F64)
    for t in range(T):
        place = n - T + t
        first = 0 if window is None else max(0, place - window + 1)
        seen[t, first : place + 1] = 0.0
    return seen if real is None else seen.masked_fill(~torch.tensor(real), -math.inf)


def _attended(values, x, sizes=SIZES, window=None, past=None, real=None, base=10000.0):
    """In loops over texts and heads: the output, and the pair for the next call."""
    (B, T, _), (_, n_heads, n_kv_heads) = x.shape, sizes
    q = _heads(values, "q", x, n_heads)
    k, v = (_heads(values, name, x, n_kv_heads) for name in "kv")
    if past is not None:
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
    n, contexts = k.shape[2], torch.zeros_like(q)
    for b in range(B):
        seen = _seen(T, n, window, None if real is None else real[b, real.shape[1] - n :].tolist())
        for h in range(n_heads):
            group = h // (n_heads // n_kv_heads)
            keys = _turned(k[b, group], 0, base)
            scores = _turned(q[b, h], n - T, base) @ keys.T / math.sqrt(q.shape[3])
            weights = (scores + seen).softmax(-1).nan_to_num(0.0)
            contexts[b, h] = weights @ v[b, group]
    kept = slice(0 if window is None else max(0, n - window), n)
    output = contexts.transpose(1, 2).flatten(2) @ values["W_o.weight"].T
    pair = tuple(one[:, :, kept] for one in (k, v))
    return output, pair


def _output(result):
    """The first of two results; who returns no pair yet loses what is about the pair."""
    return result[0] if isinstance(result, list | tuple) and len(result) else result


def _pair(result, expected, what):
    """The pair that comes with the output is the expected one."""
    _, pair = expect.parts(result, "the output", "the pair of keys and values")
    found = expect.parts(pair, "keys", "values")
    for name, one, wanted in zip(("keys", "values"), found, expected, strict=True):
        expect.shape(one, wanted.shape, axes="B, H_kv, positions, d_head")
        _near(one, wanted, f"{what}: the {name} that are returned are wrong")


@check(
    asks={
        "positions": "wants positions in float32 or float64, whatever x is",
    },
    rests_on=(
        "Neighbouring query heads share one",
        "Queries and keys are turned by their positions, with rotary of lesson 08",
        "Hand self.base on to rotary; values are not turned",
        "n_kv_heads of keys and values, each of d_head numbers",
        "Each position looks at itself and at what came before it, never at what comes later",
        "each query and each key, head by head, goes through norm_q or norm_k before it is turned",
        "a position sees only the last window positions, itself included",
        "The first new position is number P and sees all P before it",
        "the pair for the next call, which holds the past and the new positions",
        "Keys are kept as they are before they are turned, but after their norm",
        "with a window, only the last window positions of both",
        "no query may look at padding",
        "does not matter, as long as it is a number",
        "the oldest columns of real belong to positions that are gone",
        "linear layers without bias, and with qk_norm",
        "Raises ValueError if n_heads does not divide d_model and d_head is None, or if n_kv_heads",
    ),
    stages={SHARED: 1, NORMS: 1, WINDOW: 1, PAST: 1},
    without={"float32": "asked in the check itself: at padding anything may come out"},
)
def ModernAttention(student, draw):  # noqa: N802, the name of the exercise
    """Equal to loops in which complex numbers turn: plain, normed, in a window, with a past."""
    values, x = _attention_weights(draw, *SIZES), draw.normal(2, 5, 48)
    with expect.stage(SHARED):
        _attends_by_hand(student)
        _shares_and_turns(student, draw, values, x)
    with expect.stage(NORMS):
        _norms_heads(student, draw, x)
    with expect.stage(WINDOW):
        _looks_through_a_window(student, draw, values, x)
    with expect.stage(PAST):
        _goes_on(student, draw, values)
        _hides_padding(student, draw, values)
        _does_all_at_once(student, draw, values)
        if expect.stands(SHARED) and expect.stands(NORMS):
            with expect.care("gradients"):
                _learns(student, draw, real=True)
            with expect.care("float32"):
                _stays_narrow(student, draw, real=True)
    for sizes, said in (
        ((48, 5, 5), "n_heads=5 does not divide d_model=48"),
        ((48, 6, 4), "n_kv_heads=4 does not divide n_heads=6"),
    ):
        expect.raises(student, ValueError, *sizes, what=f"{said}: a ValueError should say so")


def _attends_by_hand(student):
    """One position: each query head takes the values of its head. Two positions: one turn by 1."""
    module, eye = student.build(12, 6, 3), torch.eye(12, dtype=F64)
    values = {"W_q": eye, "W_k": eye[:6], "W_v": eye[:6], "W_o": eye}
    module.load({f"{name}.weight": weight for name, weight in values.items()})
    output = _output(module(torch.arange(12, dtype=F64).view(1, 1, 12)))
    expect.shape(output, (1, 1, 12), axes="B, T, d_model")
    expect.dtype(output, F64)
    what = "with one position, and values (0, 1), (2, 3), (4, 5) for six query heads, two query"
    expected = _tensor(0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5).view(1, 1, 12)
    _near(output, expected, f"{what} heads beside each other should give the same")
    module, eye = student.build(2, 1, 1), torch.eye(2, dtype=F64)
    module.load({f"W_{name}.weight": eye for name in "qkvo"})
    output = _output(module(_tensor(1, 0, 2, 0).view(1, 2, 2)))
    scores = _tensor(2 * math.cos(1), 4) / math.sqrt(2)
    expected = _tensor(1, 0, scores.softmax(0) @ _tensor(1, 2), 0).view(1, 2, 2)
    what = "for (1, 0) and (2, 0), with one head and all weights the identity, where scores are"
    _near(output, expected, f"{what} 2 cos(1) / √2 and 4 / √2 at position 1, it is wrong")


def _shares_and_turns(student, draw, values, x):
    module = _built(student, values)
    output = _output(module(x))
    expect.shape(output, (2, 5, 48), axes="B, T, d_model")
    for t in (1, 3):
        other = torch.cat([x[:, :t], draw.normal(2, 5 - t, 48)], 1)
        what = f"other vectors from position {t} on change what comes out before it"
        _near(_output(module(other))[:, :t], output[:, :t], what)
    _near(output, _attended(values, x)[0], "6 heads over 3, T=5: it differs from loops")
    for sizes, B, T in (((48, 6, 6), 3, 4), ((20, 10, 1), 2, 7), ((4, 2, 1), 1, LONG)):
        _compares(student, draw, sizes, B, T, "")
    _compares(student, draw, (10, 4, 2), 2, 5, " and d_head=6", d_head=6)
    _compares(student, draw, (12, 2, 1), 2, 7, " and base=50", base=50.0)
    for sizes, B, T in (((4, 2, 1), 1, 3), ((12, 2, 2), 3, 1)):
        with expect.care():
            _compares(student, draw, sizes, B, T, "")
    with expect.care():
        large = x.clone()
        large[0, 0] *= 200
        what = "with a vector of large numbers it is wrong"
        _near(_output(_built(student, values)(large)), _attended(values, large)[0], what)
    with expect.care("float32"):
        _stays_narrow(student, draw, real=False)
    with expect.care("positions"):
        _counts_beyond_256(student, draw)


def _counts_beyond_256(student, draw):
    """In bfloat16 the positions are those of float32: a right answer is off by 0.02 at most."""
    sizes = (16, 2, 1)
    values, x = _attention_weights(draw, *sizes), draw.normal(1, 300, 16, scale=1.5)
    module = _built(student, {name: value.bfloat16() for name, value in values.items()}, sizes)
    output = _output(module(x.bfloat16()))
    expect.shape(output, x.shape, axes="B, T, d_model")
    expected = _attended(values, x, sizes)[0][:, 260:]
    off = ((output.double()[:, 260:] - expected).abs().mean() / expected.abs().mean()).item()
    what = "in bfloat16, which cannot count beyond 256, positions from 260 on come out wrong"
    shown = f"off by {off:.0%} of the size of the numbers"
    expect.true(off < 0.08, what, shown, "positions in float32, as `rotary` wants them: off by 2%")


def _stays_narrow(student, draw, real):
    """With float32 it gives float32, and the values of float64 up to rounding."""
    values, x = _attention_weights(draw, *SIZES), draw.normal(3, 5, 48)
    options = (_past(draw, 3, 4), _holes(3, 9)) if real else (None, None)
    narrow = [tuple(one.float() for one in options[0]), options[1]] if real else []
    module = _built(student, {name: value.float() for name, value in values.items()})
    output = _output(module(x.float(), *narrow))
    expect.shape(output, x.shape, axes="B, T, d_model")
    what = "float32 goes in, something else comes out"
    expect.true(output.dtype == torch.float32, what, str(output.dtype), "torch.float32")
    seen = options[1][:, 4:] if real else torch.ones(3, 5, dtype=torch.bool)
    expected = _attended(values, x, past=options[0], real=options[1])[0]
    what = "with float32 the values are wrong"
    expect.close(output.double()[seen], expected[seen], what, rtol=1e-3, atol=1e-3)


def _learns(student, draw, real):
    """Gradients of all weights, the norms' among them, are those of the loops."""
    values, x = _attention_weights(draw, *SIZES, qk_norm=True), draw.normal(2, 5, 48)
    past, cotangent = _past(draw, 2, 2), draw.normal(2, 5, 48)
    options = (past, _holes(2, 7)) if real else ()
    if real:
        cotangent = cotangent * options[1][:, 2:, None]
    leaves = {name: value.clone().requires_grad_() for name, value in values.items()}
    with torch.enable_grad():
        output, _ = _attended(leaves, x, **dict(zip(("past", "real"), options, strict=False)))
        wanted = torch.autograd.grad((output * cotangent).sum(), list(leaves.values()))
    module = _built(student, values, qk_norm=True)
    found, _ = module.gradients(x, *options, cotangent=cotangent)
    what = "with qk_norm=True" + ", a past and `real`" * real
    for name, gradient in zip(leaves, wanted, strict=True):
        got = found.get(name)
        expect.true(got is not None, f"{what} no gradient reaches {name}", "None", "a gradient")
        _near(got, gradient, f"{what} the gradient of {name} is wrong")


def _compares(student, draw, sizes, B, T, said, **options):
    made = {name: options[name] for name in ("qk_norm", "d_head") if name in options}
    values, x = _attention_weights(draw, *sizes, **made), draw.normal(B, T, sizes[0])
    asked = {name: options[name] for name in ("window", "base") if name in options}
    what = "with d_model={}, n_heads={}, n_kv_heads={}".format(*sizes)
    output = _output(_built(student, values, sizes, **options)(draw.strided(x)))
    expected, _ = _attended(values, x, sizes, **asked)
    _near(output, expected, f"{what}, B={B}, T={T}{said} it differs from loops")


def _norms_heads(student, draw, x):
    """Queries and keys of any length give the same, head by head; then loops."""
    values = _attention_weights(draw, *SIZES, qk_norm=True)
    output = _output(_built(student, values, qk_norm=True)(x))
    expect.shape(output, (2, 5, 48), axes="B, T, d_model")
    for name in ("W_q", "W_k"):
        longer = values[f"{name}.weight"].clone()
        longer[:8] *= 1000
        changed = values | {f"{name}.weight": longer}
        what = f"with qk_norm=True, a longer {'query' if name == 'W_q' else 'key'} in head 0"
        got = _output(_built(student, changed, qk_norm=True)(x))
        _near(got, output, f"{what} (the first 8 rows of {name}, times 1000) changes the output")
    for name in ("norm_q", "norm_k"):
        changed = values | {f"{name}.weight": 3 * values[f"{name}.weight"]}
        far = (_output(_built(student, changed, qk_norm=True)(x)) - output).abs().max()
        expect.true(far > 1e-4, f"with qk_norm=True, the weight of {name} changes nothing")
    if expect.stands(SHARED):
        what = "with qk_norm=True it differs from loops"
        _near(output, _attended(values, x)[0], what)
        for sizes, B, T in (((24, 4, 2), 3, 6), ((10, 1, 1), 2, 5)):
            _compares(student, draw, sizes, B, T, " and qk_norm=True", qk_norm=True)
        with expect.care("gradients"):
            _learns(student, draw, real=False)


def _looks_through_a_window(student, draw, values, x):
    """What is too far back changes nothing, what is not does; then loops."""
    for window in (1, 3):
        module = _built(student, values, window=window)
        output, other = _output(module(x)), x.clone()
        expect.shape(output, (2, 5, 48), axes="B, T, d_model")
        other[:, 0] = draw.normal(2, 48)
        changed = _output(module(other))
        what = f"with window={window}, position 0 changes what comes out at position {window}"
        _near(changed[:, window:], output[:, window:], f"{what} or later")
        far = (changed - output)[:, window - 1].abs().max()
        what = f"with window={window}, position 0 changes nothing at position {window - 1}"
        expect.true(far > 1e-6, f"{what}, which should see it")
        other = x.clone()
        other[:, 4] = draw.normal(2, 48)
        what = f"with window={window}, a later position changes what comes out before it"
        _near(_output(module(other))[:, :4], output[:, :4], what)
    if expect.stands(SHARED):
        for window, T in ((1, 4), (3, 7), (5, 5), (9, 6)):
            _compares(student, draw, SIZES, 2, T, f" and window={window}", window=window)


def _past(draw, B, P):
    return draw.normal(B, 3, P, 8), draw.normal(B, 3, P, 8)


def _goes_on(student, draw, values):
    """The pair without a past, and with one; what is past is seen; then loops."""
    module, x = _built(student, values), draw.normal(2, 5, 48)
    _pair(module(x), _attended(values, x)[1], "without a past")
    for P, T in ((4, 5), (7, 1), (1, 3)):
        past, x = _past(draw, 2, P), draw.normal(2, T, 48)
        what = f"with a past of P={P} and T={T} new positions"
        result = module(draw.strided(x), past)
        output, (expected, pair) = _output(result), _attended(values, x, past=past)
        expect.shape(output, (2, T, 48), axes="B, T, d_model")
        _pair(result, pair, what)
        for number, name in enumerate(("key", "value")):
            other = [one.clone() for one in past]
            other[number][:, :, 0] = draw.normal(2, 3, 8, scale=2.0)
            far = (_output(module(x, tuple(other))) - output).abs().amax((0, 2))
            expect.true(far.min() > 1e-7, f"{what}, the oldest {name} changes nothing")
        if expect.stands(SHARED):
            _near(output, expected, f"{what} it differs from loops")
    if expect.stands(SHARED):
        _reads_on(module, values, draw.normal(2, 6, 48))


def _reads_on(module, values, x):
    """In three parts it reads as at once."""
    whole, past = _attended(values, x)[0], None
    for start, end in pairwise((0, 3, 4, 6)):
        output, past = expect.parts(module(x[:, start:end], past), "the output", "the pair")
        what = f"reading {_places('position', start, end)} with the pair of the call before"
        _near(output, whole[:, start:end], f"{what} differs from reading all at once")


def _places(name, start, end):
    """'token 4', 'tokens 5 to 6'."""
    return f"{name} {start}" if end - start == 1 else f"{name}s {start} to {end - 1}"


def _holes(B, n):
    """Padding in front of the first text, in the middle of the second, none in the others."""
    real = torch.ones(B, n, dtype=torch.bool)
    real[0, :2], real[1, 1:3] = False, False
    return real


def _hides_padding(student, draw, values):
    """Padding changes nothing that is real, without a past and with one; then loops."""
    module, real = _built(student, values), _holes(3, 7)
    for P in (0, 4):
        x, past = draw.normal(3, 7 - P, 48), _past(draw, 3, P) if P else None
        output, what = _output(module(x, past, real)), f"with `real`, P={P} and T={7 - P}"
        expect.shape(output, x.shape, axes="B, T, d_model")
        expect.finite(output, f"{what} what comes out at padding is not a number")
        new, kept = real[:, P:], real[:, None, :P, None]
        other = torch.where(new[..., None], x, draw.normal(*x.shape, scale=3.0))
        if P:
            past = tuple(torch.where(kept, one, 3 * draw.normal(*one.shape)) for one in past)
        changed = _output(module(other, past, real))
        _near(changed[new], output[new], f"{what} other numbers in the padding change the rest")
        all_real = _output(module(other, past))
        far = (all_real - changed)[:2, -1].abs().amax(-1)
        expect.true(far.min() > 1e-6, f"{what} padding is seen, as without `real`")
        if expect.stands(SHARED):
            expected, _ = _attended(values, other, past=past, real=real)
            _near(changed[new], expected[new], f"{what} it differs from loops")


def _does_all_at_once(student, draw, values):
    """Norms, a window, a past and padding together, as far as each stands."""
    if expect.stands(NORMS):
        normed, x = _attention_weights(draw, *SIZES, qk_norm=True), draw.normal(2, 3, 48)
        past = _past(draw, 2, 4)
        result = _built(student, normed, qk_norm=True)(x, past)
        expected, pair = _attended(normed, x, past=past)
        _pair(result, pair, "with qk_norm=True and a past")
        if expect.stands(SHARED):
            _near(_output(result), expected, "with qk_norm=True and a past it differs from loops")
    if not expect.stands(WINDOW):
        return
    for window, P, T in ((3, 3, 1), (3, 2, 4), (6, 2, 3), (1, 1, 1)):
        x, past = draw.normal(2, T, 48), _past(draw, 2, P)
        result, what = _built(student, values, window=window)(x, past), f"with window={window}"
        expected, pair = _attended(values, x, window=window, past=past)
        _pair(result, pair, f"{what}, P={P} and T={T}")
        if expect.stands(SHARED):
            _near(_output(result), expected, f"{what}, P={P} and T={T} it differs from loops")
    x, past, real = draw.normal(3, 2, 48), _past(draw, 3, 4), _holes(3, 9)
    real[0, 5] = False  # of nine columns the first three belong to positions that are gone
    output = _output(_built(student, values, window=4)(x, past, real))
    if expect.stands(SHARED):
        expected, _ = _attended(values, x, window=4, past=past, real=real)
        what = "with window=4, P=4 and T=2, and `real` for the nine tokens so far,"
        _near(output, expected, f"{what} it differs from loops")


def _paired(weight, n_heads):
    """Row by row."""
    half, rows = len(weight) // n_heads // 2, []
    for h in range(n_heads):
        for i in range(half):
            rows += [weight[2 * half * h + i], weight[2 * half * h + half + i]]
    return torch.stack(rows)


@check(
    rests_on=(
        "Put its rows into lesson 08's order, in each head separately",
        "the rows 0, d_head / 2, 1, d_head / 2 + 1, and so on",
        "Raises ValueError if the rows cannot be cut into heads of an even number of features",
    ),
)
def pair_up(student, draw):
    """One head by hand, two by hand, then row by row."""
    rows = torch.arange(12, dtype=F64).view(12, 1)
    got = student(rows[:6].repeat(1, 5), 1)
    expect.shape(got, (6, 5), axes="H · d_head, d_model")
    expect.dtype(got, F64)
    what = "one head of 6 rows: they should come in the order 0, 3, 1, 4, 2, 5"
    expect.close(got, rows[[0, 3, 1, 4, 2, 5]].expand(6, 5), what)
    what = "two heads of 6 rows: the second should come in the order 6, 9, 7, 10, 8, 11"
    order = [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
    expect.close(student(rows, 2), rows[order], what)
    for n_heads, d_head, d_model in ((3, 8, 5), (2, 10, 7), (5, 6, 3), (7, 2, 5)):
        weight = draw.normal(n_heads * d_head, d_model)
        what = f"with {n_heads} heads of {d_head} rows, d_model={d_model}, it is wrong"
        expect.close(student(draw.strided(weight), n_heads), _paired(weight, n_heads), what)
    for n_heads, d_head, d_model in ((1, 8, 1), (4, 6, 1), (1, 2, 3)):
        with expect.care():
            weight = draw.normal(n_heads * d_head, d_model, scale=1000.0)
            what = f"with {n_heads} heads of {d_head} rows, d_model={d_model}, it is wrong"
            expect.close(student(weight, n_heads), _paired(weight, n_heads), what)
    with expect.care():
        expect.close(student(rows.long(), 2), rows.long()[order], "whole numbers come out wrong")
    for n_heads in (5, 4):
        what = f"12 rows are no {n_heads} heads of an even number of features: a ValueError should"
        expect.raises(student, ValueError, rows, n_heads, what=f"{what} say so")


# What stands in for the pieces of a learner's other exercises; see attention/provided/stand_ins.py
PARTS = {"ModernAttention": "RunningMean", "SwiGLU": "Tanh"}
LAYERS = {"ModernDecoderLayer": "Residual"}


def _mean(weight, x, past, real):
    """What RunningMean gives, position by position, and its pair."""
    keys, values = x, x @ weight.T
    if past is not None:
        keys, values = (
            torch.cat([one[:, 0], new], 1) for one, new in zip(past, (keys, values), strict=True)
        )
    n, T = keys.shape[1], x.shape[1]
    real = torch.ones(len(x), n, dtype=torch.bool) if real is None else real
    means = torch.zeros_like(x)
    for b in range(len(x)):
        for t in range(T):
            seen = [j for j in range(n - T + t + 1) if real[b, j]]
            if seen:
                means[b, t] = values[b, seen].mean(0)
    return means + x * x, (keys[:, None], values[:, None])


def _layer_weights(draw, d_model):
    values = {f"{name}.W.weight": _matrix(draw, d_model, d_model) for name in PARTS_OF_A_LAYER}
    norms = {f"norm_{number}.weight": draw.uniform(d_model, low=0.5, high=2.0) for number in (1, 2)}
    return values | norms


PARTS_OF_A_LAYER = ("attention", "feed_forward")


def _normed(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-6)


def _through_a_layer(values, x, past=None, real=None):
    read = _normed(x, values["norm_1.weight"])
    update, pair = _mean(values["attention.W.weight"], read, past, real)
    x = x + update
    hidden = _normed(x, values["norm_2.weight"]) @ values["feed_forward.W.weight"].T
    return x + torch.tanh(hidden), pair


def _layer(student, values, d_model=12):
    module = student.build(d_model, 3, 1, 10, stand_ins=PARTS)
    module.load(values)
    return module


@check(
    rests_on=(
        "The attention reads the output of norm_1, and its own output is added to x",
        "The feed-forward network reads norm_2 of this sum",
        "its output is added to the sum",
        "Pass past and real to the attention",
        "return the pair that it returns beside the result",
        "The check replaces your attention and your SwiGLU by parts of its own",
    ),
)
def ModernDecoderLayer(student, draw):  # noqa: N802, the name of the exercise
    """Equal to norms, sums and other parts: alone, with a past, with padding."""
    values, x = _layer_weights(draw, 12), draw.normal(2, 5, 12)
    module = _layer(student, values)
    silent = values | {name: 0 * one for name, one in values.items() if "norm" in name}
    expected, pair = _through_a_layer(values, x)
    output, found = expect.parts(module(x), "the output", "the pair of the attention")
    expect.shape(output, (2, 5, 12), axes="B, T, d_model")
    expect.dtype(output, F64)
    what = "with norms that give zeros, so that nothing is added, x should come out as it is"
    expect.close(_output(_layer(student, silent)(x)), x, what)
    _near(output, expected, "a layer with other parts is not pre-norm, or not all is added")
    _is_pair(found, pair, "without a past")
    for P, T in ((4, 3), (6, 1)):
        x, past = draw.normal(2, T, 12), (draw.normal(2, 1, P, 12), draw.normal(2, 1, P, 12))
        _compares_layer(module, values, draw.strided(x), past, None, f"with a past of P={P}")
        for B in (2, 3):
            x, past = draw.normal(B, T, 12), tuple(draw.normal(B, 1, P, 12) for _ in "kv")
            what = f"with a past of P={P} and `real`"
            _compares_layer(module, values, x, past, _holes(B, P + T), what)
    _compares_layer(module, values, draw.normal(3, 7, 12), None, _holes(3, 7), "with `real`")
    with expect.care():
        x = draw.normal(1, 1, 12, scale=300.0)
        _compares_layer(module, values, x, None, None, "with B=1, T=1 and large numbers")


def _compares_layer(module, values, x, past, real, what):
    expected, pair = _through_a_layer(values, x, past, real)
    output, found = expect.parts(module(x, past, real), "the output", "the pair of the attention")
    expect.shape(output, x.shape, axes="B, T, d_model")
    _near(output, expected, f"{what} a layer with other parts gives something else")
    _is_pair(found, pair, what)


def _is_pair(found, expected, what):
    expect.parts(found, "keys", "values")
    for one, wanted in zip(found, expected, strict=True):
        expect.shape(one, wanted.shape)
        _near(one, wanted, f"{what} the pair that is returned is not that of the attention")


def _decoder_weights(draw, vocab_size, d_model, n_layers):
    values = {"embedding.weight": draw.normal(vocab_size, d_model)}
    for number in range(n_layers):
        values[f"layers.{number}.W.weight"] = _matrix(draw, d_model, d_model)
    return values | {"norm.weight": draw.uniform(d_model, low=0.5, high=2.0)}


def _decoder(student, values, n_layers=3, **options):
    sizes = values["embedding.weight"].shape
    module = student.build(*sizes, 3, 1, 10, n_layers, stand_ins=LAYERS, **options)
    module.load(values)
    return module


def _scored(values, tokens, past=None, real=None):
    """Layer by layer, and a score for each row of the table; the pairs of all layers."""
    table, pairs, number = values["embedding.weight"], [], 0
    x = torch.stack([torch.stack([table[token] for token in row]) for row in tokens])
    while f"layers.{number}.W.weight" in values:
        weight = values[f"layers.{number}.W.weight"]
        update, pair = _mean(weight, x, past[number] if past else None, real)
        x, number = x + torch.tanh(update), number + 1
        pairs.append(pair)
    x = _normed(x, values["norm.weight"])
    rows = values.get("output.weight", table)
    return torch.stack([(x * row).sum(-1) for row in rows], -1), pairs


@check(
    rests_on=(
        "as it is: nothing is multiplied",
        "nothing is multiplied by √d_model, and no positions are added",
        "The layers follow one another, then norm",
        "the dot product of the result with that token's row of the same table",
        "If the model has an output of its own, a linear layer in place of None, that layer gives",
        "past is a list with one pair for each layer, in their order",
        "Every layer is told which tokens are real",
        "The check replaces your layers by its own",
    ),
    stages={SCORES: 1, BEFORE: 1, PADDING: 1},
    without={"large": "ids go in", "refusals": "what is refused is in the lines that are given"},
)
def ModernDecoder(student, draw):  # noqa: N802, the name of the exercise
    """Equal to other layers between two uses of one table: at once, in parts, with padding."""
    values, tokens = _decoder_weights(draw, 11, 12, 3), draw.integers(0, 11, 2, 5)
    module = _decoder(student, values)
    with expect.stage(SCORES):
        scores = _output(module(tokens))
        expect.shape(scores, (2, 5, 11), axes="B, T, vocab_size")
        expect.dtype(scores, F64)
        _near(scores, _scored(values, tokens)[0], "the scores differ from layer after layer")
        for sizes, n_layers, B, T in (((13, 6), 1, 3, 4), ((5, 9), 2, 2, 7)):
            other, ids = _decoder_weights(draw, *sizes, n_layers), draw.integers(0, 5, B, T)
            got = _output(_decoder(student, other, n_layers)(draw.strided(ids)))
            what = "with vocab_size={}, d_model={} the scores are wrong".format(*sizes)
            _near(got, _scored(other, ids)[0], what)
        own = values | {"output.weight": draw.normal(11, 12)}
        got = _output(_decoder(student, own, tied=False)(tokens))
        what = "with tied=False, so that there is an `output`, the scores are wrong"
        _near(got, _scored(own, tokens)[0], what)
        for B, T in ((1, 1), (3, 1)):
            with expect.care():
                ids = draw.integers(0, 11, B, T)
                what = f"with B={B} and T={T} the scores are wrong"
                _near(_output(module(ids)), _scored(values, ids)[0], what)
    with expect.stage(BEFORE):
        _reads_in_parts(module, draw, values)
    with expect.stage(PADDING):
        _tells_padding(module, draw, values)


def _reads_in_parts(module, draw, values):
    """In parts it gives the same as at once; one pair for each layer, its own."""
    tokens = draw.integers(0, 11, 2, 7)
    whole, past = _output(module(tokens)), None
    for start, end in pairwise((0, 4, 5, 7)):
        result = module(tokens[:, start:end], past)
        scores, past = expect.parts(result, "the scores", "the list of pairs")
        what = f"reading {_places('token', start, end)} with the past of the call before"
        _near(scores, whole[:, start:end], f"{what} scores otherwise than reading all at once")
        expect.parts(past, "layer 0", "layer 1", "layer 2")
        for number, pair in enumerate(past):
            expect.parts(pair, "keys", "values")
            for one in pair:
                expect.shape(one, (2, 1, end, 12), axes="B, H_kv, positions, d_head")
            if expect.stands(SCORES):
                wanted = _scored(values, tokens[:, :end])[1][number]
                what = f"after {end} tokens the pair of layer {number} is not its own"
                _near(pair[0], wanted[0], what)
                _near(pair[1], wanted[1], what)
    if expect.stands(SCORES):
        what = "with a past the scores differ from layer after layer"
        _near(scores, _scored(values, tokens)[0][:, 5:], what)


def _tells_padding(module, draw, values):
    """Other tokens in the padding change nothing; real ones do."""
    tokens, real = draw.integers(0, 11, 3, 7), _holes(3, 7)
    scores = _output(module(tokens, None, real))
    expect.shape(scores, (3, 7, 11), axes="B, T, vocab_size")
    other = torch.where(real, tokens, (tokens + 3) % 11)
    what = "with `real`, other tokens in the padding change the scores of the rest"
    _near(_output(module(other, None, real))[real], scores[real], what)
    far = (_output(module(tokens)) - scores)[:2, -1].abs().amax(-1)
    expect.true(far.min() > 1e-6, "with `real` the scores are the same as without it")
    if expect.stands(SCORES):
        what = "with `real` the scores differ from layer after layer"
        _near(scores[real], _scored(values, tokens, None, real)[0][real], what)
    if expect.stands(BEFORE):
        _, past = module(tokens[:, :4], None, real[:, :4])
        got = _output(module(tokens[:, 4:], past, real))
        what = "with `real` and a past the scores differ from reading all at once"
        _near(got, scores[:, 4:], what)


def _language_model(draw, vocab_size, ends, pads=-99.0):
    """Numbers of a Fading; ``ends`` makes EOS likelier, ``pads`` PAD, which else never comes."""
    rows = draw.normal(vocab_size, 9, scale=2.0)
    columns = draw.normal(vocab_size, 9)
    rows[:, 0], columns[:, 0] = 1.0, 0.0  # a sum of ones, between 1 and 2.5
    rows[PAD, 1:] *= 3  # whoever reads padding is far off
    columns[EOS, 0], columns[PAD] = ends, torch.zeros(9, dtype=F64)
    columns[PAD, 0] = pads
    return {"rows": rows, "columns": columns}


def _prompts(draw, vocab_size, lengths):
    """Texts of these lengths behind their padding."""
    longest = max(lengths)
    tokens = draw.integers(3, vocab_size, len(lengths), longest)
    return tokens.masked_fill(torch.arange(longest) < longest - torch.tensor(lengths)[:, None], PAD)


def _written(numbers, tokens, rank, max_length):
    """Each text by itself, without its padding, read anew for every token.

    None where two scores are so near each other that rounding could exchange them.
    """
    rows = []
    for text in tokens.tolist():
        text, new = [token for token in text if token != PAD], []
        while len(new) < max_length and EOS not in new:
            scores, _ = Fading(**numbers)(torch.tensor([text + new]))
            ranked = scores[0, -1].sort(descending=True)
            gaps = ranked.values[:-1] - ranked.values[1:]
            if gaps[: rank + 1].min() < 1e-3:
                return None
            new.append(ranked.indices[rank].item())
        rows.append(new)
    longest = max(map(len, rows), default=0)
    filled = [row + [PAD] * (longest - len(row)) for row in rows]
    return torch.tensor(filled, dtype=torch.int64).view(len(rows), longest)


def _writes(student, draw, lengths, max_length, ends=0.0, rank=0, wanted=None, pads=-99.0):
    """A model and prompts for which ``wanted`` holds of the right result, and the answer's."""
    expected = None
    while expected is None or (wanted is not None and not wanted(expected)):
        numbers, tokens = _language_model(draw, 9, ends, pads), _prompts(draw, 9, lengths)
        expected = _written(numbers, tokens, rank, max_length)
    model = {STAND_IN: "Fading", **numbers}
    choose = {STAND_IN: "Ranked", "rank": rank}
    got = student(model, draw.strided(tokens), choose, max_length)
    expect.shape(got, expected.shape, axes="B, at most max_length")
    expect.dtype(got, torch.int64)
    return got, expected


def _has_no_end(written):
    return EOS not in written


def _pads_in_between(written):
    """Some row has a PAD that was chosen, before another token; none ends."""
    return EOS not in written and bool(((written[:, :-1] == PAD) & (written[:, 1:] != PAD)).any())


def _ends_apart(written):
    """Some row ends before the last column, another one goes on to it."""
    ends = (written == EOS).any(1)
    early = ((written == EOS)[:, :-1]).any()
    return bool(early) and bool((written[:, -1] != PAD).any()) and bool(ends.any())


def _all_end_early(written):
    return bool((written == EOS).any(1).all()) and 1 < written.shape[1] < 8 and _ends_apart(written)


@check(
    without={
        "gradients": "ids come out, which have no gradient",
        "float32": "ids come out, whatever the precision of the model",
        "large": "ids go in; the numbers are those of a model",
        "refusals": "what is refused is in the lines that are given",
    },
    rests_on=(
        "Read each token once: first the whole prompt, then only what was just written, each time",
        "It complains if a token is read a second time",
        "the shorter ones are padded with PAD in front",
        "real has a column for every token so far, those of this call included, and is False",
        "A row ends with its EOS, which is kept; after it there is only PAD",
        "Stop when every row has ended, or after max_length new tokens",
        "choose gets the scores after the last token, (B, vocab_size)",
    ),
)
def generate_with_cache(student, draw):
    """Equal to reading each text anew for each token: alike, padded, ended."""
    for lengths, rank in (((5, 5), 0), ((4, 4, 4), 1)):
        got, expected = _writes(student, draw, lengths, 6, -99.0, rank, _has_no_end)
        what = f"{len(lengths)} prompts of {lengths[0]} tokens, none of which ends"
        expect.close(got, expected, f"{what}: it differs from reading all anew for each token")
    for lengths in ((5, 2, 4), (1, 7, 3), (4, 6, 1)):
        got, expected = _writes(student, draw, lengths, 6, -99.0, 0, _has_no_end)
        what = f"prompts of {lengths} tokens, with PAD in front: it differs from reading each text"
        expect.close(got, expected, f"{what} without its padding")
    got, expected = _writes(student, draw, (3, 3, 3, 3), 7, 0.8, 0, _ends_apart)
    what = "where some texts end before others it is wrong"
    expect.close(got, expected, what)
    for _ in range(2):
        got, expected = _writes(student, draw, (4, 2, 3), 8, 1.2, 0, _all_end_early)
        expect.close(got, expected, "where all texts end before max_length it is wrong")
    got, expected = _writes(student, draw, (3, 5), 1, -99.0, 1)
    expect.close(got, expected, "with max_length=1 it is wrong")
    for lengths, longest in (((1,), 3), ((1, 1), 4), ((6,), 2)):
        with expect.care():
            got, expected = _writes(student, draw, lengths, longest)
            what = f"with prompts of {lengths} tokens and max_length={longest} it is wrong"
            expect.close(got, expected, what)
    with expect.care():
        got, expected = _writes(student, draw, (4, 4), 6, -99.0, 0, _pads_in_between, pads=0.6)
        expect.close(got, expected, "where the model itself writes a PAD it is wrong")
    with expect.care():
        got, expected = _writes(student, draw, (3, 3), 0)
        expect.close(got, expected, "with max_length=0 there should be no column")
