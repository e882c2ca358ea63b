"""Lesson 03: one look instead of an average, and annotations that are exchanged."""

from unittest import mock

import torch

from attention import bahdanau_attention as lesson
from attention.experiments.bahdanau_attention import turned_around
from attention.provided.models import additive_attention, translators
from attention.train import shipped


def hard(queries, keys, v, values, lengths):
    """As `attend`, but all of the weight on the key that has the largest."""
    weights = additive_attention.attend(queries, keys, v, values, lengths)[1]  # (B, T_q, T_k)
    one = torch.zeros_like(weights).scatter(2, weights.argmax(dim=2, keepdim=True), 1.0)
    return one @ values, one


def one_word(at_most=100):
    """Accuracy by number of digits, with soft weights and with one word a letter."""
    model, corpus = shipped.trained("bahdanau_attention")
    found = {}
    for name, attend in (("soft weights", additive_attention.attend), ("one word", hard)):
        with mock.patch.object(lesson, "attend", attend):
            found[name] = translators.accuracy_by_digits(model, corpus, at_most)
    return found


def swapped(encode):
    """As ``encode``, but the annotations of the last two words have changed places."""

    def swap(source, lengths):
        annotations, state = encode(source, lengths)
        rows, turned = torch.arange(len(lengths)), annotations.clone()
        turned[rows, lengths - 3] = annotations[rows, lengths - 2]  # the last one is EOS
        turned[rows, lengths - 2] = annotations[rows, lengths - 3]
        return turned, state

    return swap


def exchanged(at_most=None):
    """What becomes of translations if the annotations of the last two words change places."""
    model, corpus = shipped.trained("bahdanau_attention")
    pairs = turned_around(corpus.test)[:at_most]
    as_before = translators.translations(model, corpus, pairs)
    with mock.patch.object(model, "encode", swapped(model.encode)):
        written = translators.translations(model, corpus, pairs)
    texts = {pair[0]: text for pair, text in zip(pairs, written, strict=True)}
    same = sum(one == other for one, other in zip(as_before, written, strict=True))
    return {"74": texts.get(74), "as before": same, "numbers": len(pairs)}
