"""Wrong and right answers to the exercises of lesson 13."""

import heapq
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from autograder.checking.toolbox.registry import alternative, careless, mistake

PAD, BOS, EOS = 0, 1, 2


def _drawn(probabilities, noise):
    return (probabilities.cumsum(1) <= noise[:, None]).sum(1)


def _drawn_on_the_whole_line(probabilities, noise):
    return _drawn(probabilities, noise * probabilities.cumsum(1)[:, -1])


@alternative("sample_tokens")
def searches_the_sums(logits, noise, temperature=1.0):
    sums = torch.softmax(logits / temperature, dim=1).cumsum(dim=1)
    noise = noise * sums[:, -1]
    return torch.searchsorted(sums, noise.unsqueeze(1).contiguous(), right=True).squeeze(1)


@alternative("sample_tokens")
def walks_along_the_line(logits, noise, temperature=1.0):
    drawn = []
    for row, u in zip(logits, noise.tolist(), strict=True):
        token, probabilities = 0, torch.softmax(row.double() / temperature, 0).tolist()
        left = u
        while token < len(probabilities) - 1 and left >= probabilities[token]:
            left -= probabilities[token]
            token += 1
        drawn.append(token)
    return torch.tensor(drawn, device=logits.device)


@alternative("sample_tokens")
def finds_the_first_beyond(logits, noise, temperature=1.0):
    sums = torch.cumsum(F.softmax(logits / temperature, -1), -1)
    sums = sums / sums[:, -1:]
    return torch.argmax((sums > noise[:, None]).long(), dim=-1)


@careless("sample_tokens")
def fills_ids_in_on_the_cpu(logits, noise, temperature=1.0):
    tokens = torch.zeros(len(logits), dtype=torch.int64)
    for b, sums in enumerate((logits / temperature).softmax(1).cumsum(1)):
        tokens[b] = (sums <= noise[b] * sums[-1]).sum()
    return tokens


@careless("sample_tokens")
def divides_the_scores_it_was_given(logits, noise, temperature=1.0):
    logits /= temperature
    return _drawn_on_the_whole_line(logits.softmax(1), noise)


