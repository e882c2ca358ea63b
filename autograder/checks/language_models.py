"""Checks of lesson 15. Oracles: loops, F.cross_entropy, F.conv1d, PyTorch's layers and kernel."""

import math

import torch
from torch.nn import functional as F

from autograder.checking.toolbox import expect, layer_oracles
from autograder.checking.toolbox.inputs import LONG
from autograder.checking.toolbox.registry import check

F64 = torch.float64
SIZES = (18, 3, 20)  # d_model, n_heads, d_ff
PAD, EOS, SEP = 0, 2, 3
NEAR = {"rtol": 1e-3, "atol": 1e-4}  # how far two layers in float32 are from float64


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


def _ids(*rows):
    return torch.tensor(rows)


@check(
    rests_on=(
        "Average -log p(next token) over all tokens that were to be predicted",
        "The first token is not predicted by anything, and PAD never counts",
        "What does not count may have an infinite loss",
        "If no token counts, the loss is 0",
        "True = a token that is to be learned",
    ),
)
def language_model_loss(student, draw):
    """By hand, then F.cross_entropy on what counts: padding, counted tokens, nothing at all."""
    logits = torch.zeros(1, 4, 8, dtype=F64)
    logits[0, 1, 5] = 100.0
    tokens = _ids([7, 6, 5, 0])
    expected = _tensor(math.log(8) / 2)[0]
    what = "for 7 6 5, with an even guess for 6 and certainty for 5, it should be log 8 / 2"
    expect.close(student(logits, tokens), expected, what)
    for B, T, V in ((2, 5, 7), (3, 6, 11), (5, 3, 6)):
        _same_loss(student, draw, B, T, V)
    logits = torch.zeros(1, 2, 4, dtype=F64)
    logits[0, 0, 1] = 1000.0
    what = "where the next token's score is 1000 below the largest it should be 1000"
    expect.close(student(logits, _ids([3, 2])), _tensor(1000.0)[0], what)
    _infinite_where_nothing_counts(student, draw)
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    logits, tokens = draw.normal(2, 3, 7), draw.integers(1, 7, 2, 3)
    zero = _tensor(0.0)[0]
    expect.close(student(logits, tokens, nothing), zero, "if nothing counts it should be 0")
    logits, tokens = draw.normal(2, 1, 7), draw.integers(1, 7, 2, 1)
    with expect.care():
        what = "with one token nothing is predicted: it should be 0"
        expect.close(student(logits, tokens), zero, what)
    for B, T, V in ((1, 2, 9), (3, 4, 6)):
        with expect.care():
            _same_loss(student, draw, B, T, V, larger=300)


