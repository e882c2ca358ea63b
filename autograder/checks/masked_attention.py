"""Checks of lesson 06. The masks' oracle is a double loop over positions."""

import math

import torch
from torch.nn import functional as F

from autograder.checking import expect
from autograder.checking.registry import check

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


@check
def padding_mask(student, draw):
    """True at real keys, for every query; lengths 0 and T are possible."""
    expected = torch.tensor([[[1, 1, 0, 0, 0]], [[1, 1, 1, 1, 1]], [[0, 0, 0, 0, 0]]]).bool()
    what = "the mask for the lengths 2, 5 and 0 is wrong"
    _mask(student(torch.tensor([2, 5, 0]), 5), expected, what, axes="B, 1, T")

    lengths = draw.integers(0, 9, 4)
    expected = torch.stack([_loop(1, 8, lambda i, j, n=n: j < n) for n in lengths.tolist()])
    what = f"the mask for the lengths {lengths.tolist()} is wrong"
    _mask(student(draw.strided(lengths), 8), expected, what, axes="B, 1, T")
    # T is longer than the longest sequence: a batch may be padded further.
    expected = torch.stack([_loop(1, 7, lambda i, j, n=n: j < n) for n in (3, 1)])
    what = "the mask for the lengths 3 and 1 is wrong"
    _mask(student(torch.tensor([3, 1]), 7), expected, what, axes="B, 1, T")


@check
def causal_mask(student, draw):
    """Lower triangle with the diagonal."""
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    _mask(student(3), expected, "the mask for T=3 is wrong")
    T = int(draw.integers(5, 12, 1))
    for size in (1, T):
        _mask(
            student(size), _loop(size, size, lambda i, j: j <= i), f"the mask for T={size} is wrong"
        )


