"""Checks of lesson 03. The oracles are loops over numbers and PyTorch's bidirectional GRU."""

import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from autograder.checking import counterexamples, expect
from autograder.checking.registry import check

F64 = torch.float64


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _score(query, key, W_q, W_k, v):
    """v · tanh(W_q query + W_k key) for one query and one key, number by number."""
    total = []
    for row_q, row_k, out in zip(W_q.tolist(), W_k.tolist(), v.tolist(), strict=True):
        seen = [w * number for w, number in zip(row_q, query, strict=True)]
        seen += [w * number for w, number in zip(row_k, key, strict=True)]
        total.append(out * math.tanh(math.fsum(seen)))
    return math.fsum(total)


def _scores(q, k, W_q, W_k, v):
    """All scores of a batch by three loops."""
    return _tensor(
        [
            [[_score(query, key, W_q, W_k, v) for key in keys] for query in queries]
            for queries, keys in zip(q.tolist(), k.tolist(), strict=True)
        ]
    )


def _shares(scores, lengths):
    """Softmax of every row over its first ``length`` entries, zeros after."""
    result = torch.zeros_like(scores)
    for row, length in enumerate(lengths.tolist()):
        for query, numbers in enumerate(scores[row].tolist()):
            powers = [math.exp(number - max(numbers[:length])) for number in numbers[:length]]
            shares = [power / math.fsum(powers) for power in powers]
            result[row, query, :length] = _tensor(shares)
    return result


def _gru_weights(draw, d_x, d):
    return {
        "W_x": draw.normal(3 * d, d_x),
        "W_h": draw.normal(3 * d, d),
        "b_x": draw.normal(3 * d),
        "b_h": draw.normal(3 * d),
    }


def _bidirectional(x, lengths, forward, backward):
    """PyTorch's bidirectional GRU with these weights, on sequences packed without padding."""
    gru = nn.GRU(
        x.shape[2], len(forward["b_x"]) // 3, batch_first=True, bidirectional=True, dtype=F64
    )
    values = [*forward.values(), *backward.values()]
    with torch.no_grad():
        for parameter, value in zip(gru.parameters(), values, strict=True):
            parameter.copy_(value)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(gru(packed)[0], batch_first=True)
    return states


@check(
    without={
        "float32": "after the true end anything is right: the check compares the true tokens",
        "gradients": "after the true end anything is right: the check compares the true tokens",
    },
    rests_on=(
        "the state of the forward GRU, then that of the backward GRU",
        "the GRU that reads from the last true token to the first",
        "embedded tokens, with anything where the padding is",
        "After the true end the numbers mean nothing.",
    ),
)
def bidirectional_annotations(student, draw):
    """Against nn.GRU(bidirectional=True) on packed sequences."""
    x, lengths = draw.normal(3, 5, 2), torch.tensor([3, 5, 1])
    forward, backward = _gru_weights(draw, 2, 6), _gru_weights(draw, 2, 6)
    expected = _bidirectional(x, lengths, forward, backward).detach()

    annotations = student(draw.strided(x), lengths, forward, backward)
    expect.shape(annotations, (3, 5, 12), axes="B, T, 2d")
    expect.dtype(annotations, F64)
    inside = (torch.arange(5) < lengths[:, None])[:, :, None]  # after the true end all is right
    annotations = torch.where(inside, annotations, expected)
    what = "the first half differs from a forward GRU"
    expect.close(annotations[:, :, :6], expected[:, :, :6], what)
    what = "the second half differs from a backward GRU from the last true token"
    expect.close(annotations[:, :, 6:], expected[:, :, 6:], what)
    other = torch.where(inside, x, draw.normal(3, 5, 2, scale=900.0))
    changed = torch.where(inside, student(other, lengths, forward, backward), expected)
    what = "other numbers after the true end change the annotations of true tokens"
    expect.close(changed, expected, what)
    for rows, steps in ((slice(1, 2), 5), (slice(0, 2), 1)):
        some, ends = x[rows, :steps], lengths[rows].clamp(max=steps)
        wanted = _bidirectional(some, ends, forward, backward).detach()
        with expect.care():
            what = f"with B={len(some)} and T={steps} the annotations are wrong"
            expect.close(student(some, ends, forward, backward), wanted, what)
    with expect.care():
        narrow = [{name: w.float() for name, w in one.items()} for one in (forward, backward)]
        single = student(x.float(), lengths, *narrow)
        expect.dtype(single, torch.float32)
        single = torch.where(inside, single, expected.float())
        expect.close(single, expected.float(), "in float32 the annotations are wrong", rtol=1e-3)
    with expect.care():
        _differentiates_annotations(student, draw, x, lengths, forward, backward)