@careless("sample_tokens")
def adds_up_in_numpy(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(1).numpy().cumsum(1)
    return torch.tensor((sums <= noise.numpy()[:, None] * sums[:, -1:]).sum(1))


def _top(logits, k):
    return logits.topk(min(k, logits.shape[1]), dim=1).values


@alternative("top_k_filter")
def puts_the_best_back(logits, k):
    best = logits.topk(min(k, logits.shape[1]), dim=1)
    return torch.full_like(logits, -math.inf).scatter(1, best.indices, best.values)


@alternative("top_k_filter")
def counts_who_is_better(logits, k):
    better = (logits[:, None, :] > logits[:, :, None]).sum(2)
    return torch.where(better < k, logits, -math.inf)


@alternative("top_k_filter")
def sorts_lists(logits, k):
    rows = [[x if x in sorted(row)[-k:] else -math.inf for x in row] for row in logits.tolist()]
    return logits.new_tensor(rows)


@careless("top_k_filter")
def writes_the_best_into_float32(logits, k):
    kept = torch.full(logits.shape, -math.inf)
    for b, row in enumerate(logits):
        for place in row.topk(min(k, len(row))).indices.tolist():
            kept[b, place] = row[place]
    return kept


@careless("top_k_filter")
def drops_in_the_given_scores(logits, k):
    logits[logits < _top(logits, k)[:, -1:]] = -math.inf
    return logits


def _sorted(logits, descending=True):
    probabilities, order = logits.softmax(1).sort(dim=1, descending=descending)
    return probabilities, probabilities.cumsum(1), order


@mistake(
    "top_p_filter",
    hint="exp of the scores does not sum to 1. Use softmax.",
)
def forgets_to_divide(logits, p):
    keep = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
    for row, scores in enumerate(logits):
        reached = 0.0
        for token in scores.argsort(descending=True).tolist():
            if reached >= p:
                break
            keep[row, token] = True
            reached += scores[token].exp().item()
    return logits.masked_fill(~keep, -math.inf)


@mistake(
    "break_top_p_filter",
    hint="The exponentials of these scores sum to 1 in each row: they are log-probabilities, and "
    "softmax changes nothing.",
    where=lambda logits, p: bool(((logits.exp().sum(1) - 1).abs() < 1e-6).all()),
)
def log_probabilities():
    return torch.tensor([[0.5, 0.2, 0.3]]).log(), 0.6


@mistake(
    "break_top_p_filter",
    hint="There is only one token, which is kept whatever its probability.",
    where=lambda logits, p: logits.shape[1] == 1,
)
def a_single_token():
    return torch.tensor([[0.3]]), 0.5


@mistake(
    "break_top_p_filter",
    hint="The best token alone reaches p, as a probability and as an exponential, too: both keep "
    "only this one.",
    where=lambda logits, p: bool(
        (logits.softmax(1).amax(1) >= p).all() and (logits.exp().amax(1) >= p).all()
    ),
)
def one_token_far_ahead():
    return torch.tensor([[9.0, 0.0, 1.0]]), 0.5


@alternative("break_top_p_filter")
def small_scores():
    return torch.tensor([[-5.0, -6.0, -7.0]]), 0.5


@alternative("break_top_p_filter")
def random_scores():
    return torch.tensor([[1.0, 0.9, 0.8, 0.7], [0.0, 0.1, 0.2, 0.3]]), 0.8


@alternative("top_p_filter")
def sorts_back(logits, p):
    probabilities, order = logits.softmax(1).sort(dim=1, descending=True)
    keep = probabilities.cumsum(1) - probabilities < p
    return torch.where(keep.gather(1, order.argsort(1)), logits, -math.inf)


@alternative("top_p_filter")
def shifts_the_mask(logits, p):
    values, order = logits.sort(dim=1, descending=True)
    dropped = values.softmax(1).cumsum(1) >= p
    dropped = torch.cat([torch.zeros_like(dropped[:, :1]), dropped[:, :-1]], 1)
    values = values.masked_fill(dropped, -math.inf)
    return torch.empty_like(logits).scatter_(1, order, values)


@alternative("top_p_filter")
def adds_up_all_that_are_better(logits, p):
    probabilities, V = logits.softmax(1), logits.shape[1]
    equal = logits[:, None, :] == logits[:, :, None]
    better = (logits[:, None, :] > logits[:, :, None]) | equal & torch.ones(
        V, V, device=logits.device
    ).tril(-1).bool()
    before = (better * probabilities[:, None, :]).sum(2)
    return logits.masked_fill(before >= p, -math.inf)


@careless("top_p_filter")
def marks_what_is_dropped_on_the_cpu(logits, p):
    probabilities, sums, order = _sorted(logits)
    dropped = torch.zeros(logits.shape, dtype=torch.bool)
    return logits.masked_fill(dropped.scatter(1, order, sums - probabilities >= p), -math.inf)


@careless("top_p_filter")
def drops_the_tail_of_the_given_scores(logits, p):
    probabilities, sums, order = _sorted(logits)
    for b, dropped in enumerate(sums - probabilities >= p):
        logits[b, order[b, dropped]] = -math.inf
    return logits


@alternative("trace_beam_search")
def multiplies_them_out():
    scores = [[0.6 * 0.5, 0.6 * 0.45], [0.6 * 0.45 * 0.9, 0.6 * 0.5 * 0.7]]
    return scores, [[0, 0], [1, 0]], [["old", "small"], ["dog", "fox"]]


@alternative("trace_beam_search")
def returns_a_list_of_tuples():
    return [((0.30, 0.27), (0.243, 0.210)), ((0, 0), (1, 0)), (("old", "small"), ("dog", "fox"))]


@alternative("trace_beam_search")
def returns_tensors_of_numbers():
    scores = torch.tensor([[0.3, 0.27], [0.243, 0.21]])
    return scores, torch.tensor([[0, 0], [1, 0]]), [["old", "small"], ["dog", "fox"]]


@alternative("plain_beam_search")
def keeps_scores_by_sentence(next_log_probs, beam, max_length):
    beams, ended = {(BOS,): 0.0}, {}
    for _ in range(max_length):
        scores = {}
        for ids, score in beams.items():
            if ids[-1] == EOS:
                scores[ids] = score
                continue
            row = next_log_probs(list(ids))
            for token in (row > -math.inf).nonzero().flatten().tolist():
                scores[(*ids, token)] = score + row[token].item()
        beams = {ids: scores[ids] for ids in heapq.nlargest(beam, scores, key=scores.get)}
        ended |= {ids: score for ids, score in beams.items() if ids[-1] == EOS}
    going_on = {ids: score for ids, score in beams.items() if ids[-1] != EOS}
    best = [(scores[ids], ids) for scores in (ended, going_on) for ids in _best_first(scores)]
    return [(score, list(ids[1:])) for score, ids in best[:beam]]


def _best_first(scores):
    return sorted(scores, key=scores.get, reverse=True)


@alternative("plain_beam_search")
def stops_when_all_have_ended(next_log_probs, beam, max_length):
    beams, ended, steps = [(0.0, [BOS])], [], 0
    while steps < max_length and any(ids[-1] != EOS for _, ids in beams):
        candidates = [one for one in beams if one[1][-1] == EOS]
        for score, ids in beams:
            if ids[-1] != EOS:
                best = next_log_probs(ids).topk(4)
                pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
                candidates += [(score + p, ids + [v]) for p, v in pairs if p != -math.inf]
        beams, steps = sorted(candidates, reverse=True)[:beam], steps + 1
        ended += [one for one in beams if one[1][-1] == EOS and len(one[1]) == steps + 1]
    found = sorted(ended, reverse=True) + [one for one in beams if one[1][-1] != EOS]
    return [(score, ids[1:]) for score, ids in found[:beam]]


@careless("plain_beam_search")
def reads_the_numbers_with_numpy(next_log_probs, beam, max_length):
    def totals(score, ids):
        return (score + next_log_probs(ids).numpy()).tolist()

    return _searched(totals, beam, max_length)


@careless("plain_beam_search")
def adds_the_score_on_the_cpu(next_log_probs, beam, max_length):
    def totals(score, ids):
        return (torch.full((1,), score, dtype=torch.float64) + next_log_probs(ids)).tolist()

    return _searched(totals, beam, max_length)


def _searched(totals, beam, max_length):
    """The search over what ``totals(score, ids)`` says of each next token."""
    beams, ended = [(0.0, [BOS])], []
    for _ in range(max_length):
        candidates = [one for one in beams if one[1][-1] == EOS]
        for score, ids in beams:
            if ids[-1] != EOS:
                row = enumerate(totals(score, ids))
                candidates += [(total, [*ids, v]) for v, total in row if total > -math.inf]
        beams = sorted(candidates, reverse=True)[:beam]
        ended += [one for one in beams if one[1][-1] == EOS and one not in ended]
    going_on = [one for one in beams if one[1][-1] != EOS]
    return [(score, ids[1:]) for score, ids in (sorted(ended, reverse=True) + going_on)[:beam]]


class _Cached(nn.Module):
    """A right CachedAttention in small methods; a mistake overrides what it gets wrong."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.keys = self.values = None

    def split(self, x):
        return x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, context):
        return context.transpose(1, 2).flatten(2)

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    def join(self, old, new):
        return new if old is None else torch.cat([old, new], 2)

    def remember(self, k, v):
        self.keys, self.values = self.join(self.keys, k), self.join(self.values, v)
        return self.keys, self.values

    def out(self, x):
        return self.W_o(x)

    def forward(self, x):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        k, v = self.remember(k, v)
        return self.out(self.merge(self.attend(q, k, v)))


@alternative("CachedAttention")
class PutsTheNewInFront(_Cached):
    def join(self, old, new):
        return new if old is None else torch.cat([new, old], 2)


@alternative("CachedAttention")
class KeepsLists(_Cached):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.keys, self.values = [], []

    def remember(self, k, v):
        self.keys.append(k)
        self.values.append(v)
        return torch.cat(self.keys, 2), torch.cat(self.values, 2)


@alternative("CachedAttention")
class RemembersBeforeSplitting(_Cached):
    def forward(self, x):
        k, v = self.W_k(x), self.W_v(x)
        if self.keys is not None:
            k, v = torch.cat([self.keys, k], 1), torch.cat([self.values, v], 1)
        self.keys, self.values = k.detach(), v.detach()
        q, k, v = self.split(self.W_q(x)), self.split(k), self.split(v)
        weights = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).softmax(3)
        return self.W_o(self.merge(weights @ v))


@careless("CachedAttention")
class BeginsWithNothingOnTheCpu(_Cached):
    def join(self, old, new):
        if old is None:
            old = torch.zeros(new.shape[0], new.shape[1], 0, new.shape[3])
        return torch.cat([old, new], 2)


@careless("CachedAttention")
class LetsSeeAllByAMaskOnTheCpu(_Cached):
    def attend(self, q, k, v):
        return masked_attention(q, k, v, torch.ones(1, k.shape[2], dtype=torch.bool))


OUTSIDE = "nothing is learned from a search or a draw: it may be cut off from the graph"
TIES = "of equal scores any may come first"
EQUIVALENT = {
    "top_k_filter: whose result is cut off from the gradient: return logits.masked_fill(logits < "
    "smallest, -math.inf).detach()": OUTSIDE,
    "top_p_filter: whose result is cut off from the gradient: return logits.masked_fill(dropped, "
    "-math.inf).detach()": OUTSIDE,
    "plain_beam_search: without `key` in one call of `sort`: ended.sort(reverse=True)": TIES,
    "plain_beam_search: without `key` in one call of `sort`: candidates.sort(reverse=True)": TIES,
    "plain_beam_search: with one call of `tolist` left out: for token, log_p in "
    "enumerate(next_log_probs(ids)): if log_p > -math.inf: candidates.append((score + log_p, "
    "[*ids, toke…": "a tensor of one number is as good as the number",
    "sample_tokens: whose result is cut off from the gradient: return (sums <= noise.unsqueeze(1) "
    "* sums[:, -1:]).sum(dim=1).detach()": "ids have no gradient",
    "top_k_filter: without `dim` in one call of `topk`: smallest = logits.topk(min(k, "
    "logits.shape[1])).values[:, -1:]": "the last axis is the default",
    "top_p_filter: without `dim` in one call of `sort`: probabilities, order = "
    "torch.softmax(logits, dim=1).sort(descending=True)": "the last axis is the default",
    "top_p_filter: with `ones_like` once where `zeros_like` belongs: dropped = "
    "torch.ones_like(before, dtype=torch.bool).scatter(1, order, before >= p)": (
        "scatter writes to every place"
    ),
}
