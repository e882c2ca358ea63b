"""Checks of lesson 06. The masks' oracle is a double loop over positions."""

import contextlib
import itertools
import math

import torch
from torch.nn import functional as F

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.inputs import LONG
from autograder.checking.toolbox.registry import check

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


@check(
    rests_on=(
        "how many real tokens each sequence has, from 0 to T",
        "bool, True where the key is a real token",
        "the axis of length 1 stands for the queries",
    )
)
def padding_mask(student, draw):
    """True at real keys, for every query; lengths 0 and T are possible."""
    expected = torch.tensor([[[1, 1, 0, 0, 0]], [[1, 1, 1, 1, 1]], [[0, 0, 0, 0, 0]]]).bool()
    what = "the mask for the lengths 2, 5 and 0 is wrong"
    _mask(student(torch.tensor([2, 5, 0]), 5), expected, what, axes="B, 1, T")

    # T may be longer than the longest sequence: a batch may be padded further.
    for lengths, T in (
        (draw.strided(draw.integers(0, 9, 4)), 8),
        (torch.tensor([3, 1]), 7),
        (torch.tensor([0, 0, 0]), 5),
    ):
        _as_long_as(student, lengths, T)
    with expect.care():
        _as_long_as(student, torch.tensor([4]), 6)
        _as_long_as(student, torch.tensor([0, 1]), 1)
    with expect.care():
        _as_long_as(student, torch.tensor([2, 5, 3], dtype=torch.int32), 5)


def _as_long_as(student, lengths, T):
    expected = torch.stack([_loop(1, T, lambda i, j, n=n: j < n) for n in lengths.tolist()])
    what = f"the mask for the lengths {lengths.tolist()} and T={T} is wrong"
    _mask(student(lengths, T), expected, what, axes="B, 1, T")


@check(
    rests_on=(
        "Every position sees itself and what came before it.",
        "device   where the mask is made",
        "(T, T)  bool, queries down, keys across",
    )
)
def causal_mask(student, draw):
    """Lower triangle with the diagonal."""
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    _mask(student(3), expected, "the mask for T=3 is wrong")
    for size in (2, LONG, int(draw.integers(5, 12, 1))):
        expected = _loop(size, size, lambda i, j: j <= i)
        _mask(student(size), expected, f"the mask for T={size} is wrong")
    _mask(student(size, device="cpu"), expected, f"the mask for T={size} on the CPU is wrong")
    with expect.care():
        _mask(student(1), torch.tensor([[True]]), "the mask for T=1 is wrong")


