"""Wrong and right answers to the exercises of lesson 03."""

import numpy
import torch
from torch import nn
from torch.nn import functional

from attention.provided.models.additive_attention import attend
from attention.sequence_to_sequence import decoder_step, reverse_source, run_gru
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _inside(lengths, T_k):
    """True where a token is, (B, T_k)."""
    return torch.arange(T_k, device=lengths.device) < lengths[:, None]


@mistake(
    "bidirectional_annotations",
    hint="The second half is in the order in which it was read: the last token's state comes "
    "first. Bring it back into the order of x.",
    earns=("the forward half",),
)
def does_not_turn_back(x, lengths, forward, backward):
    return torch.cat([run_gru(x, **forward), run_gru(reverse_source(x, lengths), **backward)], 2)


@mistake(
    "bidirectional_annotations",
    hint="The backward GRU begins in the padding. It should begin at the last true token.",
    earns=("the forward half", "the backward half without padding"),
)
def reads_back_from_the_padding(x, lengths, forward, backward):
    return torch.cat([run_gru(x, **forward), run_gru(x.flip(1), **backward).flip(1)], 2)


@mistake(
    "bidirectional_annotations",
    hint="Both halves read forward. The second should start at the other end.",
)
def reads_ahead_twice(x, lengths, forward, backward):
    return torch.cat([run_gru(x, **forward), run_gru(x, **backward)], 2)


@mistake(
    "bidirectional_annotations",
    hint="The states of the two GRUs are added. Put them side by side instead.",
)
def adds_the_readings(x, lengths, forward, backward):
    after = reverse_source(run_gru(reverse_source(x, lengths), **backward), lengths)
    return run_gru(x, **forward) + after


@mistake(
    "bidirectional_annotations",
    hint="The halves have changed places: first the forward GRU, then the backward GRU.",
    earns=("the backward half without padding", "the backward half with padding"),
)
def swaps_the_halves(x, lengths, forward, backward):
    after = reverse_source(run_gru(reverse_source(x, lengths), **backward), lengths)
    return torch.cat([after, run_gru(x, **forward)], 2)


@mistake(
    "bidirectional_annotations",
    hint="Both directions use the weights of the forward GRU. Each has its own.",
    earns=("the forward half",),
)
def shares_the_weights(x, lengths, forward, backward):
    after = reverse_source(run_gru(reverse_source(x, lengths), **forward), lengths)
    return torch.cat([run_gru(x, **forward), after], 2)


@mistake(
    "bidirectional_annotations",
    hint="The second GRU reads forward, and only its states are reversed. Reverse what it reads.",
)
def turns_only_the_states(x, lengths, forward, backward):
    after = reverse_source(run_gru(x, **backward), lengths)
    return torch.cat([run_gru(x, **forward), after], 2)


@mistake(
    "bidirectional_annotations",
    hint="The states of the backward GRU are flipped together with the padding. Reverse them "
    "within the true lengths, as you did with x.",
    earns=("the forward half", "the backward half without padding"),
)
def turns_back_with_the_padding(x, lengths, forward, backward):
    after = run_gru(reverse_source(x, lengths), **backward).flip(1)
    return torch.cat([run_gru(x, **forward), after], 2)


@mistake(
    "bidirectional_annotations",
    hint="One GRU's states follow the other's in time. Put them side by side, along the last axis.",
    earns=("the backward half without padding", "the backward half with padding"),
)
def joins_along_the_steps(x, lengths, forward, backward):
    after = reverse_source(run_gru(reverse_source(x, lengths), **backward), lengths)
    return torch.cat([run_gru(x, **forward), after], 1)


@mistake(
    "bidirectional_annotations",
    hint="The dict is handed over as one argument. run_gru takes its entries by name: two stars in "
    "front of it do that.",
)
def hands_over_the_dict(x, lengths, forward, backward):
    return run_gru(x, forward)


@alternative("bidirectional_annotations")
def sequence_by_sequence(x, lengths, forward, backward):
    rows = []
    for row, length in zip(x, lengths.tolist(), strict=True):
        alone = row[None, :length]
        both = [run_gru(alone, **forward), run_gru(alone.flip(1), **backward).flip(1)]
        rows.append(functional.pad(torch.cat(both, 2)[0], (0, 0, 0, len(row) - length)))
    return torch.stack(rows)


