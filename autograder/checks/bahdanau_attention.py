"""Checks of lesson 03. The oracles are loops over numbers and PyTorch's bidirectional GRU."""

import math

import torch

from attention.provided.data.tokens import BOS
from attention.provided.stand_ins import LooksBack
from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

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


@check(
    rests_on=(
        "Score all queries against all keys, without a loop.",
        "v · tanh(W_q q_i + W_k k_j) for every pair",
        "decoder states; one at a time when decoding",
        "makes one number of the hidden layer",
    ),
    stages={"the formula": 2, "all pairs in their place": 1},
)
def additive_scores(student, draw):
    """v · tanh(W_q q + W_k k) for one query, then for all pairs, first with equal sizes."""
    q, k = draw.normal(2, 5, 3), draw.normal(2, 7, 8)
    weights = draw.normal(6, 3), draw.normal(6, 8), draw.normal(6, scale=3.0)
    with expect.stage("the formula"):
        _scores_one_query(student, q[:, :1], k, weights)
    with expect.stage("all pairs in their place"):
        _pairs_all(student, draw)
    with expect.stage("the formula"):
        if expect.stands("all pairs in their place"):
            _scores_by_hand(student)
            _scores_all(student, draw, q, k, weights)


def _scores_all(student, draw, q, k, weights):
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


def _pairs_all(student, draw):
    """Numbers so small that tanh leaves them as they are, W_q = W_k, and v of ones: pairs alone."""
    q, k = draw.normal(2, 5, 3, scale=1e-3), draw.normal(2, 7, 3, scale=1e-3)
    W = draw.uniform(4, 3, low=0.5)
    scores = student(draw.strided(q), draw.strided(k), W, W, torch.ones(4, dtype=F64))
    expect.shape(scores, (2, 5, 7), axes="B, T_q, T_k")
    expect.dtype(scores, F64)
    expected = (q @ W.T).sum(2)[:, :, None] + (k @ W.T).sum(2)[:, None]
    what = "with tiny numbers, W_q = W_k and v of ones, a score is not that of its query and key"
    expect.close(scores, expected, what, rtol=1e-3, atol=1e-6)


def _scores_one_query(student, q, k, weights):
    """Values alone: whether they stand in a row or in a column."""
    scores = _in_a_row(student(q, k, *weights), 2, 7)
    by_hand = [_tensor([[[math.log(3), 7.0]]]), _tensor([[[5.0, 0.0], [-5.0, math.log(3)]]])]
    layers = [_tensor([[1.0, 0.0]]), _tensor([[0.0, 1.0]]), _tensor([10.0])]
    two = _in_a_row(student(*by_hand, *layers), 1, 2)
    what = "one query and two keys worked by hand are scored wrongly"
    expect.close(two, _tensor([[[8.0, 10 * 40 / 41]]]), what)
    what = "for one query the scores differ from a loop over the keys"
    expect.close(scores, _scores(q, k, *weights), what)


def _in_a_row(scores, B, T_k):
    expect.tensor(scores)
    fits = scores.numel() == B * T_k and len(scores) == B
    return scores.reshape(B, 1, T_k) if fits else scores


