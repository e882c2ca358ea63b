"""The N best translations that a beam search meets; lesson 13's search keeps only the best."""

import math
from typing import Any

from torch import Tensor

from attention.decoding import search
from attention.provided.data.tokens import EOS, PAD
from attention.provided.demand import counts, within
from attention.provided.models.key_value_cache import CachedDecoder, limits
from attention.provided.training_steps import evaluation

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
    n        how many
    returns  a list for each source: scores, which are length-normalised log-probabilities, and
             ids; if none was finished, the best that was cut off

    The other arguments are those of `decoding.beam_search`. Raises ValueError where that does, and
    for an n below 1.
    """
    counts(n=n, beam=beam)
    within(0, alpha=alpha)
    most = limits(source, max_length)  # (B,)
    with evaluation(model):
        best, kept = search(CachedDecoder(model, source, beam), most, beam, alpha, n)
    pairs = zip(best.tolist(), kept.tolist(), strict=True)
    return [_hypotheses(values, rows) for values, rows in pairs]


def _hypotheses(values: list[float], rows: list[list[int]]) -> list[Hypothesis]:
    """What was found of one source, without PAD; of what was cut off, the best alone."""
    found = [
        (value, [i for i in ids if i != PAD])
        for value, ids in zip(values, rows, strict=True)
        if value > -math.inf
    ]
    return found if EOS in rows[0] else found[:1]
