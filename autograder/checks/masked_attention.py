"""Checks of lesson 06. The masks' oracle is a double loop over positions."""

import contextlib
import itertools
import math

import torch
from torch.nn import functional as F

from attention.provided.stand_ins import InCompany
from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

F64 = torch.float64


def _loop(T_q, T_k, rule):
    """The (T_q, T_k) mask whose entries are rule(i, j)."""
    return torch.tensor([[bool(rule(i, j)) for j in range(T_k)] for i in range(T_q)])


def _mask(got, expected, what, axes="T, T"):
    expect.shape(got, expected.shape, axes)
    kind = str(got.dtype).removeprefix("torch.")
    expect.true(got.dtype == torch.bool, "a mask is made of bools", kind, "bool: True = may attend")
    wrong = (got != expected).nonzero()
    if len(wrong):
        index = tuple(wrong[0].tolist())
        place = ", ".join(map(str, index))
        query, key = index[-2:]
        seen = f"query {query} {'sees' if got[index] else 'does not see'} key {key}"
        expect.true(False, what, f"[{place}] = {got[index].item()}: {seen}", "the opposite there")


PAST, DOCUMENTS, PADDING = "the past", "documents", "padding"


@check(
    rests_on=(
        "A query sees a key if the key is not later than the query",
        "belongs to the same document",
        "and is no padding",
        "Padding sees nothing.",
        "the queries are the last T_q of the T_k positions",
        "(B, T_q, T_k)  bool, True = may attend",
    ),
    stages={PAST: 1, DOCUMENTS: 1, PADDING: 1},
)
def packed_mask(student, draw):
    """Each of the three masks where the others allow all, and then all of them at once."""
    whole = torch.ones(2, 7, dtype=torch.int64)
    some = [_row(draw, 3, 4, 2), _row(draw, 1, 2, 6), _row(draw, 5, 3, 1)]
    packed = torch.tensor(some)  # (3, 9), without padding
    padded = torch.tensor([[1, 1, 1, 2, 2, 2, 2, 0, 0], [0, 0, 1, 1, 1, 1, 1, 1, 1], [0] * 9])
    with expect.stage(PAST):
        fewer, least = sorted(draw.permutation(5).tolist()[:2], reverse=True)
        for T_q in (7, 2 + fewer, 1 + least, 1):
            _packed(student, whole, T_q)
    with expect.stage(DOCUMENTS):
        for T_q in (9, 4, 1):
            _packed(student, packed, T_q, lambda i, j, of: j < i)
        if expect.stands(PAST):
            _packed(student, draw.strided(packed), 5)
    with expect.stage(PADDING):
        for T_q in (9, 3):
            _packed(student, padded, T_q, lambda i, j, of: not (of[i] and of[j]))
        if expect.stands(PAST) and expect.stands(DOCUMENTS):
            for T_q in (9, 4):
                _packed(student, padded, T_q)
    with expect.stage(PAST), expect.care():
        _packed(student, whole[:1, :1], 1)
    with expect.stage(DOCUMENTS), expect.care():
        if expect.stands(PAST):
            _packed(student, packed[:1].to(torch.int32), 6)


def _row(draw, *lengths):
    """The documents 1, 2, 3 … of these lengths, in an order of their own, as a list."""
    order = draw.permutation(len(lengths)).tolist()
    return [number for number, of in enumerate(order, 1) for _ in range(lengths[of])]


def _packed(student, document, T_q, where=lambda i, j, of: True):
    """Compare what the last T_q positions see, at those places (i, j) of which ``where`` holds."""
    got, T_k = student(document, T_q), document.shape[1]
    expect.shape(got, (len(document), T_q, T_k), axes="B, T_q, T_k")
    kind = str(got.dtype).removeprefix("torch.")
    expect.true(got.dtype == torch.bool, "a mask is made of bools", kind, "bool: True = may attend")
    for of, rows in zip(document.tolist(), got.tolist(), strict=True):
        for i, j in itertools.product(range(T_k - T_q, T_k), range(T_k)):
            sees, wanted = rows[i - T_k + T_q][j], j <= i and of[i] == of[j] > 0
            row = " ".join(map(str, of))
            what = f"in the row of documents {row}, with T_q={T_q}, the mask is wrong"
            does = "sees" if sees else "does not see"
            found = f"the query at position {i} {does} the key at position {j}"
            fits = sees == wanted or not where(i, j, of)
            expect.true(fits, what, found, f"{'it does' if wanted else 'it does not'}")


