"""The library of lesson 02: the pieces together, beyond what its checks look at."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import EOS
from attention.sequence_to_sequence import Seq2Seq, run_gru

F64 = torch.float64


@given(seed=st.integers(0, 10**6), T=st.integers(1, 9), d=st.integers(1, 6))
@settings(max_examples=30)
def test_run_gru_is_nn_gru(seed, T, d):
    torch.manual_seed(seed)
    gru = nn.GRU(3, d, batch_first=True, dtype=F64)
    x = torch.randn(2, T, 3, dtype=F64)
    torch.testing.assert_close(run_gru(x, *gru.parameters()), gru(x)[0])


@pytest.mark.parametrize("reverse", [False, True])
def test_translations_do_not_depend_on_the_rest_of_the_batch(reverse):
    torch.manual_seed(0)
    corpus = numbers()
    model = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary), reverse=reverse)
    pairs = corpus.test[:3] + corpus.test[-3:]
    batch = corpus.batch(pairs)
    together = model.encoding(batch.source, batch.lengths)
    for row, pair in enumerate(pairs):
        alone = corpus.batch([pair])
        torch.testing.assert_close(together[row], model.encoding(alone.source, alone.lengths)[0])


def test_teacher_forcing_scores_what_greedy_decoding_writes():
    torch.manual_seed(1)
    model = Seq2Seq(9, 8)
    source, lengths = torch.randint(3, 9, (4, 6)), torch.tensor([6, 2, 5, 1])
    written = model.translate(source, lengths, max_length=7)
    logits = model(source, lengths, written)
    before_end = (written == EOS).int().cumsum(1) - (written == EOS).int() == 0
    assert torch.equal(logits.argmax(2)[before_end], written[before_end])
