"""One point of a recorded experiment: a translator is trained from a seed, and measured."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attention.provided import translators
from attention.provided.data import PAD, Corpus, Pair, in_words


def measured(model: nn.Module, corpus: Corpus, seed: int, steps: int) -> dict[str, Any]:
    """Train a translator on the batches of a seed, and measure it.

    returns  "digits" and "accuracy", lists; "loss", the mean of the last tenth of the steps;
             "parameters"; and with attention the shares of `in_their_frames`
    """
    losses = translators.train(model, corpus.batches(translators.BATCH, steps, seed), steps, _loss)
    last = losses[-max(1, len(losses) // 10) :]
    shares = translators.accuracy_by_digits(model, corpus)
    found = {
        "digits": list(shares),
        "accuracy": [round(share, 3) for share in shares.values()],
        "loss": round(sum(last) / len(last), 4),
        "parameters": translators.size(model),
    }
    if getattr(model, "attention", None) is not None:
        found |= in_their_frames(model, corpus)
    return found


def _loss(logits: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD)


def turned_around(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose last two digits German turns around: 21 to 99, and not 30, 40, …"""
    return [pair for pair in pairs if pair[0] % 100 > 20 and pair[0] % 10]


def frames(pairs: Sequence[Pair]) -> list[list[tuple[str, int, int, int]]]:
    """Say which letters translate the tens, and which the ones and "und", of pairs turned around.

    returns  for each pair two tuples: "ones" or "tens", the index of the first letter, the index
             after the last letter, the index of the English word
    """
    found = []
    for number, english, german in pairs:
        words, tens = len(english.split()), german.rindex("und") + 3
        ones = len(german) - len(in_words(number % 100, "de"))
        parts = [("ones", ones, tens, words - 1), ("tens", tens, len(german), words - 2)]
        found.append(parts)
    return found


@torch.no_grad()
def in_their_frames(model: Any, corpus: Corpus) -> dict[str, float]:
    """Say how many letters look most at the word that they translate, where German turns around.

    returns  shares of the letters of all test numbers of `turned_around`: "ones" (with "und"),
             "tens"; and of their first letters only: "first of ones", "first of tens"
    """
    pairs = turned_around(corpus.test)
    batch = corpus.batch(pairs)
    with translators.one_thread():
        weights = model.align(batch.source, batch.lengths, batch.target)[1]  # (B, T_q, T_k)
    hits: dict[str, list[bool]] = {"ones": [], "tens": [], "first of ones": [], "first of tens": []}
    for best, parts in zip(weights.argmax(dim=2).tolist(), frames(pairs), strict=True):
        for part, first, end, word in parts:
            found = [best[letter] == word for letter in range(first, end)]
            hits[part] += found
            hits[f"first of {part}"].append(found[0])
    return {part: round(sum(found) / len(found), 3) for part, found in hits.items()}
