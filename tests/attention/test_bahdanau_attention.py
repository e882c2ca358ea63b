"""The library of lesson 03: its exercises and the whole translator agree."""

import torch

from attention.bahdanau_attention import BahdanauTranslator
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import EOS


def test_teacher_forcing_scores_what_greedy_decoding_writes():
    torch.manual_seed(1)
    model = BahdanauTranslator(9, 8)
    source, lengths = torch.randint(3, 9, (4, 6)), torch.tensor([6, 2, 5, 1])
    written = model.translate(source, lengths, max_length=7)
    logits, weights = model.look_back(*model.encode(source, lengths), lengths, written)
    before_end = (written == EOS).int().cumsum(1) - (written == EOS).int() == 0
    assert torch.equal(logits.argmax(2)[before_end], written[before_end])
    torch.testing.assert_close(weights.sum(2), torch.ones_like(weights[:, :, 0]))


def test_alignment_does_not_depend_on_the_rest_of_the_batch():
    torch.manual_seed(0)
    corpus = numbers()
    model = BahdanauTranslator(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
    pairs = corpus.test[:2] + corpus.test[-2:]
    batch = corpus.batch(pairs)
    together = _weights(model, batch)
    for row, pair in enumerate(pairs):
        alone = corpus.batch([pair])
        weights = _weights(model, alone)[0]
        T_q, T_k = weights.shape
        torch.testing.assert_close(together[row, :T_q, :T_k], weights)
        assert (together[row, :, T_k:] == 0).all()


def _weights(model, batch):
    encoded = model.encode(batch.source, batch.lengths)
    return model.look_back(*encoded, batch.lengths, batch.target)[1]