def _differentiates_annotations(student, draw, x, lengths, forward, backward):
    inside = (torch.arange(5) < lengths[:, None])[:, :, None]
    cotangent = draw.normal(3, 5, 12) * inside
    (gradient,) = student.gradients(x, lengths, forward, backward, cotangent=cotangent)[:1]
    leaf = x.clone().requires_grad_()
    loss = (_bidirectional(leaf, lengths, forward, backward) * cotangent).sum()
    expect.true(gradient is not None, "no gradient flows back to x", "none", "a gradient")
    expect.close(gradient, torch.autograd.grad(loss, leaf)[0], "the gradient of x is wrong")


@check(
    rests_on=(
        "Score all queries against all keys, without a loop.",
        "v · tanh(W_q q_i + W_k k_j) for every pair",
        "decoder states; one at a time when decoding",
        "makes one number of the hidden layer",
    )
)
def additive_scores(student, draw):
    """v · tanh(W_q q + W_k k) for all pairs, first with equal sizes, then with all different."""
    # d_q = d_k = 2 and d_attention = 1, and the tanh of log 3 is 4/5.
    W_q, W_k, v = _tensor([[1.0, 0.0]]), _tensor([[0.0, 1.0]]), _tensor([10.0])
    q = _tensor([[[math.log(3), 7.0], [0.0, -7.0]]])
    k = _tensor([[[5.0, 0.0], [-5.0, math.log(3)], [2.0, -math.log(3)]]])
    scores = student(q, k, W_q, W_k, v)
    expect.shape(scores, (1, 2, 3), axes="B, T_q, T_k")
    expect.dtype(scores, F64)
    expected = _tensor([[[8.0, 10 * 40 / 41, 0.0], [0.0, 8.0, -8.0]]])
    expect.close(scores, expected, "two queries and three keys worked by hand are scored wrongly")

    q, k = draw.normal(2, 5, 3), draw.normal(2, 7, 8)
    weights = draw.normal(6, 3), draw.normal(6, 8), draw.normal(6, scale=3.0)
    scores = student(draw.strided(q), draw.strided(k), *map(draw.strided, weights))
    expect.shape(scores, (2, 5, 7), axes="B, T_q, T_k")
    bound = 1.00001 * weights[2].abs().sum()
    inside = bool((scores.abs() <= bound).all())
    expect.true(inside, "a score is larger than the sum of all |v|, but tanh is at most 1")
    expect.close(scores, _scores(q, k, *weights), "the scores differ from loops over all pairs")
    _scores_of(student, q[:, :1], k, weights, "with T_q=1 and T_k=7")
    with expect.care():
        _scores_of(student, q, k[:, :1], weights, "with T_q=5 and T_k=1")
    with expect.care():
        what = "with queries and keys in the hundreds"
        _scores_of(student, 100 * q, 100 * k, weights, what)


def _scores_of(student, q, k, weights, when):
    scores = student(q, k, *weights)
    expect.shape(scores, (len(q), q.shape[1], k.shape[1]), axes="B, T_q, T_k")
    expect.close(scores, _scores(q, k, *weights), f"{when} the scores are wrong")


