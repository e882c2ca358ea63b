"""Lesson 13: from scores to sentences.

Token ids are those of `attention.provided.data.numbers`: PAD fills up, BOS begins, EOS ends.
"""

import math

import torch
from torch import nn

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, split_heads
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.demand import counts, positive, within
from attention.provided.models.beam_search import in_batches
from attention.provided.models.key_value_cache import CachedDecoder, RepeatingDecoder, limits
from attention.provided.training_steps import evaluation


def sample_tokens(logits, noise, temperature=1.0):
    """Draw one token per row from softmax(logits / temperature).

    logits       (B, V)  scores; -inf for what must never be drawn
    noise        (B,)    uniform random numbers: at least 0, less than 1
    temperature  a number above 0: below 1 sharpens, above 1 flattens
    returns      (B,)    ids: the first token at which the probabilities, added up in the order of
                         the ids, exceed the row's noise. There is always one, even where float32
                         rounds the last sum to less than 1

    >>> sample_tokens(torch.zeros(2, 4), torch.tensor([0.1, 0.6]))
    tensor([0, 2])
    """
    # exercise: about 3 lines
    probabilities = torch.softmax(logits / temperature, dim=1)  # (B, V)
    sums = probabilities.cumsum(dim=1)  # (B, V)
    return (sums <= noise.unsqueeze(1) * sums[:, -1:]).sum(dim=1)  # (B,)


def top_k_filter(logits, k):
    """Keep the scores of the k best tokens of each row; all others become -inf.

    logits   (B, V)  scores; k may be larger than V
    returns  (B, V)  scores; if several share the k-th place, it does not matter which of them stay

    >>> top_k_filter(torch.tensor([[1.0, 4.0, 3.0, 2.0]]), k=2)
    tensor([[-inf, 4., 3., -inf]])
    """
    # exercise: about 2 lines
    smallest = logits.topk(min(k, logits.shape[1]), dim=1).values[:, -1:]  # (B, 1)
    return logits.masked_fill(logits < smallest, -math.inf)  # (B, V)


def top_p_filter(logits, p):
    """Keep the fewest tokens of each row whose probabilities reach p together: its nucleus.

    logits   (B, V)  scores
    p        between 0 and 1, both excluded
    returns  (B, V)  the scores of the most probable tokens, up to and including the one that
                     reaches p; all others become -inf

    Source: Holtzman et al. (2020), section 3.1.

    >>> top_p_filter(torch.tensor([[0.5, 0.1, 0.4]]).log(), p=0.8).exp()
    tensor([[0.5000, 0.0000, 0.4000]])
    """
    # exercise: about 4 lines
    probabilities, order = torch.softmax(logits, dim=1).sort(dim=1, descending=True)  # (B, V)
    before = probabilities.cumsum(dim=1) - probabilities  # (B, V), of all that are better
    dropped = torch.zeros_like(before, dtype=torch.bool).scatter(1, order, before >= p)
    return logits.masked_fill(dropped, -math.inf)  # (B, V)


def trace_beam_search():
    """Two steps of a beam search with K = 2, worked out by hand.

    returns  scores, origins and tokens: three lists, each with a row of two for each of the steps.
             A row describes the two beams after the step, best first, by the probability of the
             beginning, the number of the old beam that it continues, 0 or 1, and the word that
             was added
    """
    # exercise: about 4 lines
    scores = [[0.3, 0.27], [0.243, 0.21]]
    origins = [[0, 0], [1, 0]]
    tokens = [["old", "small"], ["dog", "fox"]]
    return scores, origins, tokens


def plain_beam_search(next_log_probs, beam, max_length):
    """Search for one sentence with lists and loops.

    next_log_probs  a function: the ids so far, a list from BOS on -> (V,), the log-probabilities of
                    all tokens as the next one; -inf: impossible, no candidate
    beam            how many beginnings are kept after each step: K
    max_length      the largest number of tokens, EOS included
    returns         at most K pairs (log-probability, list of the ids after BOS): the sentences that
                    have ended, best first, then the beams that were cut off, best first

    Raises ValueError for a beam or a max_length below 1.

    >>> def ends_or_goes_on(ids):  # EOS with 0.25, token 3 with 0.75
    ...     return torch.tensor([0, 0, 0.25, 0.75]).log()
    >>> found = plain_beam_search(ends_or_goes_on, beam=2, max_length=1)
    >>> [(round(math.exp(log_p), 2), ids) for log_p, ids in found]
    [(0.25, [2]), (0.75, [3])]
    """
    counts(beam=beam, max_length=max_length)
    # exercise: about 15 lines
    beams, ended = [(0.0, [BOS])], []
    for _ in range(max_length):
        candidates = []
        for score, ids in beams:
            if ids[-1] == EOS:
                candidates.append((score, ids))
                continue
            for token, log_p in enumerate(next_log_probs(ids).tolist()):
                if log_p > -math.inf:
                    candidates.append((score + log_p, [*ids, token]))
        candidates.sort(key=lambda one: one[0], reverse=True)
        beams = candidates[:beam]
        ended += [one for one in beams if one[1][-1] == EOS and one not in ended]
    ended.sort(key=lambda one: one[0], reverse=True)
    found = ended + [one for one in beams if one[1][-1] != EOS]
    return [(score, ids[1:]) for score, ids in found[:beam]]