@check(
    rests_on=(
        "they see all positions, and all positions see them",
        "global_positions  list of ints",
        "device            where the mask is made",
    )
)
def longformer_mask(student, draw):
    """A band, plus whole rows and whole columns."""
    expected = torch.tensor(
        [[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]]
    ).bool()
    what = "the mask for T=5, window=1 and global position 2 is wrong"
    _mask(student(5, 1, [2]), expected, what)
    first, second = draw.permutation(9)[:2].tolist()
    for T, window, chosen in (
        (9, 1, [first, second]),
        (9, 2, [second]),
        (9, 0, [0, 8]),
        (8, 1, [7, 2, 5]),
    ):
        expected = _of_global(student, T, window, chosen)
    on_the_cpu = student(T, window, chosen, device="cpu")
    _mask(on_the_cpu, expected, "the mask on the CPU is wrong")
    with expect.care():
        _of_global(student, 9, 1, [])
    with expect.care():
        _of_global(student, 1, 0, [0])


def _of_global(student, T, window, chosen):
    expected = _loop(T, T, lambda i, j: abs(i - j) <= window or i in chosen or j in chosen)
    what = f"the mask for T={T}, window={window} and global positions {chosen} is wrong"
    _mask(student(T, window, chosen), expected, what)
    return expected


PATTERN, LOTTERY = "neighbours and global blocks", "the winners of the lottery"
WIDE = "blocks of several positions"


def _reference(q, k, v, mask=None):
    """Weights as ratios of exponentials, in which an empty row is 0 / tiny."""
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    powers = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
    powers = powers if mask is None else powers * mask
    return torch.einsum(
        "...qk,...kd->...qd", powers / powers.sum(-1, keepdim=True).clamp(1e-290), v
    )


def _weights(q, k, mask):
    """The weights as PyTorch gives them, with zeros in the rows that see nothing."""
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
    return torch.softmax(scores.where(mask, -math.inf), -1).nan_to_num(0.0)


SEEING, BLIND = "with a key for every query", "with a query that sees nothing"
GRADIENTS = "its gradients"


@check(
    rests_on=(
        "weights 0 and context 0, and no gradient is ever `NaN`",
        "A query that may attend to nothing gets weights of 0",
        "Rows with at least one key are as in lesson 05",
        "bool that broadcasts to (..., T_q, T_k); True = may attend",
        "with return_weights=True the pair context, weights",
        "It must also work for scores of ±1000",
    ),
    stages={SEEING: 1, BLIND: 1, GRADIENTS: 1},
    without={"gradients": "the check itself asks for them, with a mask and without"},
)
def masked_attention(student, draw):
    """Attention under a mask; empty rows give zeros, and finite gradients everywhere."""
    q, k, v = draw.normal(2, 3, 5, 6, scale=2.0), draw.normal(2, 3, 7, 6), draw.normal(2, 3, 7, 8)
    full = draw.uniform(2, 1, 5, 7) < 0.5
    full[..., 3], full[..., 5] = True, False  # key 5 is seen by no query
    empty = full.clone()
    empty[0, :, 2] = False  # two queries of the first example, and all of the second
    empty[0, :, 4] = False
    empty[1] = False
    with expect.stage(SEEING):
        context = student(q, k, v)
        expect.shape(context, (2, 3, 5, 8), axes="B, H, T_q, d_v")
        expect.dtype(context, F64)
        expected = F.scaled_dot_product_attention(q, k, v)
        expect.close(context, expected, "without a mask the context is wrong")
        _obeys(student, q, k, v, None, "without a mask")
    q = q.clone()
    q[:, :, 1] = 0.0
    with expect.stage(SEEING):
        _obeys(student, q, k, v, full, "with a mask")
        context = student(draw.strided(q), draw.strided(k), draw.strided(v), full)
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=full)
        expect.close(context, expected, "the context differs from F.scaled_dot_product_attention")
        _obeys(student, *_low(), "where the scores that may be seen are around -1000")
    with expect.stage(BLIND):
        single = draw.normal(2, 3, 5, 1, scale=2.0), draw.normal(2, 3, 7, 1), v
        what = "a query with nothing to attend to should have the context 0"
        expect.close(student(*single, empty), _reference(*single, empty), what)
        if expect.stands(SEEING):
            context = _obeys(student, q, k, v, empty, "with a row that may attend to nothing")
            expect.close(context, _reference(q, k, v, empty), what)
            alone = student(q, k, v, mask=empty)
            expect.close(alone, context, "return_weights=True changes the context")
    with expect.stage(GRADIENTS):
        _has_gradients(student, draw, *single, empty)
        if expect.stands(SEEING):
            _has_gradients(student, draw, q, k, v, empty)
            _has_gradients(student, draw, q, k, v, full)
            _has_gradients(student, draw, q, k, v, None)
    _obeys_others(student, draw, q, k, v)