def _scores_by_hand(student):
    """d_q = d_k = 2 and d_attention = 1, and the tanh of log 3 is 4/5."""
    W_q, W_k, v = _tensor([[1.0, 0.0]]), _tensor([[0.0, 1.0]]), _tensor([10.0])
    q = _tensor([[[math.log(3), 7.0], [0.0, -7.0]]])
    k = _tensor([[[5.0, 0.0], [-5.0, math.log(3)], [2.0, -math.log(3)]]])
    scores = student(q, k, W_q, W_k, v)
    expected = _tensor([[[8.0, 10 * 40 / 41, 0.0], [0.0, 8.0, -8.0]]])
    expect.close(scores, expected, "two queries and three keys worked by hand are scored wrongly")


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
    what = "scores should be a tensor of floating-point numbers, (B, T_q, T_k)"
    fits = fits and scores.is_floating_point()
    expect.true(fits, what, expect.describe(scores), "a tensor (B, T_q, T_k)")
    expect.finite(scores, "a score is not a finite number")
    what = "lengths should be a tensor of whole numbers, (B,)"
    fits = isinstance(lengths, torch.Tensor) and lengths.dtype == torch.int64
    fits = fits and lengths.shape == scores.shape[:1]
    expect.true(fits, what, expect.describe(lengths), f"a tensor ({scores.shape[0]},) of int64")
    inside = bool(((lengths >= 1) & (lengths <= scores.shape[2])).all())
    most = scores.shape[2]
    expect.true(
        inside, "a length does not lie between 1 and T_k", lengths.tolist(), f"from 1 to {most}"
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
        "the query is the state before this step",
        "keys and values",
        "stay finite however large the scores are",
        "logits (B, vocab_size), the new state (B, d), attention weights (B, T_k)",
    ),
    stages={"the attention weights": 1, "the context": 1, "the new state and the logits": 1},
)
def attention_decoder_step(student, draw):
    """One step against loops for the attention and PyTorch's GRU cell for the decoder."""
    weights, lengths = _decoder_weights(draw, 6, 7, 9), torch.tensor([3, 5])
    tokens, state = torch.tensor([2, 7]), draw.normal(2, 6, scale=2.0)
    annotations = draw.normal(2, 5, 7, scale=2.0)
    # The sizes that the attention takes are the same here, so that only the numbers tell.
    alike = _decoder_weights(draw, 6, 6, 9)
    # All annotations of a sequence are the same, and so is their average, whatever the weights.
    even = tokens, state, draw.normal(2, 1, 6).expand(2, 5, 6).clone(), lengths, alike
    loud = tokens, 300 * state, 300 * annotations, lengths, {**weights, "v": 500 * weights["v"]}
    plain = tokens, draw.strided(state), draw.strided(annotations), lengths, weights
    for what, given in (
        ("", plain),
        ("with scores in the thousands ", loud),
        ("with c=d ", (tokens, state, draw.normal(2, 5, 6), lengths, alike)),
    ):
        _in_stages(student, given, what)
    with expect.stage("the new state and the logits"):
        what = "where all annotations of a sequence are the same "
        _decodes(_three(student(*even)), _oracle(*even), what)
        if all(map(expect.stands, ("the attention weights", "the context"))):
            one = tokens[:1], state[:1], annotations[:1], lengths[:1], weights
            with expect.care():
                _is_right(student, one, "with B=1 ")
            one = tokens, state, annotations[:, :1], torch.tensor([1, 1]), weights
            with expect.care():
                _is_right(student, one, "with T_k=1 ")


def _in_stages(student, given, what):
    """One call of the answer, compared piece by piece."""
    expected, result = _oracle(*given), None
    with expect.stage("the attention weights"):
        result = student(*given)
        _attends(_laid_out(result), expected, given[3], what)
    with expect.stage("the context"):
        if not expect.stands("the attention weights"):  # without padding, then
            given = (*given[:3], torch.full_like(given[3], given[2].shape[1]), given[4])
            expected, result = _oracle(*given), student(*given)
        _uses_the_context(_laid_out(result), expected, what)
    with expect.stage("the new state and the logits"):
        if expect.stands("the context"):
            _decodes(_three(result), expected, what)


def _is_right(student, given, what):
    result, expected = _three(student(*given)), _oracle(*given)
    _attends(result, expected, given[3], what)
    _decodes(result, expected, what)


def _three(result):
    return expect.parts(result, "logits", "new state", "attention weights")


def _oracle(tokens, state, annotations, lengths, weights):
    """Attention weights, new state and logits of a right step."""
    scores = _scores(state[:, None], annotations, *(weights[name] for name in ("W_q", "W_k", "v")))
    shares = _shares(scores, lengths)
    context = _mixed(shares, annotations)[:, 0]
    read = torch.cat([weights["embedding"][tokens], context], 1)
    after = torch.gru_cell(read, state, *(weights[name] for name in ("W_x", "W_h", "b_x", "b_h")))
    features = torch.cat([after, context], 1)
    logits = weights["b_out"] + torch.einsum("bf,vf->bv", features, weights["W_out"])
    return shares[:, 0], after, logits


def _laid_out(result):
    """Three results, also where two of them came in one: the decoder's stage refuses that."""
    pairs = isinstance(result, list | tuple) and len(result) == 2
    if pairs and isinstance(result[0], list | tuple):
        result = (*result[0], result[1])
    return _three(result)


def _attends(result, expected, lengths, what):
    attention, wanted = result[2], expected[0]
    expect.shape(attention, wanted.shape, axes="B, T_k")
    padding = attention[torch.arange(wanted.shape[1]) >= lengths[:, None]]
    if len(padding):
        most = padding.abs().max()
        expect.true(most == 0, f"{what}padding gets some weight", f"{most:.3g}", "exactly 0")
    expect.rows_sum_to_one(attention, 1, f"{what}the attention weights do not sum to 1")
    said = f"{what}the attention weights are wrong: they are the softmax of the scores"
    expect.close(attention, wanted, said + ", with the state before the step as query")