@alternative("bidirectional_annotations")
def skips_the_padding(x, lengths, forward, backward):
    h = x.new_zeros(len(x), len(backward["b_x"]) // 3)
    after = []
    for t in reversed(range(x.shape[1])):
        new = torch.gru_cell(
            x[:, t], h, backward["W_x"], backward["W_h"], backward["b_x"], backward["b_h"]
        )
        h = torch.where((t < lengths)[:, None], new, h)
        after.insert(0, h)
    return torch.cat([run_gru(x, **forward), torch.stack(after, 1)], -1)


@careless("bidirectional_annotations")
def annotates_into_zeros(x, lengths, forward, backward):
    d = len(forward["b_x"]) // 3
    annotations = torch.zeros(*x.shape[:2], 2 * d)
    for row, length in enumerate(lengths.tolist()):
        alone = x[row : row + 1, :length]
        annotations[row, :length, :d] = run_gru(alone, **forward)[0]
        annotations[row, :length, d:] = run_gru(alone.flip(1), **backward)[0].flip(0)
    return annotations


@careless("bidirectional_annotations")
def turns_the_tokens_themselves(x, lengths, forward, backward):
    before = run_gru(x, **forward)
    x.copy_(reverse_source(x, lengths))
    return torch.cat([before, reverse_source(run_gru(x, **backward), lengths)], 2)


def _pairs(q, k, W_q, W_k):
    return (q @ W_q.T)[:, :, None] + (k @ W_k.T)[:, None]


@mistake(
    "additive_scores",
    hint="W_q and W_k have changed places: W_q belongs to the queries.",
    earns=("all pairs in their place",),
)
def swaps_the_matrices(q, k, W_q, W_k, v):
    return torch.tanh(_pairs(q, k, W_k, W_q)) @ v


@mistake(
    "additive_scores",
    hint="The tanh comes after the product with v, so every score lies between -1 and 1. It "
    "belongs to the hidden layer, before v makes one number of it.",
)
def takes_tanh_after_the_product(q, k, W_q, W_k, v):
    return torch.tanh(_pairs(q, k, W_q, W_k) @ v)


@mistake(
    "additive_scores",
    hint="There is no tanh. Without it the score is a part from the query plus a part from the "
    "key, and the softmax over keys cancels the query.",
    earns=("all pairs in their place",),
)
def leaves_out_tanh(q, k, W_q, W_k, v):
    return _pairs(q, k, W_q, W_k) @ v


@mistake(
    "additive_scores",
    hint="Queries and keys are squashed one by one, then added. The tanh takes their sum.",
    earns=("all pairs in their place",),
)
def squashes_before_adding(q, k, W_q, W_k, v):
    return (torch.tanh(q @ W_q.T)[:, :, None] + torch.tanh(k @ W_k.T)[:, None]) @ v


@mistake(
    "additive_scores",
    hint="Queries and keys are multiplied. Additive attention adds them (lesson 04 multiplies).",
)
def multiplies(q, k, W_q, W_k, v):
    return torch.tanh((q @ W_q.T)[:, :, None] * (k @ W_k.T)[:, None]) @ v


@mistake(
    "additive_scores",
    hint="Query 0 is paired with key 0 only, query 1 with key 1 only, and so on. For all pairs, "
    "give queries and keys an axis of their own before adding.",
    earns=("the formula",),
)
def pairs_one_to_one(q, k, W_q, W_k, v):
    return torch.tanh(q @ W_q.T + k @ W_k.T) @ v


@mistake(
    "additive_scores",
    hint="The keys run down and the queries across. Which of the two gets the axis at dim 1?",
    earns=("the formula",),
)
def keys_run_down(q, k, W_q, W_k, v):
    return (torch.tanh(_pairs(q, k, W_q, W_k)) @ v).transpose(1, 2)


@mistake(
    "additive_scores",
    hint="The hidden layer is summed, and v is not used. v says how much each feature counts.",
)
def forgets_v(q, k, W_q, W_k, v):
    return torch.tanh(_pairs(q, k, W_q, W_k)).sum(3)


@mistake("additive_scores", hint="Keys are subtracted from queries. Additive attention adds.")
def subtracts(q, k, W_q, W_k, v):
    return torch.tanh(_pairs(q, -k, W_q, W_k)) @ v


@mistake(
    "additive_scores",
    hint="W_q is (d_attention, d_q), and a row vector meets it from the left: it has to be "
    "transposed. So has W_k.",
)
def does_not_transpose(q, k, W_q, W_k, v):
    return torch.tanh((q @ W_q)[:, :, None] + (k @ W_k)[:, None]) @ v


@mistake(
    "additive_scores",
    hint="The softmax has been taken: these are weights. Scores come before it.",
)
def takes_the_softmax(q, k, W_q, W_k, v):
    return (torch.tanh(_pairs(q, k, W_q, W_k)) @ v).softmax(-1)


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
    hint="Padding is attended to: the lengths have no effect.",
)
def attends_to_padding(scores, lengths):
    return scores.softmax(2)


