"""Checks of lesson 21. Oracles: struct, a search among all values, loops in float64."""

import math
import struct

import torch

from attention.provided.stand_ins import linear_layer
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

F32, F64 = torch.float32, torch.float64
PAD, EOS = 0, 2
AT_FIRST, UPDATE, MERGED = "nothing changes at first", "the update", "merged"
COUNT, REJECTED, WHOLE = "how many are kept", "after a rejection", "after a whole draft"


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


def _stored(scale, smallest, codes):
    """The 20 bytes of a block."""
    pairs = zip(codes[:16], codes[16:], strict=True)
    return [*struct.pack("<ee", scale, smallest), *(low + 16 * high for low, high in pairs)]


def _read(block):
    """The 32 numbers of 20 bytes."""
    scale, smallest = struct.unpack("<ee", bytes(block[:4]))
    codes = [byte % 16 for byte in block[4:]] + [byte // 16 for byte in block[4:]]
    return [scale * code + smallest for code in codes]


def _compares_blocks(student, blocks, what):
    got = student(blocks)
    _is_float32(got, (len(blocks), 32))
    read = torch.tensor([_read(block) for block in blocks.tolist()])
    expect.close(got.to(F32), read, what)


def _is_float32(got, shape):
    """Of this shape and dtype; float64 is more than what is asked for."""
    expect.shape(got, shape, axes="n, 32")
    what = "the result should be float32"
    expect.true(got.dtype in (F32, F64), what, str(got.dtype), "torch.float32")
    with expect.care("dtype"):
        expect.true(got.dtype == F32, what, str(got.dtype), "torch.float32")


def _blocks(draw, n, times=1.0):
    """Scales around 0.1 and smallest numbers around -1, times ``times``, and any codes."""
    scales = times * draw.uniform(n, low=0.05, high=0.2)
    smallest = times * draw.uniform(n, low=-1.5, high=-0.5)
    codes = draw.integers(0, 16, n, 32).tolist()
    rows = zip(scales.tolist(), smallest.tolist(), codes, strict=True)
    return torch.tensor([_stored(*row) for row in rows], dtype=torch.uint8)


@check(
    rests_on=(
        "the scale, a float16 of two bytes; the smallest number, another",
        "The low four bits of the first of these 16 bytes are code 0, and its high four bits are",
        "The next byte holds the codes 1 and 17, and so on to the codes 15 and 31",
        "The result is float32",
    ),
    without={"gradients": "bytes go in, which have none"},
)
def unpack_q4(student, draw):
    """Codes alone, scale and smallest number alone, then byte by byte with struct."""
    counted = torch.tensor([_stored(1.0, 0.0, list(range(15, -1, -1)) + [3, *range(15)])])
    counted = counted.to(torch.uint8)
    got = student(counted)
    _is_float32(got, (1, 32))
    got = got.to(F32)
    what = "with scale 1 and smallest number 0, so that the numbers are the codes, the"
    read = torch.tensor([_read(counted[0].tolist())])
    expect.close(got[:, :16], read[:, :16], f"{what} codes 0 to 15 are wrong")
    expect.close(got[:, 16:], read[:, 16:], f"{what} codes 16 to 31 are wrong")
    block = torch.tensor([_stored(2.0, 0.5, [0] * 32)], dtype=torch.uint8)
    what = "with scale 2, smallest number 0.5, and all codes 0, each number should be 0.5"
    expect.close(student(block).to(F32), torch.full((1, 32), 0.5), what)
    block = torch.tensor([_stored(2.0, 0.5, [3] * 32)], dtype=torch.uint8)
    what = "with scale 2, smallest number 0.5, and all codes 3, each number should be 6.5"
    expect.close(student(block).to(F32), torch.full((1, 32), 6.5), what)
    for n in (7, 3):
        _compares_blocks(student, _blocks(draw, n), f"with {n} blocks it is wrong")
    for n, times in ((1, 1.0), (5, 3000.0), (2, -1.0)):
        with expect.care():
            blocks = _blocks(draw, n, times)
            what = f"with {n} blocks, whose scales are about {0.1 * times:g}, it is wrong"
            _compares_blocks(student, blocks, what)
    with expect.care():
        blocks = draw.strided(_blocks(draw, 6))
        _compares_blocks(student, blocks, "with bytes that lie apart in memory it is wrong")


def _steps(draw, shape, bits, block):
    """Numbers that lie at most 0.3 of a step from one of the values, and at both ends of a block.

    So no rounding of float32 decides to which value a number goes.
    """
    n_out, n_in = shape
    low = draw.uniform(n_out, n_in // block, 1, low=-2.0, high=0.5)
    step = draw.uniform(n_out, n_in // block, 1, low=0.5, high=2.0) / (2**bits - 1)
    codes = draw.integers(0, 2**bits, n_out, n_in // block, block)
    aside = draw.uniform(n_out, n_in // block, block, low=-0.3, high=0.3)
    aside = torch.where(codes == 0, aside.abs(), aside)
    aside = torch.where(codes == 2**bits - 1, -aside.abs(), aside)
    ends = draw.permutation(block)[:2]
    codes[:, :, ends[0]], aside[:, :, ends] = 0, 0.0
    codes[:, :, ends[-1]] = 2**bits - 1
    return (low + step * (codes + aside)).view(n_out, n_in)


def _nearest(weight, bits, block):
    """Each number compared with all values of its block."""
    rows = []
    for row in weight.tolist():
        rounded = []
        for start in range(0, len(row), block):
            part = row[start : start + block]
            low, high = min(part), max(part)
            last = 2**bits - 1
            values = torch.tensor([low + (high - low) * k / last for k in range(last + 1)])
            values = values if low < high else torch.tensor([low])
            rounded += [values[(values - one).abs().argmin()].item() for one in part]
        rows.append(rounded)
    return torch.tensor(rows, dtype=weight.dtype)


def _compares_rounded(student, draw, shape, bits, block, scale=1.0, laid=lambda x: x):
    weight = scale * _steps(draw, shape, bits, block)
    got = student(laid(weight), bits, block)
    expect.shape(got, shape, axes="n_out, n_in")
    what = f"with weights of shape {shape}, bits={bits} and block={block} it is wrong"
    expect.close(got, _nearest(weight, bits, block), what)


@check(
    rests_on=(
        "Cut each row of a matrix into blocks",
        "by the nearest of the 2^bits values that are evenly spaced from the smallest to the",
        "largest of its block, both ends included",
        "A block of equal numbers stays as it is",
        "Return the rounded numbers themselves, not their codes",
    ),
    without={
        "gradients": "rounding has none; what is rounded is not trained here",
        "refusals": "what is refused is in the lines that are given",
    },
)
def quantize(student, draw):
    """By hand, equal numbers, then compared with every value of the block."""
    row = _tensor(0.0, 0.4, 0.9, 3.0)
    got = student(row[None], 2, 4)
    expect.shape(got, (1, 4), axes="n_out, n_in")
    expect.dtype(got, F64)
    what = "for (0, 0.4, 0.9, 3) with 2 bits, whose values are 0, 1, 2, 3, it is wrong"
    expect.close(got, _tensor(0.0, 0.0, 1.0, 3.0)[None], what)
    got = student(_tensor(-1.0, 0.2, 0.9, 1.0, 5.0, 9.0, 6.0, 8.0)[None], 1, 4)
    what = "for (-1, 0.2, 0.9, 1) and (5, 9, 6, 8), two blocks of a row, with 1 bit it is wrong"
    expect.close(got, _tensor(-1.0, 1.0, 1.0, 1.0, 5.0, 9.0, 5.0, 9.0)[None], what)
    equal = _tensor(0.7, 0.7, 0.7, -2.0, 0.0, 1.0).view(2, 3)
    what = "for (0.7, 0.7, 0.7), a block of equal numbers, with 2 bits it should stay as it is"
    expect.close(student(equal, 2, 3)[0], equal[0], what)
    for shape, bits, block in (((3, 10), 2, 5), ((5, 14), 3, 7), ((2, 96), 4, 32), ((7, 6), 1, 3)):
        _compares_rounded(student, draw, shape, bits, block, laid=draw.strided)
    for shape, bits, block in (((3, 20), 8, 10), ((2, 12), 5, 12)):
        _compares_rounded(student, draw, shape, bits, block)
    for shape, bits, block in (((1, 6), 2, 6), ((1, 2), 3, 2), ((5, 8), 1, 2)):
        with expect.care():
            _compares_rounded(student, draw, shape, bits, block)
    with expect.care():
        weight = draw.normal(5, 3)
        what = "with block=1 each number is its block's smallest and largest: it should stay"
        expect.close(student(weight, 3, 1), weight, what)
    with expect.care():
        _compares_rounded(student, draw, (3, 10), 4, 5, scale=1000.0)
    with expect.care():
        _compares_rounded(student, draw, (2, 6), 12, 6)


def _answered(draw, B, T, vocab_size, asked, lengths, scale=1.0):
    """Scores, and rows of a question, an answer that ends with EOS, and PAD."""
    tokens = draw.integers(3, vocab_size, B, T)
    for row, (n, length) in enumerate(zip(asked, lengths, strict=True)):
        tokens[row, n + length - 1] = EOS
        tokens[row, n + length :] = PAD
    return draw.normal(B, T, vocab_size, scale=scale), tokens, torch.tensor(asked)


def _mean_loss(scores, tokens, asked):
    """Token by token."""
    losses = []
    for row, ids, n in zip(scores, tokens.tolist(), asked.tolist(), strict=True):
        for place in range(n, len(ids)):
            if ids[place] != PAD:
                before = row[place - 1].tolist()
                most = max(before)
                total = sum(math.exp(score - most) for score in before)
                losses.append(math.log(total) + most - before[ids[place]])
    return sum(losses) / len(losses)


def _compares_loss(student, given, what):
    got = student(*given)
    expect.shape(got, ())
    expect.close(got, torch.tensor(_mean_loss(*given), dtype=F64), what, rtol=1e-5)


@check(
    rests_on=(
        "scores[:, t] says what follows token t",
        "the mean over all tokens of all answers",
        "The question, which is asked tokens long, is read and never guessed",
        "PAD does not count either",
    ),
)
def answer_loss(student, draw):
    """Two tokens by hand, what must not count, then token by token."""
    tokens = torch.tensor([[3, 1, 2, PAD]])
    shares = _tensor(1 / 8, 1 / 2, 1 / 4, 1 / 8), _tensor(1 / 4, 1 / 4, 1 / 8, 3 / 8)
    scores = torch.stack([*shares, *shares]).log()[None]
    loss = student(scores, tokens, torch.tensor([1]))
    expect.shape(loss, ())
    expect.dtype(loss, F64)
    what = "for an answer of two tokens, to which the scores before them give the probabilities"
    expected = torch.tensor(2 * math.log(2), dtype=F64)
    expect.close(loss, expected, f"{what} 1/2 and 1/8, the loss should be 2 log 2")
    scores, tokens, asked = _answered(draw, 3, 8, 11, (2, 4, 1), (3, 2, 6))
    loss = student(scores, tokens, asked)
    for place, rows, said in (
        (slice(4, None), slice(0, 1), "of the EOS and of PAD"),
        (slice(0, 3), slice(1, 2), "inside the question"),
        (slice(7, None), slice(2, 3), "of a row's last token"),
    ):
        other = scores.clone()
        other[rows, place] = draw.normal(*other[rows, place].shape, scale=2.0)
        what = f"other scores {said} change the loss, but they guess no token of an answer"
        expect.close(student(other, tokens, asked), loss, what)
    other = scores.clone()
    other[1, 3] = draw.normal(11)
    what = "other scores of the last token of a question, which guess the first of the answer,"
    moved = (student(other, tokens, asked) - loss).abs()
    expect.true(moved > 1e-9, f"{what} change nothing")
    for B, T, vocab_size, n, lengths in (
        (3, 8, 11, (2, 4, 1), (3, 2, 6)),
        (2, 7, 13, (3, 1), (4, 2)),
        (5, 9, 6, (1, 2, 3, 4, 5), (8, 1, 4, 2, 3)),
    ):
        scores, tokens, asked = _answered(draw, B, T, vocab_size, n, lengths)
        what = f"for {B} rows of {T} tokens, with questions of {n} tokens, it is wrong"
        _compares_loss(student, (draw.strided(scores), draw.strided(tokens), asked), what)
    with expect.care():
        _compares_loss(
            student, _answered(draw, 1, 2, 5, (1,), (1,)), "for one row of two it is wrong"
        )
    with expect.care():
        given = _answered(draw, 2, 6, 9, (2, 3), (4, 2), scale=300.0)
        _compares_loss(student, given, "with scores of hundreds, whose exp overflows, it is wrong")


def _linear(weight, bias=None):
    return {STAND_IN: linear_layer.__name__, "weight": weight, "bias": bias}


# d_in, d_out, rank, whether linear has a bias, and the options
LAYERS = ((7, 5, 2, True, {}), (5, 8, 3, False, {"scale": 0.5}), (3, 4, 5, True, {"scale": -2.0}))


def _numbers(draw, d_in, d_out, rank, bias):
    """By name, the parameters of a layer that has learned."""
    values = {"A": draw.normal(rank, d_in), "B": draw.normal(d_out, rank)}
    values["linear.weight"] = draw.normal(d_out, d_in)
    return values | ({"linear.bias": draw.normal(d_out)} if bias else {})


def _low_rank(student, values, rank, **options):
    """A layer with these numbers."""
    module = student.build(_linear(*_of_linear(values)), rank, **options)
    module.load(values)
    return module


def _of_linear(values):
    bias = values.get("linear.bias")
    return values["linear.weight"].float(), None if bias is None else bias.float()


def _weight(values, scale=1.0):
    """W + scale · B A, from a column of B and a row of A at a time."""
    weight = values["linear.weight"].clone()
    for column, row in zip(values["B"].T, values["A"], strict=True):
        weight = weight + scale * torch.outer(column, row)
    return weight


def _through(values, x, scale=1.0):
    """Row by row of W + scale · B A."""
    y = torch.stack([(x * row).sum(-1) for row in _weight(values, scale)], -1)
    return y + values["linear.bias"] if "linear.bias" in values else y


@check(
    rests_on=(
        "The layer holds linear, whose weight and bias no longer learn, and two matrices that do",
        "A, with rank rows of d_in random numbers, and B, (d_out, rank), all zeros",
        "So a new LowRank computes what linear computes",
        "What linear gives, plus scale · B A x",
        "merged() returns a new nn.Linear with the weight W + scale · B A and the same bias",
        "The layer itself stays as it is",
    ),
    stages={AT_FIRST: 1, UPDATE: 1, MERGED: 1},
    without={
        "gradients": "asked in the check itself: those of a new layer depend on what it drew",
        "refusals": "what is refused is in the lines that are given",
    },
)
def LowRank(student, draw):  # noqa: N802, the name of the exercise
    """As built; then with numbers of its own, as W + scale · B A; then merged."""
    with expect.stage(AT_FIRST):
        for layer in LAYERS:
            _begins(student, draw, *layer)
    with expect.stage(UPDATE):
        _updates_by_hand(student)
        for d_in, d_out, rank, bias, options in LAYERS:
            values = _numbers(draw, d_in, d_out, rank, bias)
            _compares_update(student, values, rank, draw.normal(2, 3, d_in), options, draw.strided)
        _learns(student, draw)
        with expect.care():
            x = draw.normal(1, 1, 3, scale=300.0)
            _compares_update(student, _numbers(draw, 3, 1, 1, True), 1, x, {})
    with expect.stage(MERGED):
        for layer in LAYERS:
            _merges(student, draw, *layer)


def _begins(student, draw, d_in, d_out, rank, bias, options):
    """What a new layer holds, computes, and learns."""
    values = _numbers(draw, d_in, d_out, rank, bias)
    weight, shift = _of_linear(values)
    said = f"with d_in={d_in}, d_out={d_out}, rank={rank}, {'a' if bias else 'no'} bias:"
    layers = [student.build(_linear(weight, shift), rank, **options) for _ in range(2)]
    held, other = (one.parameters() for one in layers)
    names = sorted(name for name in values)
    _has_names(held, names, f"{said} the parameters have other names")
    for name, axes in (("A", "rank, d_in"), ("B", "d_out, rank")):
        shapes = tuple(held[name].shape), tuple(values[name].shape)
        shown = f"shape {shapes[0]}", f"shape {shapes[1]}, that is ({axes})"
        expect.true(shapes[0] == shapes[1], f"{said} the shape of {name} is wrong", *shown)
    expect.close(held["linear.weight"], weight, f"{said} the weight of `linear` is another one")
    expect.true(not held["B"].any(), f"{said} B should begin with zeros")
    what = f"{said} A should not begin with zeros, for then neither A nor B has a gradient"
    expect.true(held["A"].any(), what)
    what = f"{said} A should begin random, but two new layers have the same"
    expect.true(not torch.equal(held["A"], other["A"]), what)
    x = draw.normal(2, 3, d_in)
    y = layers[0](x.float())
    expect.shape(y, (2, 3, d_out), axes="..., d_out")
    before = values | {"B": torch.zeros_like(values["B"])}
    what = f"{said} a new layer should compute what `linear` computes"
    _near(y, _through(before, x).float(), what)
    layers[0].load(before)
    found, _ = layers[0].gradients(x)
    for name in names:
        if name.startswith("linear"):
            what = f"{said} {name} still learns: a gradient reaches it"
            expect.true(found[name] is None, what, "a gradient", "none")
    what = f"{said} no gradient reaches B, so it would never learn"
    expect.true(found["B"] is not None and found["B"].any(), what)


def _has_names(held, names, what):
    shown = ", ".join(sorted(held)) or "nothing that has parameters"
    expect.true(sorted(held) == names, what, shown, ", ".join(names))


def _updates_by_hand(student):
    values = {"A": _tensor(1, 1)[None], "B": _tensor(3).view(1, 1)}
    values |= {"linear.weight": _tensor(1, 2)[None], "linear.bias": _tensor(10)}
    what = "with W = (1, 2), a bias of 10, A = (1, 1), B = (3), for x = (1, 1) it should be"
    for options, expected in (({}, 19), ({"scale": 2.0}, 25)):
        y = _low_rank(student, values, 1, **options)(_tensor(1, 1)[None])
        expect.shape(y, (1, 1), axes="..., d_out")
        expect.dtype(y, F64)
        sentence = f"{what} {expected}" + f", with scale={options.get('scale')}" * bool(options)
        expect.close(y, _tensor(expected)[None], sentence)


def _compares_update(student, values, rank, x, options, laid=lambda x: x):
    d_out, d_in = values["linear.weight"].shape
    y = _low_rank(student, values, rank, **options)(laid(x))
    expect.shape(y, (*x.shape[:-1], d_out), axes="..., d_out")
    what = f"with d_in={d_in}, d_out={d_out}, rank={rank} and {options or 'scale=1.0'}"
    expect.close(y, _through(values, x, **options), f"{what} it differs from W x + scale · B A x")


def _learns(student, draw):
    """The gradients of A, B and x are those of W + scale · B A."""
    values, x, cotangent = _numbers(draw, 7, 5, 2, True), draw.normal(3, 7), draw.normal(3, 5)
    leaves = {name: one.clone().requires_grad_() for name, one in (values | {"x": x}).items()}
    with torch.enable_grad():
        loss = (_through(leaves, leaves["x"], 0.5) * cotangent).sum()
        wanted = torch.autograd.grad(loss, [leaves[name] for name in "ABx"])
    found, (of_x,) = _low_rank(student, values, 2, scale=0.5).gradients(x, cotangent=cotangent)
    for name, gradient in zip("AB", wanted, strict=False):
        expect.true(found[name] is not None, f"no gradient reaches {name}", "None", "a gradient")
        expect.close(found[name], gradient, f"the gradient of {name} is wrong")
    with expect.care("gradients"):
        expect.true(of_x is not None, "no gradient reaches x", "None", "a gradient")
        expect.close(of_x, wanted[2], "the gradient of x is wrong")


def _merges(student, draw, d_in, d_out, rank, bias, options):
    """The weight and the bias of a new layer, twice; the old one is as it was. All in float32."""
    values = {name: one.float() for name, one in _numbers(draw, d_in, d_out, rank, bias).items()}
    module, x = _low_rank(student, values, rank, **options), draw.normal(4, 3, d_in).float()
    expected, names = _weight(values, **options), ["bias", "weight"] if bias else ["weight"]
    said = f"with rank={rank}, {'a' if bias else 'no'} bias and {options or 'scale=1.0'}"
    for time in ("", ", asked a second time,"):
        merged = module.made_by("merged")
        held = merged.parameters()
        what = f"{said}, merged(){time} should return an nn.Linear with these parameters"
        _has_names(held, names, what)
        expect.shape(held["weight"], (d_out, d_in), axes="d_out, d_in")
        what = f"{said}, the weight of merged(){time} is not W + scale · B A"
        _near(held["weight"], expected, what)
        if bias:
            what = f"{said}, the bias of merged(){time} is not that of `linear`"
            _near(held["bias"], values["linear.bias"], what)
        got = merged(x)
        expect.shape(got, (4, 3, d_out), axes="..., d_out")
        what = f"{said}, what merged(){time} computes is not W x + scale · B A x"
        _near(got, _through(values, x, **options), what)
        after = module.parameters()
        for name, value in values.items():
            what = f"{said}, merged() changes {name} of the layer itself"
            expect.close(after.get(name), value, what)


def _near(got, expected, what):
    """Equal up to what float32 rounds in sums of a dozen numbers."""
    expect.close(got, expected, what, rtol=1e-3, atol=1e-4)


def _drafted(draw, k, vocab_size, rejected=None):
    """p, q, tokens and noise of a draft whose token ``rejected`` is the first that is not kept.

    Behind it some would be kept again. No noise is near a ratio of probabilities.
    """
    while True:
        p = draw.normal(k + 1, vocab_size, scale=1.5).softmax(1)
        q = draw.normal(k, vocab_size, scale=1.5).softmax(1)
        drafted, noise = draw.integers(0, vocab_size, k), torch.zeros(k, dtype=F64)
        ratios = p[range(k), drafted] / q[range(k), drafted]
        for place, ratio in enumerate(ratios.clamp(max=1.0).tolist()):
            part = draw.uniform(1, low=0.15, high=0.85).item()
            noise[place] = ratio + (1 - ratio) * part if place == rejected else ratio * part
        if rejected is None or 0.1 < ratios[rejected] < 0.7:
            return p, q, drafted, noise


def _what_p_has_more(p, q):
    """Token by token."""
    more = [max(0.0, a - b) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
    return torch.tensor([one / sum(more) for one in more], dtype=F64)


def _count(result):
    """The first of two results; who returns only one yet loses what is about the other."""
    return result[0] if isinstance(result, list | tuple) and len(result) else result


def _next(result, vocab_size):
    _, found = expect.parts(result, "how many are kept", "the probabilities of the next token")
    expect.shape(found, (vocab_size,), axes="vocab_size")
    return found


# k, vocab_size, and the first that is not kept
REJECTIONS = ((3, 7, 1), (5, 6, 0), (4, 11, 3), (2, 5, 1), (6, 9, 2))


@check(
    rests_on=(
        "Token x at place i is kept if noise[i] < p[i, x] / q[i, x]",
        "At the first token that is not kept the draft ends",
        "The next token is drawn from what p[i] has more than q[i]: subtract, set what is negative",
        "divide by the sum",
        "If all tokens are kept, the last row of p says what comes after them",
    ),
    stages={COUNT: 1, REJECTED: 1, WHOLE: 1},
    without={
        "gradients": "a count comes first, and from the probabilities a token is drawn",
        "large": "probabilities go in",
    },
)
def accept(student, draw):
    """By hand, then token by token, with none, some and all of the tokens kept."""
    p, q = _tensor(0.5, 0.3, 0.2, 0.1, 0.2, 0.7).view(2, 3), _tensor(0.25, 0.6, 0.15)[None]
    by_hand = p, q, torch.tensor([1])
    said = "where the token drafted has 0.3 in p and 0.6 in q,"
    rejected, whole = (*by_hand, _tensor(0.75)), (*by_hand, _tensor(0.25))
    with expect.stage(COUNT):
        what = f"{said} it should not be kept with a noise of 0.75"
        expect.close(_count(student(*rejected)), 0, what)
        what = f"{said} it should be kept with a noise of 0.25"
        expect.close(_count(student(*whole)), 1, what)
        for k, vocab_size, place in REJECTIONS:
            what = (
                f"of {k} tokens the one at place {place} is the first not kept: the count is wrong"
            )
            got = _count(student(*_drafted(draw, k, vocab_size, place)))
            expect.close(got, place, what)
        for k, vocab_size in ((3, 7), (5, 11)):
            got = _count(student(*_drafted(draw, k, vocab_size)))
            expect.close(got, k, f"all of {k} tokens should be kept")
        with expect.care():
            _keeps_no_impossible_token(student)
    with expect.stage(REJECTED):
        what = (
            "where p has 0.25, 0 and 0.05 more than q, the next probabilities should be 5/6, 0, 1/6"
        )
        found = _next(student(*rejected), 3)
        expect.dtype(found, F64)
        expect.close(found, _tensor(5 / 6, 0, 1 / 6), what)
        for k, vocab_size, place in REJECTIONS:
            given = _drafted(draw, k, vocab_size, place)
            found = _next(student(*map(draw.strided, given)), vocab_size)
            what = f"the token at place {place} of {k} is not kept: the probabilities of the next"
            expect.close(
                found, _what_p_has_more(given[0][place], given[1][place]), f"{what} are wrong"
            )
        with expect.care():
            given = _drafted(draw, 1, 5, 0)
            what = "with a draft of one token that is not kept it is wrong"
            expect.close(
                _next(student(*given), 5), _what_p_has_more(given[0][0], given[1][0]), what
            )
    with expect.stage(WHOLE):
        what = "after a whole draft of one token the probabilities should be the last row of p"
        expect.close(_next(student(*whole), 3), p[1], what)
        for k, vocab_size in ((3, 7), (5, 11), (2, 6)):
            given = _drafted(draw, k, vocab_size)
            what = (
                f"after a whole draft of {k} tokens the probabilities should be the last row of p"
            )
            expect.close(_next(student(*given), vocab_size), given[0][-1], what)
        with expect.care():
            p, q, drafted, noise = _drafted(draw, 1, 6)
            result, what = student(p[:1], q[:0], drafted[:0], noise[:0]), "with a draft of no token"
            expect.close(_count(result), 0, f"{what} none should be kept")
            expect.close(_next(result, 6), p[0], f"{what} the row of p should come back")


def _keeps_no_impossible_token(student):
    """A noise of 0 is not below a probability of 0, however the two are compared."""
    p, q = _tensor(0.0, 0.25, 0.75, 0.5, 0.25, 0.25).view(2, 3), _tensor(0.5, 0.25, 0.25)[None]
    got = _count(student(p, q, torch.tensor([0]), _tensor(0.0)))
    expect.close(got, 0, "with a noise of 0, a token to which p gives 0 should not be kept")


def _cache(draw, layers, B, H_kv, P, d_head, scale=1.0):
    size = (B, H_kv, P, d_head)
    return [tuple(draw.normal(*size, scale=scale) for _ in "kv") for _ in range(layers)]


def _kept(tensor, n_first, window):
    """Position by position."""
    P, places = tensor.shape[2], []
    for place in range(P):
        if place < n_first or P - place <= window:
            places.append(tensor[:, :, place : place + 1])
    return torch.cat([tensor[:, :, :0], *places], 2)


def _compares_caches(student, past, n_first, window):
    got = student(past, n_first, window)
    what = f"with P={len(past[0][0][0, 0])}, n_first={n_first} and window={window}"
    expect.parts(got, *(f"layer {number}" for number in range(len(past))))
    for number, (found, pair) in enumerate(zip(got, past, strict=True)):
        expect.parts(found, "keys", "values")
        for name, one, whole in zip(("keys", "values"), found, pair, strict=True):
            wanted, said = _kept(whole, n_first, window), f"{name} of layer {number}"
            expect.tensor(one, wanted.shape, axes="B, H_kv, positions, d_head")
            right = one.dim() == 4 and one.shape[2] == wanted.shape[2]
            shown = tuple(one.shape), tuple(wanted.shape)
            sentence = f"{what}, another number of positions is kept in the {said}"
            expect.true(right, sentence, *(f"shape {shape}" for shape in shown))
            expect.close(one, wanted, f"{what}, other positions are kept in the {said}")


@check(
    rests_on=(
        "of its P positions, the first n_first and the last window stay, in their order, in the",
        "in the keys and the values of each layer",
        "Where the two overlap, a position stays once",
        "n_first how many positions stay at the beginning; 0 is allowed",
        "window how many stay at the end; 0 is allowed",
    ),
    without={
        "gradients": "a list of pairs comes back",
        "float32": "numbers are chosen and not computed",
        "refusals": "what is refused is in the lines that are given",
    },
)
def keep_sinks(student, draw):
    """Position by position: with a gap, without one, overlapping, with 0 at either end."""
    for sizes, n_first, window in (
        ((3, 2, 4, 11, 5), 2, 4),
        ((2, 3, 2, 9, 6), 1, 5),
        ((2, 2, 3, 7, 5), 3, 4),
        ((2, 2, 3, 7, 5), 4, 5),
        ((2, 3, 2, 6, 4), 2, 9),
        ((2, 2, 3, 5, 4), 8, 2),
        ((2, 2, 3, 8, 5), 0, 3),
        ((2, 2, 3, 8, 5), 3, 0),
    ):
        past = _cache(draw, *sizes)
        strided = [tuple(map(draw.strided, pair)) for pair in past]
        _compares_caches(student, strided, n_first, window)
    for sizes, n_first, window in (
        ((1, 1, 1, 5, 1), 1, 2),
        ((2, 3, 1, 1, 2), 1, 1),
        ((2, 2, 3, 6, 5), 0, 0),
    ):
        with expect.care():
            _compares_caches(student, _cache(draw, *sizes, scale=300.0), n_first, window)


@check(
    rests_on=(
        "Pair i of a head's features turns by position / base^(2i / d_head)",
        "Find the base with which the slowest pair turns factor times as slowly as before",
    ),
    without={
        "care": "numbers go in: no device, no dtype and no gradient",
        "refusals": "what is refused is in the lines that are given",
    },
)
def stretched_base(student, draw):
    """By hand with two pairs, then from the speed of the slowest pair."""
    what = "with base 100 and d_head=4, where the slowest pair turns by 1/10 at each position, it"
    got = student(100.0, 4, 3)
    expect.close(got, 900.0, f"{what} should turn by 1/30 with the new base")
    for base, d_head, factor in (
        (10_000.0, 32, 4),
        (100_000.0, 64, 2.0),
        (50.0, 6, 8),
        (500.0, 10, 1.5),
    ):
        _compares_speed(student, base, d_head, factor)
    for base, d_head, factor in ((10_000.0, 128, 1), (10, 8, 3), (10_000.0, 64, 0.5)):
        with expect.care():
            _compares_speed(student, base, d_head, factor)


def _compares_speed(student, base, d_head, factor):
    """The base is read off the speed that is wanted, in logarithms."""
    slowest = -(d_head - 2) / d_head * math.log(base) - math.log(factor)
    expected = math.exp(-slowest * d_head / (d_head - 2))
    what = f"with base={base:g}, d_head={d_head} and factor={factor:g} the slowest pair does not"
    got = student(base, d_head, factor)
    expect.close(got, expected, f"{what} turn {factor:g} times as slowly", rtol=1e-5)
