"""The board of lesson 13: how translators in doubt write: greedily, with a beam, or by chance.

Budget: the translations written of a number times the longest that one may get. What is ranked is
what the board of lesson 11 ranks.
"""

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.decoding import beam_search, greedy, length_normalised, sample
from attention.experiments import training
from attention.provided.data.numbers import numbers as numbers_in_words
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.models import translators
from attention.provided.models.translators import share_right, texts_of
from attention.provided.training_steps import evaluation, one_thread
from attention.sequence_to_sequence import masked_cross_entropy
from autograder.leaderboard import limits, numbers
from autograder.leaderboard.entries import Kind

STEPS = 80  # after 60, as in the lesson, too few long numbers are right to rank by
TOKENS, VOCABULARY = 400, 24
MEASURE, UNIT, SIZE = numbers.MEASURE, numbers.UNIT, "tokens"
BUDGET = f"{TOKENS} tokens a number (beam or samples × max_length)"

KINDS: dict[str, Kind] = {
    "how": ("greedy", "beam", "sample"),
    "max_length": (int, 1, TOKENS),
    "beam": (int, 1, TOKENS),
    "alpha": (float, 0.0, 10.0),
    "samples": (int, 1, TOKENS),
    "temperature": (float, 0.05, 20.0),
    "top_k": (int, 1, VOCABULARY),
    "top_p": (float, 0.01, 1.0),
}
# The beam of the lesson, which samples at temperature 1, in the order of KINDS.
LESSON = ("beam", 80, 5, 1.0, 5, 1.0, VOCABULARY, 1.0)
USUAL: dict[str, Any] = dict(zip(KINDS, LESSON, strict=True))


def refuse(settings: Mapping[str, Any]) -> int:
    """The tokens that may be written for a number. Raises Refused where they are too many."""
    side_by_side = {
        "greedy": (1, "translation"),
        "beam": (settings["beam"], "beams"),
        "sample": (settings["samples"], "samples"),
    }
    count, words = side_by_side[settings["how"]]
    return limits.tokens(count, words, settings["max_length"], TOKENS)


def score(settings: Mapping[str, Any], seed: int, secret: int) -> float:
    """The share of right translations that a seed's translator writes with these settings."""
    with one_thread():
        corpus, pairs = numbers_in_words(), numbers.held_out(secret)
        ids = written(_translator(seed), corpus.batch(pairs).source, settings, seed)
    return share_right(texts_of(corpus, ids), [pair[2] for pair in pairs])


def written(model: Any, source: Tensor, settings: Mapping[str, Any], seed: int) -> Tensor:
    """What a translator writes with these settings: (B, T_k) -> (B, T)."""
    longest, alpha = settings["max_length"], settings["alpha"]
    if settings["how"] == "greedy":
        return greedy(model, source, longest)
    if settings["how"] == "beam":
        return beam_search(model, source, settings["beam"], alpha, longest)
    top_p = settings["top_p"] if settings["top_p"] < 1 else None
    filters = settings["temperature"], settings["top_k"], top_p
    drawn, values = [], []
    for number in range(settings["samples"]):
        ids = sample(model, source, *filters, seed * TOKENS + number, longest)
        values.append(_value(model, source, ids, alpha))
        drawn.append(F.pad(ids, (0, longest - ids.shape[1])))
    best = torch.stack(values).argmax(dim=0)  # (B,), the first one if none has ended
    return torch.stack(drawn)[best, torch.arange(len(source))]


def _value(model: Any, source: Tensor, ids: Tensor, alpha: float) -> Tensor:
    """What the model thinks of whole translations, length-normalised: (B,); -inf without EOS."""
    with evaluation(model):
        scores = model(source, ids).float()  # (B, T, V)
    scores[:, :, [PAD, BOS]] = -torch.inf  # nobody writes these
    log_p = scores.log_softmax(dim=2).gather(2, ids.unsqueeze(2)).squeeze(2)  # (B, T)
    real = ids != PAD
    total = log_p.masked_fill(~real, 0).sum(dim=1)
    value: Tensor = length_normalised(total, real.sum(dim=1), alpha)
    return value.masked_fill(~(ids == EOS).any(dim=1), -torch.inf)


@functools.cache
def _translator(seed: int) -> Any:
    """The same for all entries of a board."""
    corpus = numbers_in_words()
    model = training.fresh(corpus, seed)
    batches = corpus.batches(translators.BATCH, STEPS, seed)
    translators.train(model, batches, STEPS, masked_cross_entropy)
    return model.eval()
