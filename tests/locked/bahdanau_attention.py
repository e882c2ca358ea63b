"""Answers to lesson 03 that were written without a look at its checks."""

import torch
from torch.nn import functional as F

from attention.provided.data.tokens import BOS
from attention.sequence_to_sequence import decoder_step, shift_right
from tests.locked import right, wrong

# --- additive_scores -------------------------------------------------------------------------


@wrong(
    "additive_scores",
    cause="squeezes too much: axes of length 1, of the batch or the queries, are lost",
    kind="size",
)
def additive_scores_8(q, k, W_q, W_k, v):
    hidden = torch.tanh((q @ W_q.T).unsqueeze(2) + (k @ W_k.T).unsqueeze(1))
    return (hidden @ v.unsqueeze(1)).squeeze()


@right("additive_scores", how="one query after the other")
def additive_scores_9(q, k, W_q, W_k, v):
    keys = F.linear(k, W_k)
    columns = []
    for i in range(q.shape[1]):
        hidden = (F.linear(q[:, i : i + 1], W_q) + keys).tanh()
        columns.append((hidden * v).sum(-1))
    return torch.stack(columns, dim=1)


@right("additive_scores", how="one matrix for the joined vectors of each pair, and einsum")
def additive_scores_10(q, k, W_q, W_k, v):
    (B, T_q, _), T_k = q.shape, k.shape[1]
    pairs = torch.cat(
        [q[:, :, None].expand(-1, -1, T_k, -1), k[:, None].expand(B, T_q, T_k, -1)], dim=-1
    )
    hidden = torch.einsum("bqkd,ad->bqka", pairs, torch.cat([W_q, W_k], dim=1)).tanh()
    return torch.einsum("a,bqka->bqk", v, hidden)


# --- masked_softmax --------------------------------------------------------------------------


@wrong("masked_softmax", cause="makes the positions on the CPU", kind="device")
def masked_softmax_8(scores, lengths):
    mask = torch.arange(scores.shape[2]) < lengths[:, None, None]
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=2)


@right("masked_softmax", how="each sequence alone, cut to its length and padded with zeros")
def masked_softmax_11(scores, lengths):
    rows = []
    for row, n in zip(scores, lengths.tolist(), strict=True):
        rows.append(F.pad(row[:, :n].softmax(dim=1), (0, scores.shape[2] - n)))
    return torch.stack(rows)


@right("masked_softmax", how="where, and exponentials written out")
def masked_softmax_12(scores, lengths):
    position = torch.arange(scores.size(-1), device=scores.device).expand(len(lengths), 1, -1)
    shut = position >= lengths[:, None, None]
    scores = torch.where(shut, float("-inf"), scores)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


# --- attention_decoder_step ------------------------------------------------------------------


