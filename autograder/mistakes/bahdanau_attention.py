"""Wrong and right answers to the exercises of lesson 03."""

import numpy
import torch
from torch.nn import functional

from attention.provided.data.tokens import BOS
from attention.sequence_to_sequence import decoder_step
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _inside(lengths, T_k):
    """True where a token is, (B, T_k)."""
    return torch.arange(T_k, device=lengths.device) < lengths[:, None]


def _pairs(q, k, W_q, W_k):
    return (q @ W_q.T)[:, :, None] + (k @ W_k.T)[:, None]


@alternative("additive_scores")
def glued_together(q, k, W_q, W_k, v):
    pairs = [q.unsqueeze(2).expand(-1, -1, k.shape[1], -1)]
    pairs.append(k.unsqueeze(1).expand(-1, q.shape[1], -1, -1))
    both = functional.linear(torch.cat(pairs, 3), torch.cat([W_q, W_k], 1))
    return torch.einsum("bqka,a->bqk", both.tanh(), v)


@alternative("additive_scores")
def query_by_query(q, k, W_q, W_k, v):
    keys = torch.einsum("bkd,ad->bka", k, W_k)
    columns = [torch.tanh(keys + (query @ W_q.T)[:, None]) @ v for query in q.unbind(1)]
    return torch.stack(columns, 1)


@careless("additive_scores")
def scores_into_zeros(q, k, W_q, W_k, v):
    scores = torch.zeros(len(q), q.shape[1], k.shape[1])
    for i in range(q.shape[1]):
        for j in range(k.shape[1]):
            scores[:, i, j] = torch.tanh(q[:, i] @ W_q.T + k[:, j] @ W_k.T) @ v
    return scores


@careless("additive_scores")
def scores_in_numpy(q, k, W_q, W_k, v):
    hidden = numpy.tanh(_pairs(q, k, W_q, W_k).detach().numpy())
    return torch.from_numpy(hidden) @ v


@mistake(
    "masked_softmax",
    hint="Dividing again after the mask works until padding is so loud that true weights round to "
    "0, and 0 is divided by 0. Put -inf in before the softmax.",
)
def divides_again_after_the_mask(scores, lengths):
    shares, kept = scores.softmax(-1), torch.zeros_like(scores)
    for row, length in enumerate(lengths.tolist()):
        kept[row, :, :length] = shares[row, :, :length]  # nothing for padding
    return kept / kept.sum(-1, keepdim=True)  # and every row sums to 1 again


@alternative("masked_softmax")
def row_by_row(scores, lengths):
    return torch.stack(
        [
            functional.pad(row[:, :length].softmax(1), (0, row.shape[1] - length))
            for row, length in zip(scores, lengths.tolist(), strict=True)
        ]
    )


@alternative("masked_softmax")
def with_a_shift(scores, lengths):
    allowed = _inside(lengths, scores.shape[2])[:, None]
    lowest = torch.finfo(scores.dtype).min
    top = torch.where(allowed, scores, lowest).amax(2, keepdim=True)
    powers = torch.where(allowed, scores - top, lowest).exp()
    return powers / powers.sum(2, keepdim=True)


def _inside_on_the_cpu(lengths, T_k):
    return torch.arange(T_k) < lengths[:, None]


@careless("masked_softmax")
def masks_on_the_cpu(scores, lengths):
    mask = _inside_on_the_cpu(lengths, scores.shape[2])[:, None]
    return scores.masked_fill(~mask, -torch.inf).softmax(2)


@careless("masked_softmax")
def shares_into_zeros(scores, lengths):
    weights = torch.zeros(scores.shape)
    for row, length in enumerate(lengths.tolist()):
        weights[row, :, :length] = scores[row, :, :length].softmax(1)
    return weights


