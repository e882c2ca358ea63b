"""The N best translations that a beam search meets; lesson 13's search keeps only the best."""

import math
from itertools import count
from typing import Any

import torch
from torch import Tensor

from attention.decoding import beam_step, follow_beams, length_normalised
from attention.provided.data import BOS, EOS, PAD
from attention.provided.key_value_cache import CachedDecoder, evaluation, limits

Hypothesis = tuple[float, list[int]]  # its score, and its ids up to EOS


def n_best(
    model: Any,
    source: Tensor,
    n: int,
    beam: int,
    alpha: float,
    max_length: int | tuple[float, float],
) -> list[list[Hypothesis]]:
    """Return up to n finished translations of each source, best first.

    source   (B, T_k)  ids, filled up with PAD
    n        how many, at most beam
    returns  a list for each source: scores, which are length-normalised log-probabilities, and
             ids; if none was finished, the best that was cut off

    The other arguments are those of `decoding.beam_search`.
    """
    most = limits(source, max_length)  # (B,)
    B, K, device = len(source), beam, source.device
    rows = torch.arange(B, device=device).unsqueeze(1)  # (B, 1)
    scores = torch.full((B, K), -math.inf, device=device)
    scores[:, 0] = 0.0  # K equal beams would stay equal, so at first only one of them counts
    over = torch.zeros_like(scores, dtype=torch.bool)  # (B, K): finished, cut off or given up
    written = source.new_full((B, K, 1), BOS)  # (B, K, 1 + T)
    found: list[list[Hypothesis]] = [[] for _ in range(B)]
    with evaluation(model):
        decoder = CachedDecoder(model, source, K)
        for length in count(1):
            logits = decoder.step(written[:, :, -1].flatten())  # (B · K, V)
            log_probs = torch.log_softmax(logits, dim=1).unflatten(0, (B, K))
            scores, origin, tokens = beam_step(scores, log_probs, over)  # (B, K) each
            written = torch.cat([written[rows, origin], tokens.unsqueeze(2)], dim=2)
            over = over[rows, origin]
            last = (most <= length).unsqueeze(1)  # (B, 1)
            lengths = (written[:, :, 1:] != PAD).sum(dim=2)  # (B, K)
            values = length_normalised(scores, lengths, alpha)  # (B, K)
            ends = ((tokens == EOS) | last) & ~over & values.isfinite()
            for row, place in ends.nonzero().tolist():
                ids = written[row, place, 1:].tolist()
                found[row].append((values[row, place].item(), ids))
            over = over | ends | last | _hopeless(scores, most, alpha, over | ends, found, n)
            if over.all():
                return [_ranked(one, n) for one in found]
            moves = follow_beams(torch.arange(B * K, device=device), origin)  # (B · K,)
            decoder.select(moves, torch.ones(B, dtype=torch.bool, device=device))
    raise AssertionError("every source has a limit")


def _ranked(found: list[Hypothesis], n: int) -> list[Hypothesis]:
    """The best n that were finished, or the best that was cut off."""
    finished = [one for one in found if one[1][-1] == EOS]
    if not finished:
        return sorted(found, key=lambda one: one[0], reverse=True)[:1]
    return sorted(finished, key=lambda one: one[0], reverse=True)[:n]


def _hopeless(
    scores: Tensor,
    most: Tensor,
    alpha: float,
    over: Tensor,
    found: list[list[Hypothesis]],
    n: int,
) -> Tensor:
    """Say of which sources, (B, 1), no unfinished beam can get among the n best any more.

    What it can reach at most: no loss from now on, and the greatest length.
    """
    hopes = length_normalised(scores, most.unsqueeze(1), alpha).masked_fill(over, -math.inf)
    bars = []
    for one in found:
        finished = sorted((value for value, ids in one if ids[-1] == EOS), reverse=True)
        bars.append(finished[n - 1] if len(finished) >= n else -math.inf)
    bar = torch.tensor(bars, device=hopes.device)  # (B,)
    return ((hopes.amax(dim=1) <= bar) & bar.isfinite()).unsqueeze(1)
