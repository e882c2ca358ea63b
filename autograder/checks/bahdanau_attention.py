"""Checks of lesson 03. The oracles are loops over numbers and PyTorch's bidirectional GRU."""

import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from autograder.checking import expect
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
    """Softmax of every row over its first ``length`` entries, zeros behind."""
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


def _bidirectional(x, lengths, ahead, back):
    """PyTorch's bidirectional GRU with these weights, on sequences packed without padding."""
    gru = nn.GRU(
        x.shape[2], len(ahead["b_x"]) // 3, batch_first=True, bidirectional=True, dtype=F64
    )
    values = [*ahead.values(), *back.values()]
    with torch.no_grad():
        for parameter, value in zip(gru.parameters(), values, strict=True):
            parameter.copy_(value)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(gru(packed)[0], batch_first=True)
    return states


@check
def bidirectional_annotations(student, draw):
    """Against nn.GRU(bidirectional=True) on packed sequences."""
    x, lengths = draw.normal(3, 5, 2), torch.tensor([3, 5, 1])
    ahead, back = _gru_weights(draw, 2, 4), _gru_weights(draw, 2, 4)
    expected = _bidirectional(x, lengths, ahead, back)

    annotations = student(draw.strided(x), lengths, ahead, back)
    expect.shape(annotations, (3, 5, 8), axes="B, T, 2d")
    expect.dtype(annotations, F64)
    inside = (torch.arange(5) < lengths[:, None])[:, :, None]  # behind the true end all is right
    expected = expected.detach()
    annotations = torch.where(inside, annotations, expected)
    what = "the first half differs from a reading ahead"
    expect.close(annotations[:, :, :4], expected[:, :, :4], what)
    what = "the second half differs from a reading back from the last true token"
    expect.close(annotations[:, :, 4:], expected[:, :, 4:], what)
    other = torch.where(inside, x, draw.normal(3, 5, 2, scale=9.0))
    changed = torch.where(inside, student(other, lengths, ahead, back), expected)
    what = "other numbers behind the true end change the annotations of true tokens"
    expect.close(changed, expected, what)

    cotangent = draw.normal(3, 5, 8) * inside
    (gradient,) = student.gradients(x, lengths, ahead, back, cotangent=cotangent)[:1]
    leaf = x.clone().requires_grad_()
    loss = (_bidirectional(leaf, lengths, ahead, back) * cotangent).sum()
    expect.true(gradient is not None, "no gradient flows back to x", "none", "a gradient")
    expect.close(gradient, torch.autograd.grad(loss, leaf)[0], "the gradient of x is wrong")


@check
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

    q, k = draw.normal(2, 5, 3), draw.normal(2, 7, 4)
    weights = draw.normal(6, 3), draw.normal(6, 4), draw.normal(6, scale=3.0)
    scores = student(draw.strided(q), draw.strided(k), *map(draw.strided, weights))
    expect.shape(scores, (2, 5, 7), axes="B, T_q, T_k")
    bound = weights[2].abs().sum() + 1e-9
    inside = bool((scores.abs() <= bound).all())
    expect.true(inside, "a score is larger than the sum of all |v|, but tanh is at most 1")
    expect.close(scores, _scores(q, k, *weights), "the scores differ from loops over all pairs")

    def reference(q, k, W_q, W_k, v):
        rows = torch.einsum("bqd,ad->bqa", q, W_q), torch.einsum("bkd,ad->bka", k, W_k)
        pairs = [torch.tanh(rows[0] + rows[1][:, j : j + 1]) for j in range(7)]
        return torch.einsum("kbqa,a->bqk", torch.stack(pairs), v)

    cotangent = draw.normal(2, 5, 7)
    expect.gradients(student, reference, q, k, *weights, cotangent=cotangent)


@check
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
    behind = (torch.arange(7) >= lengths[:, None])[:, None].expand(4, 5, 7)
    most = weights[behind].abs().max()
    expect.true(most == 0, "padding gets some weight", f"{most:.3g}", "exactly 0")
    expect.rows_sum_to_one(weights, 2, "the weights of a query do not sum to 1")
    expect.close(weights, _shares(scores, lengths), "the weights differ from loops over true keys")
    louder = torch.where(behind, scores + 2000.0, scores - 1000.0)
    what = "with padding scored +1000 and tokens -1000 the weights change"
    expect.close(student(louder, lengths), weights, what, atol=1e-8)

    def reference(scores, lengths):
        powers = torch.exp(scores) * (torch.arange(7) < lengths[:, None])[:, None]
        return powers / powers.sum(2, keepdim=True)

    expect.gradients(student, reference, scores, lengths, cotangent=draw.normal(4, 5, 7))


