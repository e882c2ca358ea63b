"""Answers to lesson 12 that were written without a look at its checks."""

import heapq
import math
from collections import Counter

import torch
from torch import nn

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, split_heads
from attention.provided import demand
from attention.provided.data.tokens import BOS, EOS
from tests.locked import right, wrong


@wrong("sample_tokens", cause="multiplies the scores by the temperature", kind="value")
def sample_tokens_1(logits, noise, temperature=1.0):
    sums = (logits * temperature).softmax(dim=1).cumsum(dim=1)
    return (sums <= noise[:, None] * sums[:, -1:]).sum(dim=1)


@wrong(
    "sample_tokens",
    cause="at noise 0 it draws a token of probability 0: < instead of <=",
    kind="extreme",
)
def sample_tokens_3(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(dim=1).cumsum(dim=1)
    return (sums < noise[:, None] * sums[:, -1:]).sum(dim=1)


@wrong("sample_tokens", cause="draws by itself and ignores the noise", kind="value")
def sample_tokens_5(logits, noise, temperature=1.0):
    return torch.multinomial((logits / temperature).softmax(dim=1), 1).squeeze(1)


@wrong("sample_tokens", cause="adds up over the batch instead of over the vocabulary", kind="value")
def sample_tokens_7(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(dim=1).cumsum(dim=0)
    return (sums <= noise[:, None] * sums[:, -1:]).sum(dim=1)


@wrong("sample_tokens", cause="returns (B, 1) instead of (B,)", kind="shape")
def sample_tokens_8(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(dim=1).cumsum(dim=1)
    return torch.searchsorted(sums, noise[:, None] * sums[:, -1:], right=True)


@wrong(
    "sample_tokens",
    cause="returns the last token that ends before the noise, one too small",
    kind="value",
)
def sample_tokens_10(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(dim=1).cumsum(dim=1)
    return ((sums <= noise[:, None] * sums[:, -1:]).sum(dim=1) - 1).clamp(min=0)


@right("sample_tokens", how="searchsorted to the right in sums that are scaled to end at 1")
def sample_tokens_11(logits, noise, temperature=1.0):
    sums = torch.softmax(logits / temperature, dim=-1).cumsum(dim=-1)
    aim = (noise * sums[:, -1]).unsqueeze(1)
    return torch.searchsorted(sums.contiguous(), aim, right=True).squeeze(1)


@right("sample_tokens", how="the first place that exceeds the noise, by argmax of a bool")
def sample_tokens_12(logits, noise, temperature=1.0):
    sums = torch.cumsum((logits / temperature).softmax(1), 1)
    exceeds = sums > noise.view(-1, 1) * sums[:, -1:]
    return exceeds.int().argmax(dim=1)


@wrong("top_k_filter", cause="writes into the given logits", kind="state")
def top_k_filter_5(logits, k):
    bar = logits.topk(min(k, logits.shape[1]), dim=1).values[:, -1:]
    logits[logits < bar] = -math.inf
    return logits


@wrong("top_k_filter", cause="fills with -1e9 instead of -inf", kind="extreme")
def top_k_filter_8(logits, k):
    bar = logits.topk(min(k, logits.shape[1]), dim=1).values[:, -1:]
    return logits.masked_fill(logits < bar, -1e9)


@right("top_k_filter", how="scatters the k best into a tensor of -inf")
def top_k_filter_9(logits, k):
    values, places = logits.topk(min(k, logits.shape[-1]), dim=-1)
    return torch.full_like(logits, -math.inf).scatter(-1, places, values)


@wrong("top_p_filter", cause="returns probabilities instead of scores", kind="value")
def top_p_filter_4(logits, p):
    probs, order = logits.softmax(dim=1).sort(dim=1, descending=True)
    dropped = probs.cumsum(dim=1) - probs >= p
    dropped = torch.zeros_like(dropped).scatter(1, order, dropped)
    return logits.masked_fill(dropped, -math.inf).softmax(dim=1)


@wrong("top_p_filter", cause="writes into the given logits", kind="state")
def top_p_filter_8(logits, p):
    probs, order = logits.softmax(dim=1).sort(dim=1, descending=True)
    dropped = probs.cumsum(dim=1) - probs >= p
    logits[torch.zeros_like(dropped).scatter(1, order, dropped)] = -math.inf
    return logits


@wrong("top_p_filter", cause="uses the order of the first row for all rows", kind="size")
def top_p_filter_10(logits, p):
    probs = logits.softmax(dim=1)
    order = probs[0].argsort(descending=True)
    probs = probs[:, order]
    dropped = torch.zeros_like(probs, dtype=torch.bool)
    dropped[:, order] = probs.cumsum(dim=1) - probs >= p
    return logits.masked_fill(dropped, -math.inf)


@right("top_p_filter", how="a loop over the rows that adds until p is reached")
def top_p_filter_11(logits, p):
    result = torch.full_like(logits, -math.inf)
    for row, probs in enumerate(logits.softmax(dim=1)):
        reached = 0.0
        for token in probs.argsort(descending=True).tolist():
            if reached >= p:
                break
            result[row, token] = logits[row, token]
            reached += probs[token].item()
    return result


@right("top_p_filter", how="a shifted sum, brought back by the argsort of the order")
def top_p_filter_12(logits, p):
    order = logits.argsort(dim=-1, descending=True)
    sums = logits.softmax(-1).gather(-1, order).cumsum(-1)
    before = nn.functional.pad(sums[:, :-1], (1, 0))
    keep = (before < p).gather(-1, order.argsort(dim=-1))
    return torch.where(keep, logits, -math.inf)


class _Cache(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        self.keys = self.values = None


@wrong(
    "CachedAttention",
    cause="one memory for all objects of the class, so two layers mix",
    kind="state",
)
class CachedAttention_6(_Cache):
    kept = {}

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.kept.clear()

    def forward(self, x):
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        if self.kept:
            k = torch.cat([self.kept["keys"], k], dim=2)
            v = torch.cat([self.kept["values"], v], dim=2)
        self.kept.update(keys=k, values=v)
        self.keys, self.values = k, v
        return self.W_o(merge_heads(masked_attention(q, k, v)))


@right(
    "CachedAttention", how="an empty cache of length 0 in the first call; heads joined by a reshape"
)
class CachedAttention_10(_Cache):
    def forward(self, x):
        B, _, d_model = x.shape
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        old_k = k[:, :, :0] if self.keys is None else self.keys
        old_v = v[:, :, :0] if self.values is None else self.values
        self.keys, self.values = torch.cat((old_k, k), -2), torch.cat((old_v, v), -2)
        context = masked_attention(q, self.keys, self.values)  # (B, H, 1, d_head)
        return self.W_o(context.reshape(B, 1, d_model))


def _grams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


@wrong("ngram_matches", cause="returns four pairs instead of two lists", kind="type")
def ngram_matches_9(hypothesis, reference):
    pairs = []
    for n in range(1, 5):
        ours, theirs = _grams(hypothesis, n), _grams(reference, n)
        pairs.append(((ours & theirs).total(), ours.total()))
    return pairs


@right("ngram_matches", how="crosses n-grams off a list of the reference's")
def ngram_matches_10(hypothesis, reference):
    matches, totals = [0] * 4, [0] * 4
    for n in (1, 2, 3, 4):
        left = [list(reference[i : i + n]) for i in range(len(reference) - n + 1)]
        for start in range(len(hypothesis) - n + 1):
            gram = list(hypothesis[start : start + n])
            totals[n - 1] += 1
            if gram in left:
                left.remove(gram)
                matches[n - 1] += 1
    return matches, totals


def _halved(m, t):
    """Precisions with sacrebleu's smoothing, from lists of four."""
    halving, precisions = 1.0, []
    for match, total in zip(m, t, strict=True):
        if match == 0:
            halving /= 2
        precisions.append((match or halving) / total)
    return precisions


@wrong("bleu", cause="divides by 0 where an order has no n-grams", kind="crash")
def bleu_8(matches, totals, lengths, reference_lengths):
    m, t = matches.sum(0).tolist(), totals.sum(0).tolist()
    c, r = lengths.sum().item(), reference_lengths.sum().item()
    mean = math.prod(_halved(m, t)) ** 0.25
    return 100 * min(1.0, math.exp(1 - r / c)) * mean if any(m) else 0.0


@wrong("bleu", cause="smooths by adding one to all matches and totals", kind="value")
def bleu_11(matches, totals, lengths, reference_lengths):
    m, t = matches.sum(0).tolist(), totals.sum(0).tolist()
    if not any(m) or not all(t):
        return 0.0
    c, r = lengths.sum().item(), reference_lengths.sum().item()
    precisions = [(a + 1) / (b + 1) for a, b in zip(m, t, strict=True)]
    return 100 * min(1.0, math.exp(1 - r / c)) * math.prod(precisions) ** 0.25


@right("bleu", how="logarithms in Python, the penalty as a case")
def bleu_12(matches, totals, lengths, reference_lengths):
    matched, counted = matches.sum(dim=0).tolist(), totals.sum(dim=0).tolist()
    if sum(matched) == 0 or min(counted) == 0:
        return 0.0
    c, r = int(lengths.sum()), int(reference_lengths.sum())
    logarithm = 0.0 if c >= r else 1 - r / c
    misses = 0
    for m, t in zip(matched, counted, strict=True):
        misses += m == 0
        logarithm += (math.log(m) if m else -misses * math.log(2)) / 4 - math.log(t) / 4
    return 100 * math.exp(logarithm)


@right("bleu", how="returns a tensor of one number in float64")
def bleu_13(matches, totals, lengths, reference_lengths):
    m, t = matches.sum(0).to(torch.float64), totals.sum(0).to(torch.float64)
    if m.sum() == 0 or (t == 0).any():
        return torch.tensor(0.0)
    numerators = m.where(m > 0, 2.0 ** -(m == 0).cumsum(0).double())
    brevity = (1 - reference_lengths.sum().double() / lengths.sum()).clamp(max=0).exp()
    return 100 * brevity * (numerators / t).prod() ** 0.25


# --- trace_beam_search -----------------------------------------------------------------------


@wrong(
    "trace_beam_search",
    cause="compares the words' own probabilities, not multiplied by those of the beginnings",
    kind="value",
)
def trace_beam_search_1():
    return [[0.6, 0.5], [1.0, 0.7]], [[1, 0], [0, 1]], [["dog", "old"], ["EOS", "fox"]]


@wrong(
    "trace_beam_search",
    cause="a list for each step, of scores, origins and tokens, instead of three lists",
    kind="type",
)
def trace_beam_search_8():
    first = [[0.3, 0.27], [0, 0], ["old", "small"]]
    second = [[0.243, 0.21], [1, 0], ["dog", "fox"]]
    return [first, second]


@wrong(
    "trace_beam_search",
    cause="a row for each beam, with its two steps, instead of a row for each step",
    kind="value",
)
def trace_beam_search_9():
    return [[0.3, 0.243], [0.27, 0.21]], [[0, 1], [0, 0]], [["old", "dog"], ["small", "fox"]]


@wrong(
    "trace_beam_search",
    cause="multiplies the last words by the wrong beginnings: dog by old, fox by small",
    kind="value",
)
def trace_beam_search_10():
    scores = [[0.3, 0.27], [0.3 * 0.9, 0.27 * 0.7]]
    return scores, [[0, 0], [1, 0]], [["old", "small"], ["dog", "fox"]]


@wrong("trace_beam_search", cause="names the old beams by their last words", kind="type")
def trace_beam_search_11():
    origins = [["the", "the"], ["small", "old"]]
    return [[0.3, 0.27], [0.243, 0.21]], origins, [["old", "small"], ["dog", "fox"]]


@wrong(
    "trace_beam_search",
    cause="the second step is sorted, its origins are not: dog is said to continue old",
    kind="value",
)
def trace_beam_search_12():
    scores = [[0.6 * 0.5, 0.6 * 0.45], [0.27 * 0.9, 0.3 * 0.7]]
    return scores, [[0, 0], [0, 1]], [["old", "small"], ["dog", "fox"]]


@right("trace_beam_search", how="lists and loops over the table")
def trace_beam_search_13():
    table = {
        "the": {"old": 0.5, "small": 0.45, "dog": 0.05},
        "a": {"dog": 0.6, "fox": 0.4},
        "old": {"dog": 0.3, "fox": 0.7},
        "small": {"dog": 0.9, "fox": 0.1},
    }
    beams, steps = [(0.6, None, "the"), (0.4, None, "a")], []
    for _ in range(2):
        candidates = [
            (score * p, number, word)
            for number, (score, _, last) in enumerate(beams)
            for word, p in table[last].items()
        ]
        beams = sorted(candidates, reverse=True)[:2]
        steps.append(beams)
    return tuple([[beam[part] for beam in step] for step in steps] for part in range(3))


# --- plain_beam_search ---------------------------------------------------------------------------


def _best(pairs, K=None):
    return sorted(pairs, key=lambda pair: pair[0], reverse=True)[:K]


def _longer(next_log_probs, score, ids):
    for token, log_p in enumerate(next_log_probs(ids).tolist()):
        if log_p > -math.inf:
            yield score + log_p, [*ids, token]


def _without_bos(pairs):
    return [(score, ids[1:]) for score, ids in pairs]


@wrong("plain_beam_search", cause="a finished beam is no candidate any more, and frees its place")
def plain_beam_search_1(next_log_probs, beam, max_length):
    demand.counts(beam=beam, max_length=max_length)
    beams, ended = [(0.0, [BOS])], []
    for _ in range(max_length):
        candidates = []
        for score, ids in beams:
            candidates += _longer(next_log_probs, score, ids)
        best = _best(candidates, beam)
        ended += [pair for pair in best if pair[1][-1] == EOS]
        beams = [pair for pair in best if pair[1][-1] != EOS]
    return _without_bos((_best(ended) + beams)[:beam])


@wrong("plain_beam_search", cause="keeps no list: what falls out of the beam after its end is lost")
def plain_beam_search_2(next_log_probs, beam, max_length):
    demand.counts(beam=beam, max_length=max_length)
    beams = [(0.0, [BOS])]
    for _ in range(max_length):
        candidates = []
        for score, ids in beams:
            if ids[-1] == EOS:
                candidates.append((score, ids))
            else:
                candidates += _longer(next_log_probs, score, ids)
        beams = _best(candidates, beam)
    ended = [pair for pair in beams if pair[1][-1] == EOS]
    return _without_bos(ended + [pair for pair in beams if pair[1][-1] != EOS])


@wrong("plain_beam_search", cause="lists every candidate that ends, also those not among the best")
def plain_beam_search_3(next_log_probs, beam, max_length):
    demand.counts(beam=beam, max_length=max_length)
    beams, ended = [(0.0, [BOS])], []
    for _ in range(max_length):
        candidates = []
        for score, ids in beams:
            if ids[-1] == EOS:
                candidates.append((score, ids))
                continue
            for pair in _longer(next_log_probs, score, ids):
                candidates.append(pair)
                if pair[1][-1] == EOS:
                    ended.append(pair)
        beams = _best(candidates, beam)
    left = [pair for pair in beams if pair[1][-1] != EOS]
    return _without_bos((_best(ended) + left)[:beam])


@wrong("plain_beam_search", cause="sorts finished and unfinished beams together at the end")
def plain_beam_search_4(next_log_probs, beam, max_length):
    demand.counts(beam=beam, max_length=max_length)
    beams, ended = [(0.0, [BOS])], []
    for _ in range(max_length):
        candidates = []
        for score, ids in beams:
            if ids[-1] == EOS:
                candidates.append((score, ids))
            else:
                candidates += _longer(next_log_probs, score, ids)
        beams = _best(candidates, beam)
        ended += [pair for pair in beams if pair[1][-1] == EOS and pair not in ended]
    left = [pair for pair in beams if pair[1][-1] != EOS]
    return _without_bos(_best(ended + left, beam))


@wrong("plain_beam_search", cause="puts a finished beam on the list again at every later step")
def plain_beam_search_5(next_log_probs, beam, max_length):
    demand.counts(beam=beam, max_length=max_length)
    beams, ended = [(0.0, [BOS])], []
    for _ in range(max_length):
        candidates = []
        for score, ids in beams:
            if ids[-1] == EOS:
                candidates.append((score, ids))
            else:
                candidates += _longer(next_log_probs, score, ids)
        beams = _best(candidates, beam)
        ended += [pair for pair in beams if pair[1][-1] == EOS]
    left = [pair for pair in beams if pair[1][-1] != EOS]
    return _without_bos((_best(ended) + left)[:beam])


@right("plain_beam_search", how="dictionaries from sentences to scores, and the loop ends early")
def plain_beam_search_6(next_log_probs, beam, max_length):
    demand.counts(beam=beam, max_length=max_length)
    beams, ended, steps = {(BOS,): 0.0}, {}, 0
    while steps < max_length and any(ids[-1] != EOS for ids in beams):
        candidates = {}
        for ids, score in beams.items():
            if ids[-1] == EOS:
                candidates[ids] = score
                continue
            log_probs = next_log_probs(list(ids))
            for token in torch.isfinite(log_probs).nonzero().flatten().tolist():
                candidates[(*ids, token)] = score + log_probs[token].item()
        names = sorted(candidates, key=candidates.get, reverse=True)[:beam]
        beams = {ids: candidates[ids] for ids in names}
        ended |= {ids: score for ids, score in beams.items() if ids[-1] == EOS}
        steps += 1
    order = sorted(ended, key=lambda ids: -ended[ids]) + [ids for ids in beams if ids not in ended]
    known = beams | ended
    return [(known[ids], list(ids[1:])) for ids in order[:beam]]


@right("plain_beam_search", how="triples of score, whether it goes on, and ids; heapq's nlargest")
def plain_beam_search_7(next_log_probs, beam, max_length):
    demand.counts(beam=beam, max_length=max_length)

    def continued(one):
        score, goes_on, ids = one
        if not goes_on:
            return [one]
        after = enumerate(next_log_probs([BOS, *ids]).double().tolist())
        return [(score + p, token != EOS, [*ids, token]) for token, p in after if p != -math.inf]

    beams, everything = [(0.0, True, [])], []
    for _ in range(max_length):
        found = [new for one in beams for new in continued(one)]
        beams = heapq.nlargest(beam, found, key=lambda one: one[0])
        everything.extend(one for one in beams if not one[1] and one not in everything)
    everything.extend(one for one in beams if one[1])
    everything.sort(key=lambda one: (one[1], -one[0]))
    return [(score, ids) for score, _, ids in everything[:beam]]