@mistake(
    "masked_softmax",
    hint="The softmax runs along the queries. Each query shares its weight among the keys.",
)
def softmax_along_the_queries(scores, lengths):
    masked = scores.masked_fill(~_inside(lengths, scores.shape[2])[:, None], -torch.inf)
    return masked.softmax(1).nan_to_num(0.0)


@mistake(
    "masked_softmax",
    hint="The weights of padding are set to 0 after the softmax, so the rest no longer sums to 1.",
)
def masks_after_the_softmax(scores, lengths):
    return scores.softmax(2) * _inside(lengths, scores.shape[2])[:, None]


@mistake(
    "masked_softmax",
    hint="Padding gets the score 0, which is a score like any other: exp(0) is 1.",
)
def fills_with_zero(scores, lengths):
    return scores.masked_fill(~_inside(lengths, scores.shape[2])[:, None], 0.0).softmax(2)


@mistake(
    "masked_softmax",
    hint="The mask is the wrong way round: tokens are left out, padding is kept.",
)
def keeps_only_the_padding(scores, lengths):
    return scores.masked_fill(_inside(lengths, scores.shape[2])[:, None], -torch.inf).softmax(2)


@mistake(
    "masked_softmax",
    hint="One key too many: with a length of n, the key at index n is already padding.",
)
def one_key_too_many(scores, lengths):
    return scores.masked_fill(~_inside(lengths + 1, scores.shape[2])[:, None], -torch.inf).softmax(
        2
    )


@mistake(
    "masked_softmax",
    hint="Padding gets a score that is low, but not low enough: other scores may lie below it.",
)
def fills_with_a_low_score(scores, lengths):
    return scores.masked_fill(~_inside(lengths, scores.shape[2])[:, None], -100.0).softmax(2)


@mistake(
    "masked_softmax",
    hint="The mask leaves out queries. The lengths count keys, which run along the last axis.",
)
def masks_the_queries(scores, lengths):
    return scores.masked_fill(~_inside(lengths, scores.shape[1])[:, :, None], -torch.inf).softmax(2)


@mistake(
    "masked_softmax",
    hint="The longest length is used for all rows. Each row of the batch has its own.",
)
def uses_one_length_for_all(scores, lengths):
    longest = torch.full_like(lengths, int(lengths.max()))
    return scores.masked_fill(~_inside(longest, scores.shape[2])[:, None], -torch.inf).softmax(2)


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


@mistake("masked_softmax", hint="The scores are overwritten in place. Work on a masked copy.")
def writes_into_the_scores(scores, lengths):
    for row, length in enumerate(lengths.tolist()):
        scores[row, :, length:] = -torch.inf
    return scores.softmax(2)


ONE_LENGTH_EACH = (
    "The lengths are lined up with another axis of the scores than the batch. With two more axes "
    "behind it, (B, 1, 1), each sequence meets its own length."
)


@mistake("masked_softmax", hint=ONE_LENGTH_EACH)
def lines_lengths_up_with_the_keys(scores, lengths):
    mask = torch.arange(scores.shape[2]) < lengths
    return scores.masked_fill(~mask, -torch.inf).softmax(2)


@mistake("masked_softmax", hint=ONE_LENGTH_EACH)
def lines_lengths_up_with_the_queries(scores, lengths):
    mask = torch.arange(scores.shape[2]) < lengths[:, None]
    return scores.masked_fill(~mask, -torch.inf).softmax(2)


@mistake(
    "masked_softmax",
    hint="The softmax runs along the queries. Each query shares its weight among the keys, along "
    "the last axis.",
)
def shares_among_the_queries(scores, lengths):
    mask = _inside(lengths, scores.shape[2])[:, None]
    return scores.masked_fill(~mask, -torch.inf).softmax(1)


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