@check
def AdditiveAttention(student, draw):  # noqa: N802, the name of the exercise
    """A module with three matrices: context and weights against loops, with weights loaded."""
    module = student.build(3, 4, 6)
    q, k, values = draw.normal(2, 5, 3), draw.normal(2, 7, 4), draw.normal(2, 7, 3, scale=4.0)
    W_q, W_k, v = draw.normal(6, 3), draw.normal(6, 4), draw.normal(6, scale=2.0)
    module.load({"W_q.weight": W_q, "W_k.weight": W_k, "v.weight": v[None]})
    lengths = torch.tensor([4, 7])
    pair = module(draw.strided(q), draw.strided(k), draw.strided(values), lengths)
    shown = f"{len(pair)} results" if isinstance(pair, tuple) else "one result"
    right = isinstance(pair, tuple) and len(pair) == 2
    expect.true(right, "the layer should return two things", shown, "context and weights")
    context, weights = pair
    expect.shape(context, (2, 5, 3), axes="B, T_q, d_v")
    expect.shape(weights, (2, 5, 7), axes="B, T_q, T_k")
    expect.dtype(context, F64)
    most = weights[0, :, 4:].abs().max()
    expect.true(most == 0, "padding gets some weight", f"{most:.3g}", "exactly 0")
    expect.rows_sum_to_one(weights, 2, "the weights of a query do not sum to 1")
    expected = _shares(_scores(q, k, W_q, W_k, v), lengths)
    expect.close(weights, expected, "the weights differ from loops over all pairs")
    mixed = [
        [
            [math.fsum(w * value[i] for w, value in zip(row, rows, strict=True)) for i in range(3)]
            for row in shares
        ]
        for shares, rows in zip(expected.tolist(), values.tolist(), strict=True)
    ]
    expect.close(context, _tensor(mixed), "the context is not the weighted average of the values")
    module.load({"W_q.weight": W_q, "W_k.weight": W_k, "v.weight": 0 * v[None]})
    even = module(q, k, values, lengths)[1]
    what = "with v = 0 all scores are equal, and so should be the weights of true keys"
    expect.close(even[0, :, :4], torch.full((5, 4), 0.25, dtype=F64), what)


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


@check
def attention_decoder_step(student, draw):
    """One step against loops for the attention and nn.GRUCell for the decoder."""
    weights, lengths = _decoder_weights(draw, 4, 4, 8), torch.tensor([3, 6])
    tokens, state = draw.integers(1, 8, 2), draw.normal(2, 4, scale=2.0)
    annotations = draw.normal(2, 6, 4, scale=2.0)
    result = student(tokens, draw.strided(state), draw.strided(annotations), lengths, weights)
    shown = f"{len(result)} results" if isinstance(result, tuple) else "one result"
    right = isinstance(result, tuple) and len(result) == 3
    expect.true(right, "a step returns three things", shown, "logits, state, attention weights")
    logits, new, attention = result
    expect.shape(attention, (2, 6), axes="B, T_k")
    expect.shape(new, (2, 4), axes="B, d")
    expect.shape(logits, (2, 8), axes="B, vocab_size")
    expect.dtype(logits, F64)
    most = attention[0, 3:].abs().max()
    expect.true(most == 0, "padding gets some weight", f"{most:.3g}", "exactly 0")
    expect.rows_sum_to_one(attention, 1, "the attention weights do not sum to 1")

    of_attention = weights["W_q"], weights["W_k"], weights["v"]
    expected = _shares(_scores(state[:, None], annotations, *of_attention), lengths)[:, 0]
    expect.close(attention, expected, "the attention weights are not those of the state before")
    context = torch.stack(
        [sum(w * h for w, h in zip(*row, strict=True)) for row in zip(expected, annotations)]  # noqa: B905
    )
    cell = nn.GRUCell(7, 4, dtype=F64)
    with torch.no_grad():
        for parameter, name in zip(cell.parameters(), ("W_x", "W_h", "b_x", "b_h"), strict=True):
            parameter.copy_(weights[name])
        read = torch.cat([weights["embedding"][tokens], context], 1)
        after = cell(read, state)
    expect.close(new, after, "the new state differs from nn.GRUCell on letter and context")
    features = torch.cat([after, context], 1)
    expected = weights["b_out"] + torch.einsum("bf,vf->bv", features, weights["W_out"])
    expect.close(logits, expected, "the logits are not made of the new state and the context")