def _low():
    """Two queries with scores of -1024 and -1023, and one of 0 that they may not see."""
    q, k = torch.full((2, 1), 512.0, dtype=F64), torch.tensor([[-1024.0], [-1023.0], [0.0]])
    v = torch.tensor([[1.0, 5.0], [3.0, -2.0], [-7.0, 4.0]], dtype=F64)
    return q, k.to(F64) / 512, v, torch.tensor([[True, True, False], [False, True, False]])


def _has_gradients(student, draw, q, k, v, mask):
    """Finite, and right: those of queries that see something, if the others' context is not 0."""
    gradients = student.gradients(q, k, v, mask, cotangent=draw.normal(2, 3, 5, 8))
    for gradient, name in zip(gradients, "qkv", strict=True):
        expect.true(gradient is not None, f"no gradient reaches {name}")
        expect.finite(gradient, f"the gradient of {name} is not finite if a row has nothing to see")
    cotangent = draw.normal(2, 3, 5, 8)
    if mask is not None and not expect.stands(BLIND):
        cotangent = cotangent * mask.any(-1, keepdim=True)
    expect.gradients(student, _reference, q, k, v, mask, cotangent=cotangent)


def _obeys_others(student, draw, q, k, v):
    """Masks of other shapes; scores in the hundreds and sizes of 1 are for care."""
    queries, keys = torch.arange(5)[:, None] != 2, draw.permutation(7) < 3
    heads = draw.uniform(3, 5, 7) < 0.4
    heads[1, 3] = False
    masks = queries, keys, queries & keys, keys.repeat(2, 1, 1, 1), queries & keys[None, None]
    for mask in (*masks, heads):
        sees = bool(mask.any(-1).all())
        with expect.stage(SEEING if sees else BLIND):
            if sees or expect.stands(SEEING):
                _obeys(student, q, k, v, mask, f"with a mask of shape {tuple(mask.shape)}")
    with expect.stage(BLIND), expect.care():
        if expect.stands(SEEING):
            _obeys(student, 300 * q, k, v, heads, "with large scores and a mask (3, 5, 7)")
    for mask in (torch.tensor([[True]]), torch.tensor([[False]])):
        one = draw.normal(1, 1, 9), draw.normal(1, 1, 9), draw.normal(1, 1, 3)
        with expect.stage(SEEING if mask.any() else BLIND), expect.care():
            if mask.any() or expect.stands(SEEING):
                what = f"with one query, one key and the mask {mask.tolist()}"
                _obeys(student, *one, mask, what)
    with expect.stage(BLIND), expect.care():
        if expect.stands(SEEING):
            rows = draw.normal(5, 6), draw.normal(1, 6), draw.normal(1, 1)
            _obeys(student, *rows, queries, "with one key that some queries may not see")