def beam_step(scores, log_probs, finished):
    """Let every beam go on with every token, and keep the K best of all these for each source.

    scores     (B, K)     log-probability of each beam so far
    log_probs  (B, K, V)  of the next token, for each beam
    finished   (B, K)     bool: the beam has ended, so it goes on with PAD, at no cost, and with
                          nothing else
    returns    three (B, K), best first: the new scores, the old beam that each comes from
               (0 … K - 1), and the token that was added

    >>> log_probs = torch.tensor([[[-9.0, -1.0, -2.0], [-9.0, -3.0, -1.0]]])
    >>> beam_step(torch.tensor([[-1.0, -1.5]]), log_probs, torch.tensor([[False, False]]))
    (tensor([[-2.0000, -2.5000]]), tensor([[0, 1]]), tensor([[1, 2]]))
    """
    B, K, V = log_probs.shape
    goes_on = torch.full_like(log_probs, -math.inf)
    goes_on[:, :, PAD] = 0
    log_probs = torch.where(finished.unsqueeze(2), goes_on, log_probs)  # (B, K, V)
    totals = (scores.unsqueeze(2) + log_probs).flatten(1)  # (B, K · V)
    scores, place = totals.topk(K, dim=1)  # (B, K)
    return scores, place // V, place % V


class CachedAttention(nn.Module):
    """Causal self-attention that reads one position per call and remembers all positions before it.

    d_model, n_heads  as for `MultiHeadAttention`, whose projections it has

    What is remembered are keys and values, after their projections.
    """

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        self.keys = self.values = None  # nothing read yet; later (B, H, T, d_head)

    def forward(self, x):
        """Read the next position of each sequence, and let it look at itself and all before.

        x        (B, 1, d_model)
        returns  (B, 1, d_model)
        """
        # exercise: about 8 lines
        q = split_heads(self.W_q(x), self.n_heads)  # (B, H, 1, d_head)
        k = split_heads(self.W_k(x), self.n_heads)  # (B, H, 1, d_head)
        v = split_heads(self.W_v(x), self.n_heads)  # (B, H, 1, d_head)
        if self.keys is not None:
            k = torch.cat([self.keys, k], dim=2)  # (B, H, T, d_head)
            v = torch.cat([self.values, v], dim=2)  # (B, H, T, d_head)
        self.keys, self.values = k, v
        return self.W_o(merge_heads(masked_attention(q, k, v)))  # (B, 1, d_model)


def write(model, source, choose, max_length=100, cache=True):
    """Translate all rows side by side, token by token; the model is used in evaluation mode.

    model       a `Transformer`
    source      (B, T_k)  ids, filled up with PAD
    choose      a function that picks one token for each row of logits: (B, vocab_size) -> (B,)
    max_length  the largest number of tokens, or (a, b) for a · length of the source + b
    cache       whether keys and values are kept, or all is computed again at every step
    returns     (B, T)  ids, filled up with PAD after EOS

    Raises ValueError without a source, and where max_length leaves no room for a token.
    """
    with evaluation(model):
        decoder = (CachedDecoder if cache else RepeatingDecoder)(model, source)
        tokens, most = source.new_full((len(source),), BOS), limits(source, max_length)  # (B,)
        written, ended = [], tokens == EOS
        while not ended.all():
            tokens = choose(decoder.step(tokens)).masked_fill(ended, PAD)  # (B,)
            written.append(tokens)
            ended = ended | (tokens == EOS) | (most <= len(written))
        return torch.stack(written, dim=1)  # (B, T)


def greedy(model, source, max_length=100, cache=True):
    """Write the most probable next token each time: (B, T_k) -> (B, T); see `write`."""
    return write(model, source, lambda logits: logits.argmax(dim=1), max_length, cache)


def sample(model, source, temperature=1.0, top_k=None, top_p=None, seed=0, max_length=100):
    """Write random translations: (B, T_k) -> (B, T); see `write` and the two filters.

    Raises ValueError where `write` does, and for a temperature that is not above 0, a top_k below
    1, a top_p outside (0, 1] or a seed below 0. None stands for no filter.
    """
    positive(temperature=temperature)
    counts(0, seed=seed)
    if top_k is not None:
        counts(top_k=top_k)
    if top_p is not None:
        positive(top_p=top_p)
        within(0, 1, top_p=top_p)
    draw = torch.Generator().manual_seed(int(seed))

    def choose(logits):
        logits = logits / temperature  # first: the filters see what will be drawn from
        logits = top_k_filter(logits, top_k) if top_k else logits
        logits = top_p_filter(logits, top_p) if top_p else logits
        return sample_tokens(logits, torch.rand(len(logits), generator=draw).to(logits.device))

    return write(model, source, choose, max_length)


def beam_search(
    model, source, beam=5, alpha=0.6, max_length=100, cache=True, batch=128, return_scores=False
):
    """Search for the translations with the largest length-normalised log-probability.

    beam     number of hypotheses that go on for each source: K
    alpha    of the length penalty, at least 0
    batch    how many sources are searched for at once; they are taken in order of length
    returns  (B, T)  ids, filled up with PAD after EOS: the best that was finished, or if none was,
             the best that was cut off; with return_scores=True also (B,), their log-probabilities,
             not normalised

    The other arguments are those of `write`. Raises ValueError where `write` does, and for a beam
    or a batch below 1 or an alpha below 0.
    """
    kind, most = CachedDecoder if cache else RepeatingDecoder, limits(source, max_length)
    ids, totals = in_batches(beam_step, kind, model, source, most, beam, alpha, batch)
    return (ids, totals) if return_scores else ids


# Inputs on which a wrong answer shows


def break_top_p_filter():
    """An input on which `forgets_to_divide` and `top_p_filter` keep different tokens.

    returns  a tuple (logits, p), as `top_p_filter` takes them
    """
    return torch.zeros(1, 4), 0.9
