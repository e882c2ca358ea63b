"""Wrong and right answers to the exercises of lesson 13."""

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


def _ended(log_probs, finished, token=PAD):
    """What a finished beam may do: one token, at no cost."""
    only = torch.full_like(log_probs, -math.inf)
    only[:, :, token] = 0  # not [..., token]: where there is no such token, the error names an axis
    return torch.where(finished[..., None], only, log_probs)


def _best(totals, K, V):
    scores, place = totals.flatten(1).topk(K, 1)
    return scores, place // V, place % V


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


@alternative("beam_step")
def takes_the_best_of_each_beam_first(scores, log_probs, finished):
    K, V = log_probs.shape[1:]
    n = min(K, V)
    best, ids = (scores.unsqueeze(2) + _ended(log_probs, finished)).topk(n, dim=2)
    values, place = best.flatten(1).topk(K, dim=1)
    return values, torch.div(place, n, rounding_mode="floor"), ids.flatten(1).gather(1, place)


@alternative("beam_step")
def sorts_all_candidates(scores, log_probs, finished):
    B, K, V = log_probs.shape
    totals = (scores[:, :, None] + log_probs).masked_fill(finished[:, :, None], -math.inf)
    totals[:, :, PAD] = torch.where(finished, scores, totals[:, :, PAD])
    values, place = totals.reshape(B, K * V).sort(dim=1, descending=True)
    place = place[:, :K]
    return values[:, :K], place.div(V, rounding_mode="trunc"), place.remainder(V)


@alternative("beam_step")
def goes_through_sources(scores, log_probs, finished):
    V, rows = log_probs.shape[2], []
    for one, following, ends in zip(scores, log_probs, finished, strict=True):
        candidates = []
        for k, end in enumerate(ends.tolist()):
            for v in range(V):
                added = following[k, v].item() if not end else (0.0 if v == PAD else -math.inf)
                candidates.append((one[k].item() + added, k, v))
        candidates.sort(key=lambda candidate: candidate[0], reverse=True)
        rows.append(candidates[: len(one)])
    columns = [[[c[i] for c in row] for row in rows] for i in range(3)]
    return tuple(
        torch.tensor(column, dtype=t, device=scores.device)
        for column, t in zip(columns, (scores.dtype, torch.int64, torch.int64), strict=True)
    )


@careless("beam_step")
def makes_the_only_way_on_the_cpu(scores, log_probs, finished):
    only = torch.full((log_probs.shape[2],), -math.inf)
    only[PAD] = 0
    totals = scores[..., None] + torch.where(finished[..., None], only, log_probs)
    return _best(totals, *log_probs.shape[1:])


@careless("beam_step")
def blocks_in_the_given_log_probs(scores, log_probs, finished):
    log_probs[finished] = -math.inf
    log_probs[..., PAD].masked_fill_(finished, 0.0)
    return _best(scores[..., None] + log_probs, *log_probs.shape[1:])


def _kept(best, kept, values, written):
    """The N best of all, with their ids."""
    values, rows = torch.cat([best, values], 1), torch.cat([kept, written], 1)
    values, place = values.topk(best.shape[1], 1)
    return values, rows[torch.arange(len(rows), device=rows.device)[:, None], place]


def _only(values, ended, fill=-math.inf):
    return values.masked_fill(~ended, fill)


@alternative("keep_best")
def gathers_ids(best, kept, values, written, ended):
    values = torch.cat([values.masked_fill(~ended, -math.inf), best], 1)
    values, place = values.topk(best.shape[1], 1)
    places = place[:, :, None].expand(-1, -1, written.shape[2])
    return values, torch.cat([written, kept], 1).gather(1, places)


@alternative("keep_best")
def sorts_all_first(best, kept, values, written, ended):
    values = torch.cat([best, torch.where(ended, values, -math.inf)], 1)
    order, rows = values.argsort(1, descending=True)[:, : best.shape[1]], [*kept, *written]
    pairs = zip(rows[: len(kept)], rows[len(kept) :], order, strict=True)
    return values.gather(1, order), torch.stack([torch.cat([a, b])[o] for a, b, o in pairs])