def _obeys(student, q, k, v, mask, when):
    result = student(q, k, v, mask, return_weights=True)
    fits = isinstance(result, tuple | list) and len(result) == 2
    what = "with return_weights=True the result is not a pair"
    expect.true(fits, what, expect.describe(result), "(context, weights)")
    context, weights = result
    allowed = torch.ones((), dtype=torch.bool) if mask is None else mask
    expected = _weights(q, k, allowed)
    expect.shape(weights, expected.shape, axes=", ".join(("B", "H", "T_q", "T_k")[-q.dim() :]))
    expect.finite(weights, f"{when} the weights are not finite")
    largest = (weights * ~allowed).abs().max().item()
    what = f"{when} a forbidden key gets some weight"
    expect.true(largest == 0, what, f"a weight of {largest:.4g}", "0 where the mask is False")
    sums, wanted = weights.sum(-1), allowed.expand_as(weights).any(-1).to(F64)
    expect.close(sums, wanted, f"{when} the rows should sum to 1 (to 0 if nothing may be seen)")
    expect.close(weights, expected, f"{when} the weights are wrong")
    expect.close(context, expected @ v, f"{when} the context is wrong")
    return context


AT_T, BEFORE = "where a leak shows at t", "where it shows only before t"
ALIKE = "where the future is all zeros or all alike"
BOOL = "True and False have neither precision nor gradient"
TEXTS = "texts go in, and texts come out"


@check(
    without={
        "device": "the layers are given, and make their own masks on the CPU",
        "float32": BOOL,
        "gradients": BOOL,
        "large": "with large numbers the softmax is saturated, and no leak shows in its result",
    },
    rests_on=(
        "Does any output at or before t differ?",
        "True if another future, all positions after t, changes an output",
        "Into something that is certainly different, whatever x was.",
        "positions after `t` hold other vectors of similar size",
    ),
    stages={AT_T: 1, BEFORE: 1, ALIKE: 1},
)
def leaks(student, draw):
    """Finds who looks ahead, one step or many, from one position or all, through zeros too."""
    x = _calm(draw)
    for name, t in (("C", 1), ("A", 5), ("A", 2), ("B", 2), ("G", 0), ("A", 0), ("D", 5)):
        _suspects(student, AT_T, name, x, t)
    for name, t in (("F", 3), ("E", 3), ("F", 5), ("A", 3), ("F", 1)):
        _suspects(student, BEFORE, name, x, t)
    for name, t in (("E", 3), ("B", 4), ("D", 0)):
        _suspects(student, AT_T, name, x, t)
    # In these the future is 0 or constant: replacing it by that would change nothing.
    zeros, ones = x.clone(), x.clone()
    zeros[3:], ones[3:] = 0.0, 1.0
    cases = [("B", zeros, 2), ("D", zeros, 2), ("A", zeros, 2), ("B", ones, 2), ("E", ones, 2)]
    # The same rows in another order are another future for who sees only some of them.
    same = (x[:1].abs() + 0.5).expand(6, 3).clone()  # positive: louder rows get weight, not 0
    cases += [("B", same, 2), ("F", same, 0), ("D", same, 3), ("A", same, 2)]
    cases += [("D", ones, 5)]
    cases += [draw.choice(cases) for _ in range(12)]
    for case in cases:
        _suspects(student, ALIKE, *case)
    # Query 0 looks at all but the position next to it, whose score is far too low.
    beyond = _calm(draw)
    beyond[2] = -70 * beyond[0] / beyond[0].square().sum()
    _suspects(student, BEFORE, "F", beyond, 1)
    one, row = _calm(draw, 5, 1) + 1, draw.normal(1, 3)
    cases = [("C", x.float(), 2), ("E", x.float(), 2), ("F", draw.strided(x), 1)]
    # Enough drawn cases that nobody guesses all the answers.
    cases += [(draw.choice("ABCDEFG"), _calm(draw), draw.choice(range(6))) for _ in range(20)]
    for name, sequence, t in cases:
        _suspects(student, BEFORE if name == "F" and t > 0 else AT_T, name, sequence, t)
    for case in (("B", one, 2), ("D", one, 1), ("A", one, 2), ("A", row, 0), ("D", row, 0)):
        _suspects(student, AT_T, *case, block=expect.care)