@check(
    rests_on=(
        "Share each query's weight among the true keys; padding gets exactly 0.",
        "of any size: ±1000 is fine",
        "the true numbers of keys, at least 1",
        "rows sum to 1",
    )
)
def masked_softmax(student, draw):
    """Rows over the true keys; padding gets exactly 0."""
    rows = [[0.0, math.log(3), 9.0, 8.0], [5.0, 5.0, 1.0, 7.0], [math.log(4), 0.0, -3.0, 2.0]]
    by_hand = student(_tensor([rows]), torch.tensor([2]))
    expect.shape(by_hand, (1, 3, 4), axes="B, T_q, T_k")
    expect.dtype(by_hand, F64)
    what = "for scores 0, log 3, 9 and 8, of which two are true, the weights are wrong"
    expected = _tensor([[[0.25, 0.75, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.8, 0.2, 0.0, 0.0]]])
    expect.close(by_hand[:, :1], expected[:, :1], what)
    what = "of three queries with four keys, of which two are true, the later ones are wrong"
    expect.close(by_hand, expected, what)

    scores, lengths = draw.normal(4, 5, 7, scale=3.0), torch.tensor([3, 7, 1, 6])
    weights = student(draw.strided(scores), lengths)
    expect.shape(weights, (4, 5, 7), axes="B, T_q, T_k")
    padding = (torch.arange(7) >= lengths[:, None])[:, None].expand(4, 5, 7)
    most = weights[padding].abs().max()
    expect.true(most == 0, "padding gets some weight", f"{most:.3g}", "exactly 0")
    expect.rows_sum_to_one(weights, 2, "the weights of a query do not sum to 1")
    expect.close(weights, _shares(scores, lengths), "the weights differ from loops over true keys")
    louder = torch.where(padding, scores + 2000.0, scores - 1000.0)
    what = "with padding scored +1000 and tokens -1000 the weights change"
    expect.close(student(louder, lengths), weights, what, atol=1e-8)
    apart = 1000.0 * (torch.arange(7) % 3 - 1) + scores  # -1000, 0 and 1000 in one row
    what = "with scores of -1000, 0 and 1000 in one row the weights are wrong"
    expect.close(student(apart, lengths), _shares(apart, lengths), what)
    for B, T_q, T_k in ((1, 5, 7), (4, 1, 7), (4, 5, 1)):
        some, ends = scores[:B, :T_q, :T_k], lengths[:B].clamp(max=T_k)
        with expect.care():
            weights = student(some, ends)
            expect.shape(weights, (B, T_q, T_k), axes="B, T_q, T_k")
            what = f"with B={B}, T_q={T_q} and T_k={T_k} the weights are wrong"
            expect.close(weights, _shares(some, ends), what)


def _padded_scores(scores, lengths):
    fits = isinstance(scores, torch.Tensor) and scores.dim() == 3 and scores.numel() > 0
    what = "scores are a tensor of floating-point numbers, (B, T_q, T_k)"
    fits = fits and scores.is_floating_point()
    expect.true(fits, what, expect.describe(scores), "a tensor (B, T_q, T_k)")
    expect.finite(scores, "a score is not a finite number")
    what = "lengths are a tensor of whole numbers, (B,)"
    fits = isinstance(lengths, torch.Tensor) and lengths.dtype == torch.int64
    fits = fits and lengths.shape == scores.shape[:1]
    expect.true(fits, what, expect.describe(lengths), f"a tensor ({scores.shape[0]},) of int64")
    inside = bool(((lengths >= 1) & (lengths <= scores.shape[2])).all())
    most = scores.shape[2]
    expect.true(
        inside, "every length lies between 1 and T_k", lengths.tolist(), f"from 1 to {most}"
    )