@wrong(
    "attention_decoder_step",
    cause="the query is the state after a step (with the mean as context), not that before",
    kind="value",
)
def attention_decoder_step_2(tokens, state, annotations, lengths, weights):
    _, query = decoder_step(tokens, state, annotations.mean(dim=1), weights)
    hidden = torch.tanh((query @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T)
    is_token = torch.arange(annotations.shape[1], device=state.device) < lengths[:, None]
    attention = (hidden @ weights["v"]).masked_fill(~is_token, -torch.inf).softmax(dim=1)
    context = torch.einsum("bk,bkc->bc", attention, annotations)
    return *decoder_step(tokens, state, context, weights), attention


@wrong(
    "attention_decoder_step",
    cause="multiplies one (B, T_k) matrix with B matrices: the context is (B, B, c)",
    kind="crash",
)
def attention_decoder_step_3(tokens, state, annotations, lengths, weights):
    hidden = torch.tanh((state @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T)
    is_token = torch.arange(annotations.shape[1], device=state.device) < lengths[:, None]
    attention = (hidden @ weights["v"]).masked_fill(~is_token, -torch.inf).softmax(dim=1)
    context = attention @ annotations
    logits, state = decoder_step(tokens, state, context, weights)
    return logits, state, attention


@wrong(
    "attention_decoder_step",
    cause="takes W_q, W_k and v out of the caller's dict, so the next step fails",
    kind="state",
)
def attention_decoder_step_6(tokens, state, annotations, lengths, weights):
    W_q, W_k, v = (weights.pop(name) for name in ("W_q", "W_k", "v"))
    hidden = torch.tanh((state @ W_q.T)[:, None] + annotations @ W_k.T)
    is_token = torch.arange(annotations.shape[1], device=state.device) < lengths[:, None]
    attention = (hidden @ v).masked_fill(~is_token, -torch.inf).softmax(dim=1)
    context = torch.einsum("bk,bkc->bc", attention, annotations)
    return *decoder_step(tokens, state, context, weights), attention


@wrong(
    "attention_decoder_step",
    cause="returns the attention weights with an axis too many: (B, 1, T_k)",
    kind="shape",
)
def attention_decoder_step_7(tokens, state, annotations, lengths, weights):
    query = (state @ weights["W_q"].T)[:, None, None]
    keys = (annotations @ weights["W_k"].T)[:, None]
    scores = torch.tanh(query + keys) @ weights["v"]
    is_token = torch.arange(annotations.shape[1], device=state.device) < lengths[:, None, None]
    attention = scores.masked_fill(~is_token, -torch.inf).softmax(dim=-1)
    context = (attention @ annotations).squeeze(1)
    logits, state = decoder_step(tokens, state, context, weights)
    return logits, state, attention


@wrong(
    "attention_decoder_step",
    cause="returns (logits, attention, state): the last two change places",
    kind="value",
)
def attention_decoder_step_8(tokens, state, annotations, lengths, weights):
    hidden = torch.tanh((state @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T)
    is_token = torch.arange(annotations.shape[1], device=state.device) < lengths[:, None]
    attention = (hidden @ weights["v"]).masked_fill(~is_token, -torch.inf).softmax(dim=1)
    context = torch.einsum("bk,bkc->bc", attention, annotations)
    logits, state = decoder_step(tokens, state, context, weights)
    return logits, attention, state


def _scores(query, keys, weights):
    """Additive scores of one query (d,) against keys (T_k, c): (T_k,)."""
    return torch.tanh(weights["W_q"] @ query + keys @ weights["W_k"].T) @ weights["v"]


@right("attention_decoder_step", how="attends for each sequence alone, cut to its length")
def attention_decoder_step_9(tokens, state, annotations, lengths, weights):
    attention, contexts = [], []
    for b, n in enumerate(lengths.tolist()):
        shares = _scores(state[b], annotations[b, :n], weights).softmax(dim=0)
        contexts.append(shares @ annotations[b, :n])
        attention.append(F.pad(shares, (0, annotations.shape[1] - n)))
    logits, new = decoder_step(tokens, state, torch.stack(contexts), weights)
    return logits, new, torch.stack(attention)


@right("attention_decoder_step", how="sums products instead of matrix products, and returns a list")
def attention_decoder_step_10(tokens, state, annotations, lengths, weights):
    hidden = F.linear(annotations, weights["W_k"]) + F.linear(state, weights["W_q"]).unsqueeze(1)
    scores = (hidden.tanh() * weights["v"]).sum(dim=-1)
    position = torch.arange(scores.shape[1], device=scores.device).unsqueeze(0)
    attention = torch.where(position < lengths.unsqueeze(1), scores, -torch.inf).softmax(-1)
    context = (attention.unsqueeze(2) * annotations).sum(dim=1)
    logits, following = decoder_step(tokens, state, context, weights)
    return [logits, following, attention]


# --- right_without -------------------------------------------------------------------------------


def _without(annotations, j):
    return torch.cat([annotations[:, :j], annotations[:, j + 1 :]], dim=1)


@wrong("right_without", cause="goes on with the state of the step that has not seen the word")
def right_without_1(model, source, target, words):
    lengths = torch.full_like(source[:, 0], source.shape[1])
    annotations, state = model.encode(source, lengths)
    read = shift_right(target)
    right = []
    for i, j in enumerate(words):
        logits, state, _ = model.write(read[:, i], state, _without(annotations, j), lengths - 1)
        right.append(bool(logits.argmax(1) == target[:, i]))
    return right


@wrong("right_without", cause="puts zeros in the place of the word, which keeps its weight")
def right_without_2(model, source, target, words):
    lengths = torch.full_like(source[:, 0], source.shape[1])
    annotations, state = model.encode(source, lengths)
    read = shift_right(target)
    right = []
    for i, j in enumerate(words):
        hidden = annotations.clone()
        hidden[:, j] = 0
        logits, _, _ = model.write(read[:, i], state, hidden, lengths)
        right.append(bool(logits.argmax(1) == target[:, i]))
        _, state, _ = model.write(read[:, i], state, annotations, lengths)
    return right


@wrong("right_without", cause="reads the letter that it should predict, not the one before")
def right_without_3(model, source, target, words):
    lengths = torch.full_like(source[:, 0], source.shape[1])
    annotations, state = model.encode(source, lengths)
    right = []
    for i, j in enumerate(words):
        logits, _, _ = model.write(target[:, i], state, _without(annotations, j), lengths - 1)
        right.append(bool(logits.argmax(1) == target[:, i]))
        _, state, _ = model.write(target[:, i], state, annotations, lengths)
    return right


@wrong("right_without", cause="reads the letters that it has written itself")
def right_without_4(model, source, target, words):
    lengths = torch.full_like(source[:, 0], source.shape[1])
    annotations, state = model.encode(source, lengths)
    token = shift_right(target)[:, 0]
    right = []
    for i, j in enumerate(words):
        logits, _, _ = model.write(token, state, _without(annotations, j), lengths - 1)
        right.append(bool(logits.argmax(1) == target[:, i]))
        logits, state, _ = model.write(token, state, annotations, lengths)
        token = logits.argmax(1)
    return right


@wrong("right_without", cause="hides the word from the encoder, so the other annotations change")
def right_without_5(model, source, target, words):
    lengths = torch.full_like(source[:, 0], source.shape[1])
    annotations, state = model.encode(source, lengths)
    read = shift_right(target)
    right = []
    for i, j in enumerate(words):
        fewer, _ = model.encode(_without(source, j), lengths - 1)
        logits, _, _ = model.write(read[:, i], state, fewer, lengths - 1)
        right.append(bool(logits.argmax(1) == target[:, i]))
        _, state, _ = model.write(read[:, i], state, annotations, lengths)
    return right


@right("right_without", how="first all states, then all letters, each with a bool for the words")
def right_without_6(model, source, target, words):
    lengths = source.new_full((1,), source.shape[1])
    annotations, first = model.encode(source, lengths)
    read, states = shift_right(target), [first]
    for token in read.unbind(1):
        states.append(model.write(token, states[-1], annotations, lengths)[1])
    where = torch.arange(source.shape[1], device=source.device)
    best = []
    for token, state, word in zip(read.unbind(1), states, words, strict=False):
        logits = model.write(token, state, annotations[:, where != word], lengths - 1)[0]
        best.append(logits.argmax(dim=-1))
    return (torch.stack(best, dim=1) == target)[0].tolist()


@right("right_without", how="a list of annotations from which one is taken, and plain numbers")
def right_without_7(model, source, target, words):
    T_k = source.shape[1]
    lengths = torch.full_like(source[:, 0], T_k)
    annotations, state = model.encode(source, lengths)
    true, previous, right = target[0].tolist(), BOS, []
    for letter, word in zip(true, words, strict=True):
        rest = list(annotations.unbind(1))
        del rest[word]
        token = torch.full_like(lengths, previous)
        logits, *_ = model.write(
            token, state, torch.stack(rest, 1), torch.full_like(lengths, T_k - 1)
        )
        right.append(logits[0].topk(1).indices.item() == letter)
        state = model.write(token, state, annotations, lengths)[1]
        previous = letter
    return right
