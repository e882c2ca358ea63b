"""A beam search for many sources at once, on lesson 13's `beam_step`."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.demand import counts, within
from attention.provided.training_steps import evaluation

Step = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def in_batches(
    step: Step,
    kind: Callable[..., Any],
    model: Any,
    source: Tensor,
    most: Tensor,
    beam: int,
    alpha: float,
    batch: int,
) -> tuple[Tensor, Tensor]:
    """Search for the best translation of each source, in batches of similar length.

    step     `beam_step`
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
    values = torch.zeros(len(source), device=source.device)  # (B,)
    with evaluation(model):
        for part in order.split(batch):
            width = (source[part] != PAD).sum(dim=1).max()
            decoder = kind(model, source[part, :width], beam)
            values[part], found = search(step, decoder, most[part], beam, alpha)
            ids[part, : found.shape[1]] = found
    lengths = (ids != PAD).sum(dim=1)  # (B,)
    return ids[:, : int(lengths.max())], values * penalty(lengths, alpha)


def search(
    step: Step, decoder: Any, most: Tensor, beam: int, alpha: float
) -> tuple[Tensor, Tensor]:
    """Search side by side for the best translations of the sources that a decoder has read.

    decoder  a `CachedDecoder` or `RepeatingDecoder`
    most     (B,)  the largest number of tokens for each source
    returns  (B,) length-normalised log-probabilities and (B, T) ids: of the best that was finished,
             or if none was, of the best that was cut off
    """
    B, K, T, device = len(most), beam, int(most.max()), most.device
    best, kept = torch.full((B,), -math.inf, device=device), most.new_full((B, T), PAD)
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
        scores, origin, place = step(scores, log_probs, finished)  # (B, K) each
        batch = torch.arange(len(rows), device=device).unsqueeze(1)
        tokens, written = ids[batch, origin, place], written[batch, origin]
        written[:, :, t] = tokens
        ended = (tokens == EOS) & scores.isfinite()  # in this step, and possible at all
        finished = finished[batch, origin] | ended
        values = scores / penalty((written != PAD).sum(dim=2), alpha)  # (B, K)
        last = most[rows] == t + 1  # (B,)
        cut = last & best[rows].isinf() & ~ended.any(dim=1)  # it ends with nothing finished
        # What has just ended competes with the best that ended before, and with nothing else.
        values, place = values.masked_fill(~(ended | cut.unsqueeze(1)), -math.inf).max(dim=1)
        better = values > best[rows]  # (B,)
        best[rows[better]] = values[better]
        kept[rows[better]] = written[better, place[better]]
        # What an unfinished beam can reach at most: no loss from now on, and the greatest length.
        hopes = scores / penalty(most[rows].unsqueeze(1), alpha)  # (B, K)
        hopes = hopes.masked_fill(finished, -math.inf).amax(dim=1)
        stays = (hopes > best[rows]) & ~last  # (B,)
        if not stays.any():
            break
        decoder.select(followed(origin)[stays].flatten(), stays)
        state = rows, scores, finished, tokens, written
        rows, scores, finished, tokens, written = (x[stays] for x in state)
    return best, kept


def penalty(lengths: Tensor, alpha: float) -> Tensor:
    """The length penalty of Wu et al. (2016), section 7; ``lengths`` count EOS.

    >>> penalty(torch.tensor([1, 7]), alpha=1.0)
    tensor([1., 2.])
    """
    return ((5 + lengths) / 6) ** alpha


def followed(origin: Tensor) -> Tensor:
    """In which row of a cache, (B · K, …), stands what each new beam goes on from: (B, K).

    origin  (B, K)  the old beam of the same source, 0 … K - 1

    >>> followed(torch.tensor([[0, 0], [1, 0]]))
    tensor([[0, 0],
            [3, 2]])
    """
    B, K = origin.shape
    return K * torch.arange(B, device=origin.device).unsqueeze(1) + origin