def _suspects(student, stage, name, sequence, t, block=contextlib.nullcontext):
    with expect.stage(stage), block():
        _judges(student, name, sequence, t, in_any_form=stage != AT_T)


def _judges(student, name, sequence, t, in_any_form):
    expected = name in "BCDFG" and t < len(sequence) - 1
    said = student(name, sequence, t)
    if in_any_form and isinstance(said, torch.Tensor) and said.shape == ():
        said = bool(said)
    expect.true(type(said) is bool, "the result is not a bool", expect.describe(said), "a bool")
    what = (
        f"layer {name} looks beyond position {t}, and the test does not notice"
        if expected
        else f"layer {name} does not look beyond position {t}, and is accused"
    )
    expect.equal(said, expected, what)


def _calm(draw, T=6, d=3):
    """A sequence with which no softmax is so near to saturation that a leak is lost in rounding.

    No position gives another one of similar size, or of numbers up to 4, a weight below 0.001.
    """
    return draw.uniform(T, d, low=-0.7, high=0.7)


@check(
    without={
        **counterexamples.WITHOUT,
        "care": "an input is returned, in any dtype: nothing comes in",
    },
    rests_on=(
        "an input `(name, x, t)` for which this test gives",
        "On some sequences it misses one.",
    ),
)
def break_leaks(student, draw):
    """An input on which silences_the_future is wrong."""
    counterexamples.judge(student, "leaks", "silences_the_future", allowed=_suspect_fits)


def _suspect_fits(name, x, t):
    """One of the seven layers, a sequence of vectors, and one of its positions."""
    known = isinstance(name, str) and len(name) == 1 and name in "ABCDEFG"
    expect.true(known, "there is no such layer", repr(name), 'a name from "A" to "G"')
    expect.tensor(x)
    fits = x.dim() == 2 and x.is_floating_point() and x.numel() > 0
    wanted = "floating point numbers (T, d), no axis of length 0"
    expect.true(fits, "x does not fit the exercise", expect.describe(x), wanted)
    inside = type(t) is int and 0 <= t < len(x)
    expect.true(inside, "t is no position of x", repr(t), f"an int from 0 to {len(x) - 1}")


@check(
    without={
        "device": TEXTS,
        "float32": TEXTS,
        "gradients": TEXTS,
        "large": TEXTS,
    },
    rests_on=(
        "Try the companions one at a time, each in a batch with the text",
        "return those beside which the text's translation is not what it is alone",
        "list of those companions, in the order of others",
    ),
)
def companions_that_matter(student, draw):
    """Translators that nobody leads, that longer companions lead, and that any companion leads."""
    text = f"a{draw.choice('cde')}{draw.choice('fgh')}ib"
    same, short, long = text[::-1], text[:3], text * 2
    others = [short, long, same, "x" * 6, text, "y", "z" * 9]
    longer = [long, "x" * 6, "z" * 9]
    for led_by, wanted in (("nobody", []), ("longer", longer), ("number", others)):
        translate = {STAND_IN: InCompany.__name__, "led_by": led_by}
        _matter(student, translate, led_by, text, others, wanted)
        _matter(student, translate, led_by, text, others[::-1], wanted[::-1])
    _matter(student, translate, "number", text, [text], [text])
    with expect.care():
        _matter(student, translate, "number", text, [], [])


LED_BY = {
    "nobody": "a translator that always gives the same",
    "longer": "a translator that longer companions lead astray",
    "number": "a translator that any companion leads astray",
}


