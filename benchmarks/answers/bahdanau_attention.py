"""Lesson 03: one look instead of an average, and annotations that are exchanged."""

from unittest import mock

import torch

from attention import bahdanau_attention as lesson
from attention.provided.data.tokens import PAD
from attention.provided.models import additive_attention, translators
from attention.sequence_to_sequence import shift_right
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


@torch.no_grad()
def one_word_once(at_most=100):
    """Letters right, given the true ones before, if one letter at a time looks at one word only."""
    model, corpus = shipped.trained("bahdanau_attention")
    found = {}
    for digits, pairs in corpus.test_by_digits(at_most).items():
        batch, hits = corpus.batch(pairs), []
        annotations, state = model.encode(batch.source, batch.lengths)
        keys, v = model.attention.W_k(annotations), model.attention.v.weight[0]
        for x in model.target_embedding(shift_right(batch.target)).unbind(1):
            asked = model.attention.W_q(state)[:, None], keys, v, annotations, batch.lengths
            states = []
            for attend in (hard, additive_attention.attend):
                context = attend(*asked)[0][:, 0]  # (B, c)
                states.append(model.decoder(torch.cat([x, context], dim=1), state))
                hits += [model.output(torch.cat([states[-1], context], dim=1)).argmax(dim=1)]
            state = states[1]
        right = torch.stack(hits[::2], dim=1) == batch.target  # (B, T_q)
        found[digits] = right[batch.target != PAD].double().mean().item()
    return found


def exchanged(sources=("two thousand three hundred", "three thousand two hundred")):
    """What is written if the annotations, or the words, of *two* and *three* change places."""
    model, corpus = shipped.trained("bahdanau_attention")

    def written(text):
        return translators.translations(model, corpus, [(0, text, "")])[0]

    def swap(source, lengths):
        annotations, state = encode(source, lengths)
        return annotations[:, [2, 1, 0, 3, 4]], state

    encode, words = model.encode, [written(one) for one in sources]
    with mock.patch.object(model, "encode", swap):
        found = {"annotations": written(sources[0])}
    return {"as it is": words[0], **found, "words": words[1], "not needed": written("four seventy")}