class _Attention(nn.Module):
    """Additive attention whose parts the mistakes below replace one at a time."""

    def __init__(self, d_q, d_k, d_attention):
        super().__init__()
        self.W_q = nn.Linear(d_q, d_attention, bias=False)
        self.W_k = nn.Linear(d_k, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)

    def scores(self, q, k):
        return self.v(torch.tanh(self.W_q(q)[:, :, None] + self.W_k(k)[:, None])).squeeze(3)

    def shares(self, scores, lengths):
        mask = _inside(lengths, scores.shape[2])[:, None]
        return scores.masked_fill(~mask, -torch.inf).softmax(2)

    def forward(self, q, k, values, lengths):
        weights = self.shares(self.scores(q, k), lengths)
        return weights @ values, weights


@mistake("AdditiveAttention", hint="Padding is attended to: the lengths have no effect.")
class AttendsToPadding(_Attention):
    def shares(self, scores, lengths):
        return scores.softmax(2)


@mistake(
    "AdditiveAttention",
    hint="The layer should own W_q, W_k and v, and nothing else. By default nn.Linear adds a bias.",
)
class HasBiases(_Attention):
    def __init__(self, d_q, d_k, d_attention):
        super().__init__(d_q, d_k, d_attention)
        self.W_q = nn.Linear(d_q, d_attention)
        self.W_k = nn.Linear(d_k, d_attention)
        self.v = nn.Linear(d_attention, 1)


@mistake(
    "AdditiveAttention",
    hint="W_q takes d_q features, W_k takes d_k, both make d_attention, and v makes 1. Have two of "
    "them changed places?",
)
class SwapsTheSizes(_Attention):
    def __init__(self, d_q, d_k, d_attention):
        super().__init__(d_k, d_q, d_attention)


@mistake(
    "AdditiveAttention",
    hint="The tanh comes after the product with v. It belongs to the hidden layer.",
)
class TanhAfterTheProduct(_Attention):
    def scores(self, q, k):
        return torch.tanh(self.v(self.W_q(q)[:, :, None] + self.W_k(k)[:, None])).squeeze(3)


@mistake(
    "AdditiveAttention",
    hint="There is no tanh. Without it the softmax over keys cancels the query.",
)
class ForgetsTanh(_Attention):
    def scores(self, q, k):
        return self.v(self.W_q(q)[:, :, None] + self.W_k(k)[:, None]).squeeze(3)


@mistake("AdditiveAttention", hint="The weights average the keys. They belong to the values.")
class AveragesTheKeys(_Attention):
    def forward(self, q, k, values, lengths):
        weights = self.shares(self.scores(q, k), lengths)
        return weights @ k, weights


@mistake("AdditiveAttention", hint="Weights and context have changed places in the result.")
class SwapsTheResults(_Attention):
    def forward(self, q, k, values, lengths):
        return super().forward(q, k, values, lengths)[::-1]


@mistake(
    "AdditiveAttention",
    hint="The scores average the values without having gone through a softmax.",
)
class ForgetsTheSoftmax(_Attention):
    def shares(self, scores, lengths):
        return scores.masked_fill(~_inside(lengths, scores.shape[2])[:, None], 0.0)


@mistake("AdditiveAttention", hint="The softmax runs along the queries instead of the keys.")
class SoftmaxAlongTheQueries(_Attention):
    def shares(self, scores, lengths):
        mask = _inside(lengths, scores.shape[2])[:, None]
        return scores.masked_fill(~mask, -torch.inf).softmax(1).nan_to_num(0.0)


@mistake(
    "AdditiveAttention",
    hint="Queries and keys have changed places on the way to the scores: the weights have a row "
    "for each query.",
)
class HandsThemOverSwapped(_Attention):
    def forward(self, q, k, values, lengths):
        queries, keys = self.W_q(q), self.W_k(k)
        return attend(keys, queries, self.v.weight[0], values, lengths)


@mistake(
    "AdditiveAttention",
    hint="The weight of v is a matrix of one row, (1, d_attention). `attend` takes that row.",
)
class HandsOverTheWholeWeight(_Attention):
    def forward(self, q, k, values, lengths):
        return attend(self.W_q(q), self.W_k(k), self.v.weight, values, lengths)


@mistake(
    "AdditiveAttention",
    hint="v is a vector of its own. It should be a linear layer like the others, to 1 feature.",
)
class KeepsVAsAVector(_Attention):
    def __init__(self, d_q, d_k, d_attention):
        super().__init__(d_q, d_k, d_attention)
        self.v = nn.Parameter(torch.zeros(d_attention))