@check
def local_mask(student, draw):
    """A band of window positions on each side."""
    rows = [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    expected = torch.tensor(rows).bool()
    _mask(student(5, 3), expected, "the mask for T=5 and window=3 is wrong")
    drawn = torch.stack([draw.integers(6, 30, 4), draw.integers(0, 12, 4)], 1).tolist()
    for T, window in ((9, 0), (9, 1), (9, 2), (9, 20), *drawn):
        expected = _loop(T, T, lambda i, j, w=window: i - w <= j <= i + w)
        _mask(student(T, window), expected, f"the mask for T={T} and window={window} is wrong")


@check
def longformer_mask(student, draw):
    """A band, plus whole rows and whole columns."""
    expected = torch.tensor(
        [[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]]
    ).bool()
    what = "the mask for T=5, window=1 and global position 2 is wrong"
    _mask(student(5, 1, [2]), expected, what)
    first, second = draw.permutation(9)[:2].tolist()
    for window, chosen in ((1, [first, second]), (2, [second]), (0, [0, 8]), (1, [])):
        expected = _loop(9, 9, lambda i, j, w=window, g=chosen: abs(i - j) <= w or i in g or j in g)
        what = f"the mask for T=9, window={window} and global positions {chosen} is wrong"
        _mask(student(9, window, chosen), expected, what)


@check
def bigbird_mask(student, draw):
    """Neighbours, two global blocks, and the lottery's winners among the blocks left over."""
    seed = int(draw.integers(1, 10**6, 1))
    _repeats_itself(student, seed)
    for n_blocks, block_size, n_random in ((6, 1, 0), (6, 2, 0), (7, 1, 2), (9, 3, 1), (5, 2, 4)):
        got = student(n_blocks, block_size, n_random, seed)
        T = n_blocks * block_size
        sees = _bigbird(n_blocks, n_random, seed)
        expected = _loop(T, T, lambda i, j, s=block_size, sees=sees: sees[i // s][j // s])
        size = f"n_blocks={n_blocks}, block_size={block_size}, n_random={n_random}"
        _mask(got, expected, f"the mask for {size} is wrong")
    expected = torch.tensor(_bigbird(9, 2, seed + 1))
    _mask(student(9, 1, 2, seed + 1), expected, "the mask for another seed is wrong")


def _repeats_itself(student, seed):
    """Two calls with one seed. Of random masks the record keeps only whether they were equal."""
    masks = [student(40, 1, 3, seed), student(40, 1, 3, seed)]
    same = all(isinstance(mask, torch.Tensor) for mask in masks) and torch.equal(*masks)
    if not same:
        student.record[-2:] = [("repeats itself", same, [])]
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


@check
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
    _mask(student(padding, square, third), expected, "three masks are combined wrongly", axes)
    _mask(student(None, square, None), square, "None should restrict nothing", "T_q, T_k")
    for nothing in ((), (None,), (None, None)):
        result = student(*nothing)
        expect.true(
            result is None, "without a mask the result is not None", expect.describe(result)
        )


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


@check
def masked_attention(student, draw):
    """Attention under a mask; empty rows give zeros, and finite gradients everywhere."""
    q, k, v = draw.normal(2, 3, 5, 4, scale=2.0), draw.normal(2, 3, 7, 4), draw.normal(2, 3, 7, 6)
    context = student(q, k, v)
    expect.shape(context, (2, 3, 5, 6), axes="B, H, T_q, d_v")
    expect.dtype(context, F64)
    expected = F.scaled_dot_product_attention(q, k, v)
    expect.close(context, expected, "without a mask the context is wrong")

    full = draw.uniform(2, 1, 5, 7) < 0.5
    full[..., 3] = True
    _obeys(student, q, k, v, full, "with a mask")
    context = student(draw.strided(q), draw.strided(k), draw.strided(v), full)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=full)
    expect.close(context, expected, "the context differs from F.scaled_dot_product_attention")

    empty = full.clone()
    empty[0, :, 2] = False  # one query of the first example, and all of the second
    empty[1] = False
    context = _obeys(student, q, k, v, empty, "with a row that may attend to nothing")
    what = "a query with nothing to attend to should have the context 0"
    expect.close(context, _reference(q, k, v, empty), what)
    gradients = student.gradients(q, k, v, empty, cotangent=draw.normal(2, 3, 5, 6))
    for gradient, name in zip(gradients, "qkv", strict=True):
        expect.true(gradient is not None, f"no gradient reaches {name}")
        expect.finite(gradient, f"the gradient of {name} is not finite if a row has nothing to see")
    expect.gradients(student, _reference, q, k, v, empty, cotangent=draw.normal(2, 3, 5, 6))


def _obeys(student, q, k, v, mask, when):
    result = student(q, k, v, mask, return_weights=True)
    fits = isinstance(result, tuple | list) and len(result) == 2
    what = "with return_weights=True the result is not a pair"
    expect.true(fits, what, expect.describe(result), "(context, weights)")
    context, weights = result
    expect.shape(weights, (2, 3, 5, 7), axes="B, H, T_q, T_k")
    expect.finite(weights, f"{when} the weights are not finite")
    hidden = (~mask).expand_as(weights)
    largest = weights[hidden].abs().max().item()
    what = f"{when} a forbidden key gets some weight"
    expect.true(largest == 0, what, f"a weight of {largest:.4g}", "0 where the mask is False")
    sums, wanted = weights.sum(-1), mask.any(-1).expand(2, 3, 5).to(F64)
    expect.close(sums, wanted, f"{when} the rows should sum to 1 (to 0 if nothing may be seen)")
    return context


@check
def leaks(student, draw):
    """Finds who looks ahead, one step or many, from one position or all, through zeros too."""
    x = draw.normal(6, 3)
    cases = [("C", x, 1), ("A", x, 5), ("A", x, 2), ("F", x, 3), ("B", x, 2), ("E", x, 3)]
    cases += [("G", x, 0), ("A", x, 0), ("D", x, 5), ("B", x, 4), ("D", x, 0)]
    # In these the future is 0 or constant: replacing it by that would change nothing.
    zeros, ones = x.clone(), x.clone()
    zeros[3:], ones[3:] = 0.0, 1.0
    cases += [("B", zeros, 2), ("D", zeros, 2), ("A", zeros, 2), ("B", ones, 2), ("E", ones, 2)]
    # Enough drawn cases that nobody guesses all the answers.
    cases += [(draw.choice("ABCDEFG"), draw.normal(6, 3), draw.choice(range(6))) for _ in range(20)]
    for name, sequence, t in cases:
        expected = name in "BCDFG" and t < 5
        said = student(name, sequence, t)
        expect.true(type(said) is bool, "the result is not a bool", expect.describe(said), "a bool")
        what = (
            f"layer {name} looks beyond position {t}, and the test does not notice"
            if expected
            else f"layer {name} does not look beyond position {t}, and is accused"
        )
        expect.equal(said, expected, what)


@check
def sliding_window_attention(student, draw):
    """Equal to dense attention under a local mask, at sizes where that one cannot exist."""
    for T, window, lead in ((8, 2, (2, 3)), (8, 0, ()), (5, 7, (2,)), (9, 1, ())):
        q, k = draw.normal(*lead, T, 4, scale=2.0), draw.normal(*lead, T, 4)
        v = draw.normal(*lead, T, 6)
        band = _loop(T, T, lambda i, j, w=window: abs(i - j) <= w)
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=band)
        context = student(draw.strided(q), draw.strided(k), draw.strided(v), window)
        expect.shape(context, (*lead, T, 6), axes="..., T, d_v")
        expect.dtype(context, F64)
        size = f"T={T} and window={window}"
        expect.close(context, expected, f"with {size} it differs from dense attention with a mask")

    T = 1_000_000  # a dense matrix of this length takes 8 terabytes
    q, k, v = draw.normal(T, 1), draw.normal(T, 1), draw.normal(T, 1)
    context = student(q, k, v, 1)
    expect.shape(context, (T, 1), axes="T, d_v")
    expected = F.scaled_dot_product_attention(q[500:501], k[499:502], v[499:502])
    expect.close(context[500:501], expected, "in a sequence of a million a context is wrong")

    def reference(q, k, v, window):
        band = _loop(7, 7, lambda i, j: abs(i - j) <= window)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=band)

    q, k, v = draw.normal(2, 7, 4), draw.normal(2, 7, 4), draw.normal(2, 7, 6)
    expect.gradients(student, reference, q, k, v, 2, cotangent=draw.normal(2, 7, 6))
