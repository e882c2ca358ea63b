"""The board of lesson 14: how early translators, which are in doubt, search for a translation.

Budget: the beams times the longest that a translation may get. What is ranked is the BLEU of
numbers that nobody has seen, as the lesson cuts them into parts.
"""

import copy
import functools
from collections.abc import Mapping
from typing import Any

import torch

from attention.decoding import beam_search
from attention.experiments.decoding import early_translator
from attention.experiments.translation import pieces_of
from attention.provided.data.numbers import numbers
from attention.provided.training_steps import one_thread
from attention.translation import corpus_bleu
from autograder.leaderboard import limits
from autograder.leaderboard.entries import Kind
from autograder.leaderboard.numbers import held_out

TOKENS = 320
MEASURE = "the BLEU of translations of numbers that nobody has seen"
UNIT, SIZE = "", "tokens"  # BLEU has no unit
BUDGET = f"{TOKENS} tokens a number (beam × max_length)"

KINDS: dict[str, Kind] = {
    "beam": (int, 1, TOKENS),
    "alpha": (float, 0.0, 10.0),
    "max_length": (int, 1, TOKENS),
    "temperature": (float, 0.05, 20.0),
}
# The settings of the lesson itself, in the order of KINDS.
LESSON = (4, 1.0, 80, 1.0)
USUAL: dict[str, Any] = dict(zip(KINDS, LESSON, strict=True))


def refuse(settings: Mapping[str, Any]) -> int:
    """The tokens that a search may write for a number. Raises Refused where they are too many."""
    return limits.tokens(settings["beam"], "beams", settings["max_length"], TOKENS)


def score(settings: Mapping[str, Any], seed: int, secret: int) -> float:
    """BLEU, from 0 to 1, of what the early translator of a seed writes with these settings."""
    with one_thread():
        corpus, pairs = numbers(), held_out(secret)
        model = copy.deepcopy(_translator(seed))
        with torch.no_grad():
            model.generator.weight /= settings["temperature"]  # and so are all scores: no bias
        how = settings["beam"], settings["alpha"], settings["max_length"]
        ids = beam_search(model, corpus.batch(pairs).source, *how)
    texts = ["".join(corpus.target_vocabulary.decode(row)) for row in ids]
    found, wanted = ([pieces_of(text) for text in one] for one in (texts, [p[2] for p in pairs]))
    return float(corpus_bleu(found, wanted)) / 100


@functools.cache
def _translator(seed: int) -> Any:
    """The same for all entries of a board."""
    return early_translator(numbers(), seed)[0]