def _matter(student, translate, led_by, text, others, wanted):
    found = student(translate, text, others)
    what = f"with {LED_BY[led_by]}, the text {text!r} and the companions {others}"
    fits = isinstance(found, list | tuple) and all(isinstance(one, str) for one in found)
    expect.true(fits, f"{what} no list of texts is returned", expect.describe(found), wanted)
    expect.true(list(found) == wanted, f"{what} the result is wrong", list(found), wanted)


@check(
    rests_on=(
        "attention with a local mask without ever making a `(T, T)` tensor",
        "The check calls it with a sequence of half a million.",
        "how many neighbours on each side a position sees",
        "It must also work for scores of ±1000",
    )
)
def sliding_window_attention(student, draw):
    """Equal to dense attention under a local mask, at sizes where that one cannot exist."""
    for T, window, lead in ((8, 2, (2, 3)), (7, 3, (4,)), (9, 1, ())):
        _like_a_band(student, draw, T, window, lead, scale=2.0)
    _has_low_scores(student)

    T = 500_000  # a dense matrix of this length takes 2 terabytes
    q, k, v = draw.normal(T, 1), draw.normal(T, 1), draw.normal(T, 1)
    context = student(q, k, v, 1)
    expect.shape(context, (T, 1), axes="T, d_v")
    what = "in a sequence of half a million a context is wrong"
    expect.close(context, _with_two_neighbours(q, k, v), what)

    def reference(q, k, v, window):
        band = _loop(7, 7, lambda i, j: abs(i - j) <= window)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=band)

    with expect.care():
        _like_a_band(student, draw, 8, 0, (), scale=2.0)
    with expect.care():
        _like_a_band(student, draw, 5, 7, (2,), scale=2.0)
    with expect.care():
        _like_a_band(student, draw, 9, 1, (), scale=300.0)
    with expect.care():
        _like_a_band(student, draw, 1, 2, (3,))
        _like_a_band(student, draw, 7, 3, (1,))
        _like_a_band(student, draw, 7, 2, (), d=1)
    with expect.care("gradients"):
        q, k, v = draw.normal(2, 7, 6), draw.normal(2, 7, 6), draw.normal(2, 7, 5)
        expect.gradients(student, reference, q, k, v, 2, cotangent=draw.normal(2, 7, 5))


def _like_a_band(student, draw, T, window, lead, scale=1.0, d=6):
    q, k, v = (
        draw.normal(*lead, T, d, scale=scale),
        draw.normal(*lead, T, d),
        draw.normal(*lead, T, 5),
    )
    q[..., 0, 0] = scale
    band = _loop(T, T, lambda i, j: abs(i - j) <= window)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=band)
    context = student(draw.strided(q), draw.strided(k), draw.strided(v), window)
    expect.shape(context, v.shape, axes="..., T, d_v")
    expect.dtype(context, F64)
    size = f"T={T} and window={window}"
    expect.close(context, expected, f"with {size} it differs from dense attention with a mask")


def _has_low_scores(student):
    """All scores are around -1000: beyond the ends there must be lower ones."""
    q, k = torch.full((4, 1), 512.0, dtype=F64), torch.tensor([[-1024], [-1023], [-1025], [-1023]])
    k, v = k.to(F64) / 512, torch.arange(5.0, 13.0, dtype=F64).view(4, 2)
    band = _loop(4, 4, lambda i, j: abs(i - j) <= 1)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=band)
    what = "with T=4, window=1 and scores around -1000 it differs from dense attention"
    expect.close(student(q, k, v, 1), expected, what)


def _with_two_neighbours(q, k, v):
    """Attention with window 1 of vectors of length 1, as three sums of a whole sequence."""
    powers = (q * k).exp(), (q[1:] * k[:-1]).exp(), (q[:-1] * k[1:]).exp()
    total, context = powers[0].clone(), powers[0] * v
    for rows, power, seen in ((slice(1, None), powers[1], v[:-1]), (slice(-1), powers[2], v[1:])):
        total[rows] += power
        context[rows] += power * seen
    return context / total