@alternative("AdditiveAttention")
class QueryByQuery(_Attention):
    def forward(self, q, k, values, lengths):
        keys, contexts, rows = self.W_k(k), [], []
        for query in q.unbind(1):
            scores = self.v(torch.tanh(keys + self.W_q(query)[:, None]))[:, :, 0]
            scores = torch.where(_inside(lengths, k.shape[1]), scores, -torch.inf)
            rows.append(torch.softmax(scores, -1))
            contexts.append(torch.einsum("bk,bkd->bd", rows[-1], values))
        return torch.stack(contexts, 1), torch.stack(rows, 1)


@alternative("AdditiveAttention")
class ByHand(_Attention):
    def scores(self, q, k):
        queries = torch.einsum("bqd,ad->bqa", q, self.W_q.weight)
        keys = torch.einsum("bkd,ad->bka", k, self.W_k.weight)
        hidden = (queries.unsqueeze(2) + keys.unsqueeze(1)).tanh()
        return torch.einsum("bqka,a->bqk", hidden, self.v.weight[0])

    def shares(self, scores, lengths):
        allowed = _inside(lengths, scores.shape[2])[:, None]
        top = scores.masked_fill(~allowed, -torch.inf).amax(2, keepdim=True)
        powers = torch.where(allowed, scores - top, -torch.inf).exp()
        return powers / powers.sum(2, keepdim=True)


@careless("AdditiveAttention")
class MasksOnTheCpu(_Attention):
    def shares(self, scores, lengths):
        mask = _inside_on_the_cpu(lengths, scores.shape[2])[:, None]
        return scores.masked_fill(~mask, -torch.inf).softmax(2)


@careless("AdditiveAttention")
class SeedsEverything(_Attention):
    def __init__(self, d_q, d_k, d_attention):
        torch.manual_seed(0)
        super().__init__(d_q, d_k, d_attention)


@careless("AdditiveAttention")
class AveragesIntoZeros(_Attention):
    def forward(self, q, k, values, lengths):
        weights = self.shares(self.scores(q, k), lengths)
        context = torch.zeros(*q.shape[:2], values.shape[2])
        for row in range(len(q)):
            context[row] = weights[row] @ values[row]
        return context, weights