def _attend(query, annotations, lengths, weights):
    """Attention weights (B, T_k) and context (B, c) of one query per sequence."""
    hidden = torch.tanh((query @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T)
    mask = _inside(lengths, annotations.shape[1])
    attention = (hidden @ weights["v"]).masked_fill(~mask, -torch.inf).softmax(1)
    return attention, (attention[:, None] @ annotations)[:, 0]


@alternative("attention_decoder_step")
def with_unsqueezed_products(tokens, state, annotations, lengths, weights):
    queries = torch.einsum("bd,ad->ba", state, weights["W_q"])
    keys = torch.einsum("bkc,ac->bka", annotations, weights["W_k"])
    scores = torch.einsum("bka,a->bk", torch.tanh(queries.unsqueeze(1) + keys), weights["v"])
    allowed = _inside(lengths, annotations.shape[1])
    top = scores.masked_fill(~allowed, -torch.inf).max(1, keepdim=True).values
    powers = torch.where(allowed, scores - top, -torch.inf).exp()
    attention = powers / powers.sum(1, keepdim=True)
    context = (attention.unsqueeze(2) * annotations).sum(1)
    logits, new_state = decoder_step(tokens, state, context, weights)
    return logits, new_state, attention


@alternative("attention_decoder_step")
def one_sequence_at_a_time(tokens, state, annotations, lengths, weights):
    results = []
    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        attention, context = _attend(state[one], annotations[one, :length], lengths[one], weights)
        step = decoder_step(tokens[one], state[one], context, weights)
        missing = annotations.shape[1] - length
        results.append((*step, functional.pad(attention, (0, missing))))
    return tuple(torch.cat(parts) for parts in zip(*results, strict=True))


@careless("attention_decoder_step")
def attends_on_the_cpu(tokens, state, annotations, lengths, weights):
    hidden = torch.tanh((state @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T)
    mask = _inside_on_the_cpu(lengths, annotations.shape[1])
    attention = (hidden @ weights["v"]).masked_fill(~mask, -torch.inf).softmax(1)
    context = (attention[:, None] @ annotations)[:, 0]
    return *decoder_step(tokens, state, context, weights), attention


@careless("attention_decoder_step")
def attends_into_zeros(tokens, state, annotations, lengths, weights):
    found, context = _attend(state, annotations, lengths, weights)
    attention = torch.zeros(annotations.shape[:2])
    for row, length in enumerate(lengths.tolist()):
        attention[row, :length] = found[row, :length]
    return *decoder_step(tokens, state, context, weights), attention


def _padding(scores, lengths):
    """True where padding is, (B, T_q, T_k)."""
    return (~_inside(lengths, scores.shape[2]))[:, None].expand_as(scores)


def _lead(scores, lengths):
    """By how much padding is louder than the loudest token, at most."""
    padding = _padding(scores, lengths)
    loudest = scores.masked_fill(~padding, -torch.inf).amax(2)
    return (loudest - scores.masked_fill(padding, -torch.inf).amax(2)).max().item()


@mistake(
    "break_masked_softmax",
    hint="There is no padding here: every key counts, so there is nothing to mask.",
    where=lambda scores, lengths: bool((lengths == scores.shape[2]).all()),
)
def without_padding():
    return torch.tensor([[[0.0, 1000.0]]]), torch.tensor([2])


@mistake(
    "break_masked_softmax",
    hint="The padding scores no higher than the best real key, so that key keeps a good share of "
    "the weight, and dividing again repairs the rest.",
    where=lambda scores, lengths: _lead(scores, lengths) <= 0,
)
def quiet_padding():
    return torch.tensor([[[1000.0, -1000.0, 0.0]]]), torch.tensor([2])


@mistake(
    "break_masked_softmax",
    hint="The padding is louder, so the tokens' shares are small, but not yet 0: dividing again "
    "repairs them. From which distance on does exp give exactly 0?",
    where=lambda scores, lengths: _lead(scores, lengths) < 700,
)
def a_little_louder():
    return torch.tensor([[[0.0, 1.0, 20.0]]]), torch.tensor([2])


@alternative("break_masked_softmax")
def quiet_tokens():
    scores = torch.zeros(2, 3, 5, dtype=torch.float64)
    scores[1, 2, :3] = -2000.0
    return scores, torch.tensor([5, 3])


@alternative("break_masked_softmax")
def loud_everywhere():
    return torch.full((1, 2, 4), -1000.0).cumsum(2).flip(2), torch.tensor([2])


@alternative("right_without")
def moves_the_word_behind_the_end(model, source, target, words):
    lengths = torch.tensor([source.shape[1]], device=source.device)
    annotations, state = model.encode(source, lengths)
    before, found = torch.full_like(target[0, :1], BOS), []
    for true, word in zip(target[0], words, strict=True):
        places = sorted(range(source.shape[1]), key=lambda place, word=word: place == word)
        scores = model.write(before, state, annotations[:, places], lengths - 1)[0]
        state = model.write(before, state, annotations, lengths)[1]
        found.append(scores[0].argmax().item() == true.item())
        before = true[None]
    return found


@alternative("right_without")
def all_states_first(model, source, target, words):
    lengths = torch.tensor([source.shape[1]], device=source.device)
    annotations, state = model.encode(source, lengths)
    read = [torch.full_like(target[0, :1], BOS), *target[0].split(1)][:-1]
    states = [state]
    for tokens in read[:-1]:
        states.append(model.write(tokens, states[-1], annotations, lengths)[1])
    keep = ~torch.eye(source.shape[1], dtype=torch.bool, device=source.device)
    steps = zip(read, states, words, strict=True)
    logits = [
        model.write(tokens, state, annotations[:, keep[word]], lengths - 1)[0]
        for tokens, state, word in steps
    ]
    return list(torch.cat(logits).argmax(1) == target[0])


@careless("right_without")
def uses_up_the_words(model, source, target, words):
    lengths = torch.tensor([source.shape[1]], device=source.device)
    annotations, state = model.encode(source, lengths)
    before, found = torch.full_like(target[0, :1], BOS), []
    while words:
        word, true = words.pop(0), target[0, len(found)]
        others = torch.cat([annotations[:, :word], annotations[:, word + 1 :]], 1)
        scores = model.write(before, state, others, lengths - 1)[0]
        state = model.write(before, state, annotations, lengths)[1]
        found.append(scores[0].argmax().item() == true.item())
        before = true[None]
    return found


@careless("right_without")
def shifts_the_target_in_place(model, source, target, words):
    lengths, true = torch.tensor([source.shape[1]], device=source.device), target[0].tolist()
    annotations, state = model.encode(source, lengths)
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = BOS
    found = []
    for letter, word in enumerate(words):
        others = torch.cat([annotations[:, :word], annotations[:, word + 1 :]], 1)
        scores = model.write(target[:, letter], state, others, lengths - 1)[0]
        found.append(int(scores.argmax()) == true[letter])
        state = model.write(target[:, letter], state, annotations, lengths)[1]
    return found


EQUIVALENT = {
    "right_without: with `+` once where `-` belongs: logits, _, _ = model.write(read[:, letter], "
    "state, others, lengths + 1)": "no key is beyond the end, so the length decides nothing",
    "right_without: with one difference left out: logits, _, _ = model.write(read[:, letter], "
    "state, others, lengths)": "the same",
    "right_without: with one call of `bool` left out: right.append(logits.argmax() == "
    "target[0, letter])": "a tensor that holds one bool will do",
    "right_without: with one whole number off by one: right.append(bool(logits.argmax() == "
    "target[-1, letter]))": "there is a single row",
    "right_without: with one whole number off by one: logits, _, _ = model.write(read[:, letter], "
    "state, others, lengths - 0)": "no key is beyond the end, so the length decides nothing",
    "masked_softmax: with `lengths` once where `scores` belongs: positions = "
    "torch.arange(scores.shape[2], device=lengths.device)": "all are on one device",
    "masked_softmax: with another axis in one place: return torch.softmax(scores, "
    "dim=-1)": "the last axis is the same one",
}