def _uses_the_context(result, expected, what):
    """Something that came back is made of the right context, wherever it stands."""
    made = any(
        isinstance(part, torch.Tensor)
        and part.shape == wanted.shape
        and part.to(F64).allclose(wanted, rtol=1e-4, atol=1e-6)
        for part in result
        for wanted in expected[1:]
    )
    said = f"{what}neither the new state nor the logits are made of the average of the annotations"
    expect.true(made, said + ", weighted by the attention weights")


def _decodes(result, expected, what):
    (logits, new, _), (_, after, scored) = result, expected
    expect.shape(new, after.shape, axes="B, d")
    expect.shape(logits, scored.shape, axes="B, vocab_size")
    expect.dtype(logits, F64)
    expect.close(new, after, f"{what}the new state differs from nn.GRUCell on letter and context")
    expect.close(logits, scored, f"{what}the logits are not made of the new state and context")


LOOKED_AT = -1  # in place of a word to hide: the one that has most weight


@check(
    without={
        "float32": "rounded scores may choose another letter",
        "gradients": "what is right is no number",
        **dict.fromkeys(("device", "large", "strided"), "the model is there already"),
    },
    rests_on=(
        "Hide one word from each letter, and from this letter alone: is the letter still right?",
        "the decoder reads these true letters",
        "which word is hidden from which letter",
        "whether the most probable letter is the true one",
    ),
    stages={"a hidden word": 1, "letter after letter": 2},
)
def right_without(student, draw):
    """Against a decoder that gives a hidden word the weight 0, and the others what it had."""
    model = draw.normal(9, 5, scale=0.4), draw.normal(60, 5), draw.normal(60, 5)
    texts = [draw.integers(3, 9, length) for length in (5, 3, 4, 6, 2, 5, 4, 3)]
    with expect.stage("a hidden word"):
        for source in texts:
            for word in range(len(source)):
                _is_still_right(student, draw, model, source, [word])
    with expect.stage("letter after letter"):
        for source in texts:  # of one word again and again: none is missed
            words = draw.integers(1, len(source), 9).tolist()
            _is_still_right(student, draw, model, source[:1].expand(len(source)).clone(), words)
        if expect.stands("a hidden word"):
            for source in 2 * texts:
                _is_still_right(student, draw, model, source, 14 * [LOOKED_AT])


def _is_still_right(student, draw, model, source, words):
    """One source: about half of the letters are those that are most probable without a word."""
    right = draw.integers(0, 2, len(words)).bool().tolist()
    target, words = _with_words_hidden(model, source, words, right)
    named = dict(zip(("words", "letters", "columns"), model, strict=True))
    given = {STAND_IN: LooksBack.__name__, **named}, source[None], torch.tensor([target]), words
    found = student(*given)
    listed = list(found) if isinstance(found, list | tuple | torch.Tensor) else [None]
    fits = len(listed) == len(words) and all(map(_is_bool, listed))
    form = f"a list of {len(words)} bools, one for each letter"
    expect.true(fits, "there is not one bool for each letter", expect.describe(found), form)
    found = [bool(one) for one in listed]
    what = f"for a source of {len(source)} words and words={words} the answer is wrong"
    expect.true(found == right, what, found, right)


def _is_bool(one):
    is_tensor = isinstance(one, torch.Tensor) and one.numel() == 1 and one.dtype == torch.bool
    return type(one) is bool or is_tensor


def _with_words_hidden(model, source, words, right):
    """A target of which the letters of ``right`` are the most probable ones, each without its word.

    returns  the target, and the words, with LOOKED_AT replaced by the one that has most weight
    """
    rows, letters, columns = model
    annotations = rows[source] + 0.8 * rows[source].roll(1, dims=0)
    state, before = torch.tanh(annotations.mean(0)), BOS
    target, hidden_words = [], []
    for word, is_right in zip(words, right, strict=True):
        powers = (annotations @ state).exp()
        word = int(powers.argmax()) if word == LOOKED_AT else word
        hidden_words.append(word)
        others = powers.clone()
        others[word] = 0
        context = others / others.sum() @ annotations
        hidden = torch.tanh(0.7 * state + letters[before] + context)
        order = (columns @ (hidden + context)).argsort(descending=True)
        target.append(int(order[0 if is_right else 1]))
        context = powers / powers.sum() @ annotations
        state, before = torch.tanh(0.7 * state + letters[before] + context), target[-1]
    return target, hidden_words