@check(
    without=counterexamples.WITHOUT | {"care": "an input is asked for, and no code that takes one"},
    rests_on=(
        "Find scores and lengths for which it goes wrong.",
        "finite floating-point numbers",
        "whole numbers from 1 to T_k",
    ),
)
def break_masked_softmax(student, draw):
    """An input on which divides_again_after_the_mask is wrong."""
    counterexamples.judge(
        student, "masked_softmax", "divides_again_after_the_mask", allowed=_padded_scores
    )


@check(
    rests_on=(
        "A layer that owns its three matrices.",
        "It returns the context and the weights",
        "Three nn.Linear layers without bias",
        "Scores may be of any size: the weights stay finite.",
        "So let it be learned",
    )
)
def AdditiveAttention(student, draw):  # noqa: N802, the name of the exercise
    """A module with three matrices: context and weights against loops, with weights loaded."""
    module = student.build(3, 8, 6)
    q, k, values = draw.normal(2, 5, 3), draw.normal(2, 7, 8), draw.normal(2, 7, 9, scale=4.0)
    W_q, W_k, v = draw.normal(6, 3), draw.normal(6, 8), draw.normal(6, scale=2.0)
    module.load({"W_q.weight": W_q, "W_k.weight": W_k, "v.weight": v[None]})
    lengths = torch.tensor([4, 7])
    result = module(draw.strided(q), draw.strided(k), draw.strided(values), lengths)
    context, weights = expect.parts(result, "context", "weights")
    expect.shape(context, (2, 5, 9), axes="B, T_q, d_v")
    expect.shape(weights, (2, 5, 7), axes="B, T_q, T_k")
    expect.dtype(context, F64)
    most = weights[0, :, 4:].abs().max()
    expect.true(most == 0, "padding gets some weight", f"{most:.3g}", "exactly 0")
    expect.rows_sum_to_one(weights, 2, "the weights of a query do not sum to 1")
    expected = _shares(_scores(q, k, W_q, W_k, v), lengths)
    expect.close(weights, expected, "the weights differ from loops over all pairs")
    what = "the context is not the weighted average of the values"
    expect.close(context, _mixed(expected, values), what)

    _scores_of_any_size(student, q, k, values, lengths, (W_q, W_k, v))
    for B, T_q, T_k, d_v in ((1, 5, 7, 9), (2, 1, 7, 9), (2, 5, 1, 9), (2, 5, 7, 1)):
        some = q[:B, :T_q], k[:B, :T_k], 100 * values[:B, :T_k, :d_v], lengths[:B].clamp(max=T_k)
        with expect.care():
            context, weights = expect.parts(module(*some), "context", "weights")
            expect.shape(context, (B, T_q, d_v), axes="B, T_q, d_v")
            shares = _shares(_scores(some[0], some[1], W_q, W_k, v), some[3])
            what = f"with B={B}, T_q={T_q}, T_k={T_k}, d_v={d_v} the weights are wrong"
            expect.close(weights, shares, what)
            what = f"with B={B}, T_q={T_q}, T_k={T_k}, d_v={d_v} the context is wrong"
            expect.close(context, _mixed(shares, some[2]), what)


def _mixed(weights, values):
    """The average of the values with these weights, in loops."""
    columns = values.transpose(1, 2).tolist()
    return _tensor(
        [
            [
                [math.fsum(w * x for w, x in zip(row, column, strict=True)) for column in batch]
                for row in rows
            ]
            for rows, batch in zip(weights.tolist(), columns, strict=True)
        ]
    )


def _scores_of_any_size(student, q, k, values, lengths, weights):
    """With v = 0 all scores are equal; with a large v, exp of them alone would overflow."""
    W_q, W_k, v = weights
    for factor, what in (
        (0, "with v = 0 all scores are equal, and so should be the weights of true keys"),
        (500, "with scores in the thousands the weights are wrong"),
    ):
        module = student.build(3, 8, 6)
        module.load({"W_q.weight": W_q, "W_k.weight": W_k, "v.weight": factor * v[None]})
        shares = expect.parts(module(q, k, values, lengths), "context", "weights")[1]
        expect.finite(shares, what)
        expect.close(shares, _shares(_scores(q, k, W_q, W_k, factor * v), lengths), what)


