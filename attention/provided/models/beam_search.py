"""A beam search for many sources at once: what holds together the pieces that lesson 13 builds."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.demand import counts, within
from attention.provided.training_steps import evaluation


class Pieces(NamedTuple):
    """The functions that a search is made of, with the signatures that they have in lesson 13."""

    beam_step: Callable[..., Any]
    keep_best: Callable[..., Any]
    follow_beams: Callable[..., Any]
    length_normalised: Callable[..., Any]


def in_batches(
    pieces: Pieces,
    kind: Callable[..., Any],
    model: Any,
    source: Tensor,
    most: Tensor,
    beam: int,
    alpha: float,
    batch: int,
) -> tuple[Tensor, Tensor]:
    """Search for the best translation of each source, in batches of similar length.

    kind     `CachedDecoder` or `RepeatingDecoder`
    source   (B, T_k)  ids, filled up with PAD
    most     (B,)  the largest number of tokens for each source
    returns  (B, T) ids, filled up with PAD, and (B,) their log-probabilities, not normalised

    Raises ValueError for a beam or a batch below 1 or an alpha below 0.
    """
    counts(beam=beam, batch=batch)
    within(0, alpha=alpha)
    beam, batch = int(beam), int(batch)  # PyTorch does not take all of numpy's
    order = (source != PAD).sum(dim=1).argsort(descending=True, stable=True)  # (B,)
    ids = source.new_full((len(source), int(most.max())), PAD)  # (B, T)
    values = torch.zeros(len(source), 1, device=source.device)  # (B, 1)
    with evaluation(model):
        for part in order.split(batch):
            width = (source[part] != PAD).sum(dim=1).max()
            decoder = kind(model, source[part, :width], beam)
            values[part], found = search(pieces, decoder, most[part], beam, alpha)
            ids[part, : found.shape[2]] = found[:, 0]
    lengths = (ids != PAD).sum(dim=1, keepdim=True)  # (B, 1)
    penalties = pieces.length_normalised(torch.ones_like(values), lengths, alpha)
    return ids[:, : int(lengths.max())], (values / penalties).squeeze(1)


def search(
    pieces: Pieces, decoder: Any, most: Tensor, beam: int, alpha: float, n: int = 1
) -> tuple[Tensor, Tensor]:
    """Search side by side for the n best translations of the sources that a decoder has read.

    decoder  a `CachedDecoder` or `RepeatingDecoder`
    most     (B,)  the largest number of tokens for each source
    returns  (B, n) length-normalised log-probabilities, best first, and (B, n, T) ids: of those
             that were finished, or if none was, of those that were cut off; -inf: no more found
    """
    B, K, T, device = len(most), beam, int(most.max()), most.device
    best, kept = torch.full((B, n), -math.inf, device=device), most.new_full((B, n, T), PAD)
    rows = torch.arange(B, device=device)  # (B,) the sources still searched for; B shrinks
    scores = torch.full((B, K), -math.inf, device=device)
    scores[:, 0] = 0.0  # K equal beams would stay equal, so at first only one of them counts
    finished = torch.zeros_like(scores, dtype=torch.bool)  # (B, K)
    tokens, written = most.new_full((B, K), BOS), most.new_full((B, K, T), PAD)
    for t in range(T):
        logits = decoder.step(tokens.flatten())  # (B · K, V)
        log_probs = torch.log_softmax(logits, dim=1).unflatten(0, (-1, K))  # (B, K, V)
        # No more than K tokens of a beam can be chosen. A token of these is known by its place.
        log_probs, ids = log_probs.topk(min(K, log_probs.shape[2]))  # (B, K, K)
        ids = ids.masked_fill(finished.unsqueeze(2), PAD)  # of an ended beam every place means PAD
        scores, origin, place = pieces.beam_step(scores, log_probs, finished)  # (B, K) each
        batch = torch.arange(len(rows), device=device).unsqueeze(1)
        tokens, written = ids[batch, origin, place], written[batch, origin]
        written[:, :, t] = tokens
        ended = (tokens == EOS) & scores.isfinite()  # in this step, and possible at all
        finished = finished[batch, origin] | ended
        values = pieces.length_normalised(scores, (written != PAD).sum(dim=2), alpha)  # (B, K)
        last = most[rows] == t + 1  # (B,)
        cut = last & best[rows, 0].isinf() & ~ended.any(dim=1)  # it ends with nothing finished
        new = pieces.keep_best(best[rows], kept[rows], values, written, ended | cut.unsqueeze(1))
        best[rows], kept[rows] = new
        # What an unfinished beam can reach at most: no loss from now on, and the greatest length.
        hopes = pieces.length_normalised(scores, most[rows].unsqueeze(1), alpha)  # (B, K)
        hopes = hopes.masked_fill(finished, -math.inf).amax(dim=1)
        stays = (hopes > best[rows, -1]) & ~last  # (B,)
        if not stays.any():
            break
        moves = pieces.follow_beams(torch.arange(len(rows) * K, device=device), origin)  # (B · K,)
        decoder.select(moves.view(-1, K)[stays].flatten(), stays)
        state = rows, scores, finished, tokens, written
        rows, scores, finished, tokens, written = (x[stays] for x in state)
    return best, kept