@alternative("keep_best")
def lets_beams_in_one_by_one(best, kept, values, written, ended):
    best, kept = best.clone(), kept.clone()
    for k in range(values.shape[1]):
        for n in range(best.shape[1]):
            ahead = (best[:, :n] >= values[:, k : k + 1]).sum(1) == n  # all before are better
            here = ended[:, k] & ahead & (best[:, n] < values[:, k])
            rows = here[:, None]
            shifted = torch.cat([best[:, :n], values[:, k : k + 1], best[:, n:-1]], 1)
            best = torch.where(rows, shifted, best)
            shifted = torch.cat([kept[:, :n], written[:, k : k + 1], kept[:, n:-1]], 1)
            kept = torch.where(rows[:, :, None], shifted, kept)
            ended = ended & ~(here[:, None] & (torch.arange(len(ended[0])).to(here.device) == k))
    return best, kept


@careless("keep_best")
def makes_minus_infinity_on_the_cpu(best, kept, values, written, ended):
    nothing = torch.full(values.shape, -math.inf, dtype=values.dtype)
    return _kept(best, kept, torch.where(ended, values, nothing), written)


@careless("keep_best")
def writes_into_the_values(best, kept, values, written, ended):
    values[~ended] = -math.inf
    return _kept(best, kept, values, written)


@careless("keep_best")
def fills_with_a_million(best, kept, values, written, ended):
    values, rows = _kept(best, kept, _only(values, ended, -1e6), written)
    return values.masked_fill(values == -1e6, -math.inf), rows


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


@alternative("follow_beams")
def unflattens(cache, origin):
    B, K = origin.shape
    sources = torch.arange(B, device=cache.device)[:, None]
    return cache.unflatten(0, (B, K))[sources, origin].flatten(0, 1)


@alternative("follow_beams")
def gathers(cache, origin):
    B, K = origin.shape
    flat = cache.reshape(B, K, -1)
    return flat.gather(1, origin[:, :, None].expand(-1, -1, flat.shape[2])).reshape(cache.shape)


@alternative("follow_beams")
def goes_row_by_row(cache, origin):
    sources = cache.chunk(len(origin))
    return torch.cat([rows[places] for rows, places in zip(sources, origin, strict=True)])


@careless("follow_beams")
def numbers_the_sources_on_the_cpu(cache, origin):
    B, K = origin.shape
    return cache[(K * torch.arange(B)[:, None] + origin).flatten()]


@careless("follow_beams")
def copies_rows_to_the_cpu(cache, origin):
    B, K = origin.shape
    moved = torch.zeros(cache.shape, dtype=cache.dtype)
    for b in range(B):
        for j in range(K):
            moved[b * K + j] = cache[b * K + origin[b, j]]
    return moved


OUTSIDE = "nothing is learned from a search or a draw: it may be cut off from the graph"
EQUIVALENT = {
    "top_k_filter: whose result is cut off from the gradient: return logits.masked_fill(logits < "
    "smallest, -math.inf).detach()": OUTSIDE,
    "top_p_filter: whose result is cut off from the gradient: return logits.masked_fill(dropped, "
    "-math.inf).detach()": OUTSIDE,
    "beam_step: whose result is cut off from the gradient: return (scores.detach(), (place // "
    "V).detach(), (place % V).detach())": OUTSIDE,
    "keep_best: whose result is cut off from the gradient: return (best[:, :N].detach(), "
    "ids.take_along_dim(place[:, :N].unsqueeze(2), dim=1).detach())": OUTSIDE,
    "keep_best: with `kept` once where `best` belongs: N = kept.shape[1]": "both hold N hypotheses",
    "keep_best: without `dim` in one call of `sort`: best, place = values.sort(descending=True, "
    "stable=True)": "the last axis is the default",
    "keep_best: without `stable` in one call of `sort`: best, place = values.sort(dim=1, "
    "descending=True)": "of equal values any may be kept",
    "keep_best: with False once where True belongs: best, place = values.sort(dim=1, "
    "descending=True, stable=False)": "of equal values any may be kept",
    "follow_beams: whose result is cut off from the gradient: return cache[(first + "
    "origin).flatten()].detach()": OUTSIDE,
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
    "beam_step: without `dim` in one call of `topk`: scores, place = totals.topk(K)": (
        "the last axis is the default"
    ),
    "follow_beams: with `cache` once where `origin` belongs: first = K * torch.arange(B, "
    "device=cache.device).unsqueeze(1)": "both are on one device",
}