def _decoder_weights(draw, d, c, vocab_size):
    return {
        "embedding": draw.normal(vocab_size, 3),
        "W_x": draw.normal(3 * d, 3 + c),
        "W_h": draw.normal(3 * d, d),
        "b_x": draw.normal(3 * d),
        "b_h": draw.normal(3 * d),
        "W_out": draw.normal(vocab_size, d + c),
        "b_out": draw.normal(vocab_size),
        "W_q": draw.normal(5, d),
        "W_k": draw.normal(5, c),
        "v": draw.normal(5, scale=3.0),
    }


@check(
    rests_on=(
        "attend first, then read, then score",
        "the query is the state that comes in",
        "keys and values",
        "stay finite however large the scores are",
        "logits (B, vocab_size), the new state (B, d), attention weights (B, T_k)",
    )
)
def attention_decoder_step(student, draw):
    """One step against loops for the attention and PyTorch's GRU cell for the decoder."""
    weights, lengths = _decoder_weights(draw, 6, 7, 9), torch.tensor([3, 5])
    tokens, state = torch.tensor([2, 7]), draw.normal(2, 6, scale=2.0)
    annotations = draw.normal(2, 5, 7, scale=2.0)
    given = tokens, draw.strided(state), draw.strided(annotations), lengths, weights
    _steps(student, *given, what="")

    loud = tokens, 300 * state, 300 * annotations, lengths, {**weights, "v": 500 * weights["v"]}
    _steps(student, *loud, what="with scores in the thousands ")
    # The sizes that the attention takes are the same here, so that only the numbers tell.
    alike = _decoder_weights(draw, 6, 6, 9)
    _steps(student, tokens, state, draw.normal(2, 5, 6), lengths, alike, what="with c=d ")
    with expect.care():
        one = tokens[:1], state[:1], annotations[:1], lengths[:1], weights
        _steps(student, *one, what="with B=1 ")
    with expect.care():
        one = tokens, state, annotations[:, :1], torch.tensor([1, 1]), weights
        _steps(student, *one, what="with T_k=1 ")


def _steps(student, tokens, state, annotations, lengths, weights, what):
    """One call of the answer, compared piece by piece."""
    result = student(tokens, state, annotations, lengths, weights)
    logits, new, attention = expect.parts(result, "logits", "new state", "attention weights")
    (B, T_k, _), d = annotations.shape, state.shape[1]
    expect.shape(attention, (B, T_k), axes="B, T_k")
    expect.shape(new, (B, d), axes="B, d")
    expect.shape(logits, (B, len(weights["b_out"])), axes="B, vocab_size")
    expect.dtype(logits, F64)
    padding = attention[torch.arange(T_k) >= lengths[:, None]]
    if len(padding):
        most = padding.abs().max()
        expect.true(most == 0, f"{what}padding gets some weight", f"{most:.3g}", "exactly 0")
    expect.rows_sum_to_one(attention, 1, f"{what}the attention weights do not sum to 1")

    scores = _scores(state[:, None], annotations, *(weights[name] for name in ("W_q", "W_k", "v")))
    expected = _shares(scores, lengths)
    said = f"{what}the attention weights are wrong: they are the softmax of the scores"
    expect.close(attention, expected[:, 0], said + ", with the state before the step as query")
    context = _mixed(expected, annotations)[:, 0]
    read = torch.cat([weights["embedding"][tokens], context], 1)
    gates = (weights[name] for name in ("W_x", "W_h", "b_x", "b_h"))
    after = torch.gru_cell(read, state, *gates)
    expect.close(new, after, f"{what}the new state differs from nn.GRUCell on letter and context")
    features = torch.cat([after, context], 1)
    expected = weights["b_out"] + torch.einsum("bf,vf->bv", features, weights["W_out"])
    expect.close(logits, expected, f"{what}the logits are not made of the new state and context")