def _same_loss(student, draw, B, T, V, larger=0):
    """Without and with padding and `counted`; three scores are ``larger`` by so much."""
    logits = draw.normal(B, T, V, scale=2.0)
    logits[0, 0, :3] += larger
    tokens = draw.integers(1, V, B, T)
    where = f"with B={B}, T={T} and V={V}"
    expected = _cross_entropy(logits, tokens)
    got = student(draw.strided(logits), draw.strided(tokens))
    expect.close(got, expected, f"{where} and no padding it differs from F.cross_entropy")
    tokens[B // 2 :, (T + 1) // 2 :] = PAD
    expected = _cross_entropy(logits, tokens)
    what = f"{where} and padding it differs from F.cross_entropy"
    expect.close(student(logits, tokens), expected, what)
    counted = draw.uniform(B, T) < 0.5
    counted[0, 1], counted[:, 0] = True, True
    counted[-1, -1] = True  # where there is padding: it still does not count
    expected = _cross_entropy(logits, tokens, counted)
    what = f"{where}, padding and counted it differs from F.cross_entropy"
    expect.close(student(logits, tokens, draw.strided(counted)), expected, what)


def _infinite_where_nothing_counts(student, draw):
    """The next token has a score of -inf: PAD, and one that is not counted."""
    logits, tokens = draw.normal(2, 5, 7), draw.integers(1, 7, 2, 5)
    tokens[1, 3:] = PAD
    counted = torch.ones(2, 5, dtype=torch.bool)
    counted[0, 2] = False
    logits[1, 2:4, PAD] = logits[0, 1, tokens[0, 2]] = -math.inf
    expected = _cross_entropy(logits, tokens, counted)
    what = "with a score of -inf for tokens that do not count it differs from F.cross_entropy"
    expect.close(student(logits, tokens, counted), expected, what)


def _cross_entropy(logits, tokens, counted=None):
    """PyTorch's, over a list of single predictions."""
    scores, targets = [], []
    for b, row in enumerate(tokens.tolist()):
        for t in range(1, len(row)):
            if row[t] != PAD and (counted is None or counted[b, t]):
                scores.append(logits[b, t - 1])
                targets.append(row[t])
    if not targets:
        return logits.new_zeros(())
    return F.cross_entropy(torch.stack(scores), torch.tensor(targets))


def _decoder_weights(draw, vocab_size, n_layers):
    values = {"embedding.weight": draw.normal(vocab_size, SIZES[0])}
    for number in range(n_layers):
        values |= layer_oracles.layer(draw, SIZES, f"stack.layers.{number}.")
    values |= layer_oracles.norm(draw, "stack.norm", SIZES[0])
    values |= {"generator.weight": draw.normal(vocab_size, SIZES[0])}
    return {name: value.float() for name, value in values.items()}


def _predicted(values, tokens, only_norm=False):
    """What PyTorch's layers say with these weights, in float64; positions number by number."""
    values = {name: value.double() for name, value in values.items()}
    T, d_model = tokens.shape[1], SIZES[0]
    x = math.sqrt(d_model) * values["embedding.weight"][tokens]
    for t in range(T):
        for i in range(0, d_model, 2):
            angle = t / 10000 ** (i / d_model)
            x[:, t, i : i + 2] += _tensor(math.sin(angle), math.cos(angle))
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    for number in range(0 if only_norm else sum(name.endswith("W_q.bias") for name in values)):
        made = layer_oracles.pytorch_layer(values, SIZES, f"stack.layers.{number}.", pre_norm=True)
        x = made(x, src_mask=future)
    return (layer_oracles.normed(x, values, "stack.norm") @ values["generator.weight"].T).float()


@check(
    without={
        "large": "only ids go in; in one model the weights are large",
        "float32": "all weights are float32: positions in this precision are right",
    },
    asks={
        "learning": "a gradient must reach every weight",
    },
    rests_on=(
        "Score what follows each token: (B, T) ids -> (B, T, vocab_size)",
        "√d_model times the rows of the table, plus sinusoidal positions, which count from 0",
        "which with a causal mask does all that a decoder needs",
        "probability of dropout in the layers in training",
        "build a decoder-only model, train it and let it write",
    ),
)
def DecoderOnly(student, draw):  # noqa: N802, the name of the exercise
    """Nobody sees the future; equal to PyTorch's layers under a causal mask; dropout.

    No PAD among the tokens: what is said of padding, or behind it, does not matter.
    """
    values = _decoder_weights(draw, 11, 2)
    module = student.build(11, *SIZES, 2, 0.0)
    module.load(values)
    module.eval()
    tokens = draw.integers(1, 11, 2, 5)
    tokens[0, 0] = 10
    logits = module(tokens)
    expect.shape(logits, (2, 5, 11), axes="B, T, vocab_size")
    expect.dtype(logits, torch.float32)
    with expect.care("again"):
        what = "behind eval() two calls with the same tokens give different scores"
        expect.close(module(tokens), logits, what)
    other = tokens.clone()
    other[:, 3:] = tokens[:, 3:] % 10 + 1
    what = "other tokens at positions 3 and 4 change the scores at positions 0 to 2"
    expect.close(module(other)[:, :3], logits[:, :3], what, **NEAR)
    what = "the scores differ from PyTorch's layers"
    expect.close(logits, _predicted(values, tokens), what, **NEAR)
    _same_scores(module, draw, values, ((3, 7), (5, 2), (1, LONG)))
    with expect.care():
        _same_scores(module, draw, values, ((1, 1), (1, 6)))
    values = _decoder_weights(draw, 7, 1)
    module = student.build(7, *SIZES, 1, dropout=1.0)
    module.load(values)
    tokens = draw.integers(1, 7, 2, 3)
    module.train()
    what = "in training with dropout=1.0 the layers add nothing, and the embedding is left"
    expect.close(module(tokens), _predicted(values, tokens, only_norm=True), what, **NEAR)
    module.eval()
    what = "with one layer, after eval(), the scores differ from PyTorch's layers"
    expect.close(module(tokens), _predicted(values, tokens), what, **NEAR)
    values["embedding.weight"] *= 200
    with expect.care():
        module = student.build(7, *SIZES, 1, 0.0)
        module.load(values)
        module.eval()
        what = "with an embedding of large numbers the scores differ from PyTorch's layers"
        expect.close(module(tokens), _predicted(values, tokens), what, **NEAR)


def _same_scores(module, draw, values, sizes):
    """Equal to PyTorch's layers for these numbers of rows and positions."""
    for B, T in sizes:
        tokens = draw.integers(1, 11, B, T)
        what = f"with B={B} and T={T} the scores differ from PyTorch's layers"
        expect.close(module(draw.strided(tokens)), _predicted(values, tokens), what, **NEAR)


@check(
    rests_on=(
        "a position sees itself and what its block has before it",
        "how many positions a block has; the last block may have fewer",
        "never T · T: half a million positions are no trouble",
    )
)
def local_block_attention(student, draw):
    """By hand; PyTorch's kernel under a mask of blocks, the last one short; a million positions."""
    v = _tensor(1, 3, 5, 7, 9).view(5, 1)
    zeros = torch.zeros(5, 3, dtype=F64)
    got = student(zeros, zeros, v, 2)
    expect.shape(got, (5, 1), axes="T, d_v")
    what = "for equal scores, values 1 3 5 7 9 and block=2 it should be 1 2 5 6 9"
    expect.close(got, _tensor(1, 2, 5, 6, 9).view(5, 1), what)
    for shape, d_v, block in (
        ((2, 3, 7, 5), 6, 3),
        ((3, 2, 6, 5), 7, 2),
        ((2, 5, 3), 7, 9),
        ((2, 9, 5), 3, 3),
    ):
        _same_blocks(student, draw, shape, d_v, block)
    blocks = [draw.normal(2**14, 32, 1).float() for _ in range(3)]
    got = student(*(one.view(-1, 1) for one in blocks), 32)  # T · T scores would take a terabyte
    expected = F.scaled_dot_product_attention(*blocks, is_causal=True).view(-1, 1)
    expect.close(got, expected, "with half a million positions and block=32 it is wrong")
    for shape, d_v, block in (
        ((2, 6, 4), 3, 4),
        ((5, 3), 2, 1),
        ((2, 1, 8, 1), 3, 5),
        ((1, 2, 1, 3), 1, 3),
    ):
        with expect.care():
            _same_blocks(student, draw, shape, d_v, block, larger=200)
    with expect.care():
        q, k = _far_below(7, 7)
        v, what = draw.normal(7, 2), "where all scores are below -30000 it is wrong: hidden is -inf"
        expect.close(student(q, k, v, 3), _in_blocks(q, k, v, 3), what)


def _far_below(T_q, T_k):
    """Queries and keys of one number, whose scores are -30208, -30209 and so on: whole numbers."""
    k = -118 - torch.arange(T_k, dtype=F64) / 256
    return torch.full((T_q, 1), 256.0, dtype=F64), k.view(T_k, 1)


def _same_blocks(student, draw, shape, d_v, block, larger=1):
    """Equal to attention under a mask of blocks; the last query is ``larger`` by this factor."""
    q, k, v = draw.normal(*shape), draw.normal(*shape), draw.normal(*shape[:-1], d_v)
    q[..., -1, :] *= larger
    what = f"with q of shape {shape} and block={block} it differs from dense attention under "
    what += "a mask of blocks"
    got = student(draw.strided(q), draw.strided(k), draw.strided(v), block)
    expect.close(got, _in_blocks(q, k, v, block), what)


def _in_blocks(q, k, v, block):
    T = q.shape[-2]
    mask = [[s // block == t // block and s <= t for s in range(T)] for t in range(T)]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(mask))


@check(
    rests_on=(
        "key j: positions j · stride … (j + 1) · stride - 1",
        "zeros where there is nothing to see yet",
        "A position sees a key if none of the positions that it stands for comes later",
    )
)
def memory_compressed_attention(student, draw):
    """By hand; then a loop over positions, each of which sees whole stretches of its past."""
    zeros = torch.zeros(5, 3, dtype=F64)
    v = _tensor(1, 3).view(2, 1)
    got = student(zeros, zeros[:2], v, 2)
    expect.shape(got, (5, 1), axes="T, d_v")
    what = "before the first stretch is over there is nothing to see, and it should be 0"
    expect.close(got[:1], torch.zeros(1, 1, dtype=F64), what)
    what = "for equal scores, values 1 3 and stride=2 it should be 0 1 1 2 2"
    expect.close(got, _tensor(0, 1, 1, 2, 2).view(5, 1), what)
    for shape, d_v, stride in (
        ((2, 3, 8, 5), 6, 3),
        ((3, 2, 7, 5), 4, 2),
        ((5, 9, 3), 2, 4),
        ((2, 11, 3), 5, 3),
    ):
        _same_past(student, draw, shape, d_v, stride)
    for shape, d_v, stride in (
        ((2, 9, 4), 5, 2),
        ((6, 2), 3, 1),
        ((1, 2, 5, 1), 1, 5),
        ((2, 3, 5), 6, 7),  # shorter than a stretch: there is no key
    ):
        with expect.care():
            _same_past(student, draw, shape, d_v, stride, larger=200)
    with expect.care():
        q, k = _far_below(7, 3)
        v, what = draw.normal(3, 4), "where all scores are below -30000 it is wrong: hidden is -inf"
        expect.close(student(q, k, v, 2), _of_the_past(q, k, v, 2), what)


def _same_past(student, draw, shape, d_v, stride, larger=1):
    """Equal to a loop over positions; the last query is ``larger`` by this factor."""
    n = shape[-2] // stride
    q, k = draw.normal(*shape), draw.normal(*shape[:-2], n, shape[-1])
    v = draw.normal(*shape[:-2], n, d_v)
    q[..., -1, :] *= larger
    what = f"with q of shape {shape} and stride={stride} it differs from a loop over positions"
    got = student(draw.strided(q), draw.strided(k), draw.strided(v), stride)
    expect.close(got, _of_the_past(q, k, v, stride), what)


def _of_the_past(q, k, v, stride):
    rows = []
    for t in range(q.shape[-2]):
        whole = (t + 1) // stride  # stretches that are over
        if not whole:
            rows.append(v.new_zeros(*v.shape[:-2], 1, v.shape[-1]))
            continue
        seen = k[..., :whole, :], v[..., :whole, :]
        rows.append(F.scaled_dot_product_attention(q[..., t : t + 1, :], *seen))
    return torch.cat(rows, dim=-2)


@check(
    rests_on=(
        "for the chosen ones the softmax of their scores, 0 for all others",
        "on a tie it does not matter who is chosen",
        "Where the k-th best score is a tie, k are chosen all the same",
        "k from 1 to E",
    )
)
def top_k_gate(student, draw):
    """By hand, then token by token; one expert, all experts, large scores."""
    gates = student(_tensor(0, math.log(3), math.log(9), -1).view(1, 4), 2)
    expect.shape(gates, (1, 4), axes="N, E")
    what = "for scores of 0, log 3, log 9 and -1 and k=2 the gates should be 0, 1/4, 3/4 and 0"
    expect.close(gates, _tensor(0, 0.25, 0.75, 0).view(1, 4), what)
    for N, E, k in ((7, 5, 2), (3, 6, 3), (5, 3, 1), (6, 2, 2)):
        _same_gates(student, draw, N, E, k)
    # Who wins a tie is free. In float32, since in float64 all would be asked for the same winner.
    tied = torch.tensor([[2.0, 3, 2, 1, 2], [0, 0, 0, 0, 0], [1, 1, 0, 5, 1]])
    gates = student(tied, 3)
    expect.shape(gates, (3, 5), axes="N, E")
    what = "where the third-best score is a tie, there are not 3 gates above 0 for each token"
    expect.close((gates > 0).sum(dim=1), torch.tensor([3, 3, 3]), what)
    what = "where the third-best score is a tie, the gates have wrong values"
    expect.close(gates.sort(dim=1).values, _gated(tied, 3).sort(dim=1).values, what)
    for N, E, k in ((4, 5, 3), (1, 5, 5), (2, 1, 1)):
        with expect.care():
            _same_gates(student, draw, N, E, k, larger=300)


def _same_gates(student, draw, N, E, k, larger=0):
    """Equal to a loop; the first token's scores are ``larger``, the last one's less by so much."""
    scores = draw.normal(N, E, scale=2.0)
    scores[0] += larger
    scores[-1] -= larger
    what = f"with N={N}, E={E} and k={k} it differs from a loop over the tokens"
    expect.close(student(draw.strided(scores), k), _gated(scores, k), what)


def _gated(scores, k):
    rows = []
    for row in scores:
        best = sorted(range(len(row)), key=lambda e: -row[e].item())[:k]
        exps = {e: torch.exp(row[e] - row[best[0]]) for e in best}
        total = sum(exps.values())
        rows.append(torch.stack([exps.get(e, 0 * row[e]) / total for e in range(len(row))]))
    return torch.stack(rows)


@check(
    without={"gradients": "gates are only counted; that of the scores is asked for below"},
    rests_on=(
        "E · the sum over the experts of share · mean probability",
        "An expert's share is the part of all choices that fell on it",
        "comes from the softmax of all scores of that token",
        "if the same k of them get all tokens and all of the probability, it is E / k",
        "Counts have no gradient, probabilities do",
    ),
)
def load_balance_loss(student, draw):
    """1 for an even spread, E if all goes to one; then counts in loops."""
    scores = torch.zeros(3, 3, dtype=F64)
    even = student(scores, torch.eye(3, dtype=F64))
    expect.close(even, _tensor(1.0)[0], "for three tokens, one at each of three experts, it is 1")
    one = _tensor(1, 0, 0).repeat(3, 1)
    what = "if all tokens choose expert 0, with a probability of 1, it is E = 3"
    expect.close(student(500 * one, one), _tensor(3.0)[0], what)
    for N, E, k in ((7, 5, 2), (6, 3, 1), (5, 6, 3)):
        _same_balance(student, draw, N, E, k)
    scores, gates = draw.normal(5, 3), _gated(draw.normal(5, 3), 2)
    leaf = scores.clone().requires_grad_()
    with torch.enable_grad():
        (expected,) = torch.autograd.grad(_balance(leaf, gates), leaf)
    got = student.gradients(scores, gates)[0]
    what = "no gradient flows back to the scores: the router would learn nothing"
    expect.true(got is not None, what, "no gradient", "one through the probabilities")
    # Integers are divided in float32, and what cancels out here keeps that error.
    expect.close(got, expected, "the gradient of the scores is wrong", atol=1e-6)
    for N, E, k in ((3, 2, 2), (1, 5, 2), (2, 1, 1)):
        with expect.care():
            _same_balance(student, draw, N, E, k, larger=300)


def _same_balance(student, draw, N, E, k, larger=0):
    """Equal to counts in loops; one score is ``larger`` by so much."""
    scores, gates = draw.normal(N, E, scale=1.5), _gated(draw.normal(N, E), k)
    scores[0, 0] += larger
    scores[:, -1] += 1
    what = f"with N={N}, E={E} and k={k} it differs from counts in loops"
    got = student(draw.strided(scores), draw.strided(gates))
    expect.close(got, _balance(scores, gates), what)


def _balance(scores, gates):
    N, E = scores.shape
    choices = [[(gates[n, e] > 0).item() for e in range(E)] for n in range(N)]
    total = sum(map(sum, choices))
    loss = scores.new_zeros(())
    for e in range(E):
        share = sum(row[e] for row in choices) / total
        chance = sum(torch.softmax(scores[n], 0)[e] for n in range(N)) / N
        loss = loss + share * chance
    return E * loss