def _attend(query, annotations, lengths, weights):
    """Attention weights (B, T_k) and context (B, c) of one query per sequence."""
    hidden = torch.tanh((query @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T)
    mask = _inside(lengths, annotations.shape[1])
    attention = (hidden @ weights["v"]).masked_fill(~mask, -torch.inf).softmax(1)
    return attention, (attention[:, None] @ annotations)[:, 0]


@mistake(
    "attention_decoder_step",
    hint="The query is the state after the step. The decoder looks back before it reads: the "
    "query is the state that came in.",
    earns=("the context", "the new state and the logits"),
)
def asks_with_the_new_state(tokens, state, annotations, lengths, weights):
    _, context = _attend(state, annotations, lengths, weights)
    logits, state = decoder_step(tokens, state, context, weights)
    return logits, state, _attend(state, annotations, lengths, weights)[0]


@mistake(
    "attention_decoder_step",
    hint="The decoder reads the letter before it looks back, and steps twice: the query is the "
    "state that came in, and there is one step.",
)
def steps_before_it_looks(tokens, state, annotations, lengths, weights):
    nothing = annotations.new_zeros(len(tokens), annotations.shape[2])
    _, state = decoder_step(tokens, state, nothing, weights)
    attention, context = _attend(state, annotations, lengths, weights)
    return *decoder_step(tokens, state, context, weights), attention


@mistake(
    "attention_decoder_step",
    hint="The attention weights come first. The order is logits, the new state, attention weights.",
    earns=("the context",),
)
def returns_the_weights_first(tokens, state, annotations, lengths, weights):
    attention, context = _attend(state, annotations, lengths, weights)
    return attention, *decoder_step(tokens, state, context, weights)


@mistake(
    "attention_decoder_step",
    hint="Padding is attended to: the lengths have no effect.",
    earns=("the context", "the new state and the logits"),
)
def attends_to_all(tokens, state, annotations, lengths, weights):
    everything = torch.full_like(lengths, annotations.shape[1])
    attention, context = _attend(state, annotations, everything, weights)
    return *decoder_step(tokens, state, context, weights), attention


@mistake(
    "attention_decoder_step",
    hint="The attention weights are right, but the decoder gets the plain average of the "
    "annotations. Weigh them.",
    earns=("the attention weights", "the new state and the logits"),
)
def averages_without_weights(tokens, state, annotations, lengths, weights):
    attention, _ = _attend(state, annotations, lengths, weights)
    mask = _inside(lengths, annotations.shape[1])[:, :, None]
    context = (annotations * mask).sum(1) / lengths[:, None]
    return *decoder_step(tokens, state, context, weights), attention


@mistake(
    "attention_decoder_step",
    hint="The decoder gets the annotation with the largest weight alone. Average all of them.",
)
def takes_the_best_annotation(tokens, state, annotations, lengths, weights):
    attention, _ = _attend(state, annotations, lengths, weights)
    context = annotations[torch.arange(len(tokens)), attention.argmax(1)]
    return *decoder_step(tokens, state, context, weights), attention


@mistake(
    "attention_decoder_step",
    hint="W_q and W_k have changed places: W_q takes the state, W_k the annotations.",
    earns=("the new state and the logits",),
)
def swaps_query_and_key(tokens, state, annotations, lengths, weights):
    swapped = weights | {"W_q": weights["W_k"], "W_k": weights["W_q"]}
    attention, context = _attend(state, annotations, lengths, swapped)
    return *decoder_step(tokens, state, context, weights), attention


@mistake(
    "attention_decoder_step",
    hint="The state that comes back is the one that went in. The next step needs the new one.",
    earns=("the attention weights", "the context"),
)
def returns_the_old_state(tokens, state, annotations, lengths, weights):
    attention, context = _attend(state, annotations, lengths, weights)
    return decoder_step(tokens, state, context, weights)[0], state, attention


@mistake(
    "attention_decoder_step",
    hint="There is no tanh in the scores, v · tanh(W_q q + W_k k).",
)
def leaves_out_the_tanh(tokens, state, annotations, lengths, weights):
    hidden = (state @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T
    mask = _inside(lengths, annotations.shape[1])
    attention = (hidden @ weights["v"]).masked_fill(~mask, -torch.inf).softmax(1)
    context = (attention[:, None] @ annotations)[:, 0]
    return *decoder_step(tokens, state, context, weights), attention


@mistake(
    "attention_decoder_step",
    hint="The softmax runs along the batch. Each sequence shares its weight among its own keys.",
)
def shares_among_the_batch(tokens, state, annotations, lengths, weights):
    hidden = torch.tanh((state @ weights["W_q"].T)[:, None] + annotations @ weights["W_k"].T)
    mask = _inside(lengths, annotations.shape[1])
    attention = (hidden @ weights["v"]).masked_fill(~mask, -torch.inf).softmax(0).nan_to_num(0.0)
    context = (attention[:, None] @ annotations)[:, 0]
    return *decoder_step(tokens, state, context, weights), attention


@mistake(
    "attention_decoder_step",
    hint="Logits and state have changed places: logits, the new state, attention weights.",
    earns=("the attention weights", "the context"),
)
def swaps_logits_and_state(tokens, state, annotations, lengths, weights):
    attention, context = _attend(state, annotations, lengths, weights)
    return *decoder_step(tokens, state, context, weights)[::-1], attention


@mistake(
    "attention_decoder_step",
    hint="decoder_step's pair came back as one thing. Unpack it: three results side by side.",
    earns=("the attention weights", "the context"),
)
def returns_a_pair_in_a_pair(tokens, state, annotations, lengths, weights):
    attention, context = _attend(state, annotations, lengths, weights)
    return decoder_step(tokens, state, context, weights), attention


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


EQUIVALENT = {
    "bidirectional_annotations: with another axis in one place: return "
    "torch.cat([before, after], dim=-1)": "the last axis is the same one",
    "masked_softmax: with `lengths` once where `scores` belongs: positions = "
    "torch.arange(scores.shape[2], device=lengths.device)": "all are on one device",
    "masked_softmax: with another axis in one place: return torch.softmax(scores, "
    "dim=-1)": "the last axis is the same one",
    "AdditiveAttention: with one whole number off by one: return attend(queries, keys, "
    "self.v.weight[-1], values, lengths)": "the weight of v has a single row",
}