@check(
    rests_on=(
        "every position sees itself and window neighbours on each side",
        "device   where the mask is made",
    )
)
def local_mask(student, draw):
    """A band of window positions on each side."""
    rows = [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    expected = torch.tensor(rows).bool()
    _mask(student(5, 3), expected, "the mask for T=5 and window=3 is wrong")
    drawn = torch.stack([draw.integers(8, 30, 4), draw.integers(1, 7, 4)], 1).tolist()
    for T, window in ((9, 1), (9, 2), (LONG, 4), *drawn):
        expected = _of_window(student, T, window)
    what = f"the mask for T={T} and window={window} on the CPU is wrong"
    _mask(student(T, window, device="cpu"), expected, what)
    with expect.care():
        _of_window(student, 9, 0)
    with expect.care():
        _of_window(student, 9, 20)
    with expect.care():
        _of_window(student, 1, 0)
        _of_window(student, 1, 3)


def _of_window(student, T, window):
    expected = _loop(T, T, lambda i, j: i - window <= j <= i + window)
    _mask(student(T, window), expected, f"the mask for T={T} and window={window} is wrong")
    return expected


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


@check(
    rests_on=(
        "itself and the block on each side",
        "the first and the last block, which are global in both directions",
        "have the largest numbers in its row of the lottery",
        "the same seed gives the same mask",
        "as far as there are any",
        "n_random may be 0, and a block a single position",
    ),
    stages={PATTERN: 1, LOTTERY: 1, WIDE: 1},
)
def bigbird_mask(student, draw):
    """Neighbours, two global blocks, and the lottery's winners among the blocks left over."""
    seed = int(draw.integers(1, 10**6, 1))
    with expect.stage(PATTERN):
        _of_blocks(student, 6, 1, 0, seed)
        _of_blocks(student, 9, 1, 0, seed)
        _of_blocks(student, draw.choice(range(10, 30)), 1, 0, seed)
    with expect.stage(LOTTERY):
        _repeats_itself(student, seed)
        _draws_by_itself(student, 40, 2, seed + 2)
        if expect.stands(PATTERN):
            for sizes in ((9, 1, 1), (8, 1, 2), (5, 1, 4)):
                _of_blocks(student, *sizes, seed)
    with expect.stage(WIDE):
        _widens_by_itself(student, 9, 3, seed)
        if expect.stands(PATTERN):
            _of_blocks(student, 6, 2, 0, seed)
        if expect.stands(PATTERN) and expect.stands(LOTTERY):
            for sizes in ((9, 3, 1), (8, 2, 2), (5, 2, 4)):
                _of_blocks(student, *sizes, seed)
            _of_blocks(student, 9, 2, 2, seed + 1)
    with expect.stage(LOTTERY), expect.care():
        if expect.stands(PATTERN):
            _of_blocks(student, 7, 1, 2, seed)
    with expect.stage(WIDE), expect.care():
        if expect.stands(PATTERN) and expect.stands(LOTTERY):
            for sizes in ((1, 3, 1), (2, 1, 2), (3, 2, 1)):
                _of_blocks(student, *sizes, seed)


def _of_blocks(student, n_blocks, block_size, n_random, seed):
    got = student(n_blocks, block_size, n_random, seed)
    T = n_blocks * block_size
    sees = _bigbird(n_blocks, n_random, seed)
    expected = _loop(T, T, lambda i, j: sees[i // block_size][j // block_size])
    size = f"n_blocks={n_blocks}, block_size={block_size}, n_random={n_random}"
    _mask(got, expected, f"the mask for {size} and seed={seed} is wrong")


def _draws_by_itself(student, n_blocks, n_random, seed):
    """The winners, where they are the same whatever becomes of neighbours and global blocks."""
    sees = _bigbird(n_blocks, n_random, seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=torch.Generator().manual_seed(seed)).tolist()
    got = student(n_blocks, 1, n_random, seed)
    expect.shape(got, (n_blocks, n_blocks), axes="T, T")
    for i in range(3, n_blocks - 3):
        far = [j for j in range(1, n_blocks - 1) if abs(i - j) > 2]
        others = [j for j in range(n_blocks) if abs(i - j) > 1]
        if not set(sorted(others, key=lambda j, i=i: -lottery[i][j])[:n_random]) <= set(far):
            continue
        drawn, wanted = ([j for j in far if row[j]] for row in (got[i].tolist(), sees[i]))
        what = f"with seed={seed} block {i} of {n_blocks} does not see the winners of its row"
        expect.true(drawn == wanted, what, f"far off it sees {drawn}", f"{wanted}")


def _widens_by_itself(student, n_blocks, block_size, seed):
    """Blocks without random ones, but for what is global and for those that are two apart."""
    got, T = student(n_blocks, block_size, 0, seed), n_blocks * block_size
    expect.shape(got, (T, T), axes="T, T")
    for i, j in itertools.product(range(block_size, T - block_size), repeat=2):
        apart = abs(i // block_size - j // block_size)
        seen = "sees" if got[i, j] else "does not see"
        what = f"with blocks of {block_size} positions the mask is wrong"
        near = f"[{i}, {j}] = {got[i, j].item()}: query {i} {seen} key {j}"
        expect.true(apart == 2 or bool(got[i, j]) == (apart < 2), what, near, "the opposite there")


def _repeats_itself(student, seed):
    masks = [student(40, 1, 3, seed), student(40, 1, 3, seed)]
    same = all(isinstance(mask, torch.Tensor) for mask in masks) and torch.equal(*masks)
    what = "two calls with the same seed give two masks"
    expect.true(same, what, "other random blocks in the second call", "the same blocks")


def _bigbird(n_blocks, n_random, seed):
    """Which block sees which, as rows of bools."""
    lottery = torch.rand(n_blocks, n_blocks, generator=torch.Generator().manual_seed(seed)).tolist()
    rows = []
    for i in range(n_blocks):
        known = {j for j in range(n_blocks) if abs(i - j) <= 1 or {i, j} & {0, n_blocks - 1}}
        others = sorted(set(range(n_blocks)) - known, key=lambda j, i=i: -lottery[i][j])
        known |= set(others[:n_random])
        rows.append([j in known for j in range(n_blocks)])
    return rows


@check(
    rests_on=(
        "A key must be allowed by all masks.",
        "with no mask at all the result is `None`",
        "bool tensors whose shapes broadcast to each other",
    )
)
def combine_masks(student, draw):
    """Logical and of any number of masks, with broadcasting; None restricts nothing."""
    causal = torch.tensor([[True, False], [True, True]])
    second_only = torch.tensor([[False, True], [False, True]])
    expected = torch.tensor([[False, False], [False, True]])
    _mask(student(causal, second_only), expected, "two masks worked by hand are combined wrongly")

    padding, square = draw.uniform(2, 1, 7) < 0.6, draw.uniform(5, 7) < 0.6
    third = draw.uniform(2, 5, 7) < 0.8
    expected = _both(padding, square)
    axes = "B, T_q, T_k"
    _mask(student(padding, square), expected, "(2, 1, 7) and (5, 7) are combined wrongly", axes)
    _mask(student(square, padding), expected, "(5, 7) and (2, 1, 7) are combined wrongly", axes)
    expected = expected.logical_and(third)
    what = "three masks are combined wrongly"
    _mask(student(padding, square, third), expected, what, axes)
    _mask(student(draw.strided(third), square, draw.strided(padding)), expected, what, axes)
    for masks in ((padding, None, square, third), (None, third, padding, None, square)):
        _mask(student(*masks), expected, "with None between the masks the result is wrong", axes)
    _mask(student(None, square, None), square, "None should restrict nothing", "T_q, T_k")
    _mask(student(square), square, "a single mask should come out as it is", "T_q, T_k")
    both = square & third[1]
    _mask(student(square, third[1]), both, "two masks (5, 7) are combined wrongly", "T_q, T_k")
    four = student(third, padding, ~square, torch.ones(1, 7).bool())
    expected = _both(padding, ~square) & third
    _mask(four, expected, "four masks are combined wrongly", axes)
    for nothing in ((), (None,), (None, None)):
        result = student(*nothing)
        expect.true(
            result is None, "without a mask the result is not None", expect.describe(result)
        )
    one, row = padding[:1], square[:1]
    with expect.care():
        _mask(student(one, row), one & row, "masks of one row are combined wrongly", axes)
    with expect.care():
        _mask(student(one, None), one, "a single mask (1, 1, 7) should come out as it is", axes)


def _both(padding, square):
    rows = [
        [[p and s for p, s in zip(pads[0], row, strict=True)] for row in square.tolist()]
        for pads in padding.tolist()
    ]
    return torch.tensor(rows)


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
        "Scores of ±1000 are fine",
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
    rests_on=(
        "attention with a local mask without ever making a `(T, T)` tensor",
        "The check calls it with a sequence of half a million.",
        "neighbours on each side, as in local_mask",
        "Scores of ±1000 are fine",
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
