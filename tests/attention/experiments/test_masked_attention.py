"""The speller of lesson 06: what it can see, and the least loss that it can honestly reach."""

import math

import pytest
import torch

from attention.experiments.masked_attention import (
    LETTERS,
    LONGEST,
    TRAINED_ON,
    Speller,
    least_loss,
    train_speller,
    write,
)
from attention.masked_attention import causal_mask, masked_attention


def causal(q, k, v):
    return masked_attention(q, k, v, causal_mask(q.shape[-2]))


def test_a_causal_speller_does_not_look_ahead():
    torch.manual_seed(0)
    model, letters = Speller(causal), torch.randint(3, len(LETTERS), (2, 9))
    other = letters.clone()
    other[:, 5:] = 3
    torch.testing.assert_close(model(letters)[:, :5], model(other)[:, :5])


def test_no_word_is_longer_than_the_positions():
    torch.manual_seed(0)
    assert max(map(len, write(Speller(causal), count=20))) <= LONGEST


def test_a_leak_goes_below_the_least_loss_and_a_causal_mask_does_not():
    def ahead(q, k, v):
        T = q.shape[-2]
        return masked_attention(q, k, v, torch.ones(T, T, dtype=torch.bool).tril(1))

    honest, leaking = (train_speller(attend, seed=0, steps=80) for attend in (causal, ahead))
    assert sum(honest.losses[-10:]) / 10 > least_loss() > sum(leaking.losses[-10:]) / 10
    assert honest.known > leaking.known == 0


def test_the_least_loss_is_that_of_a_table_of_all_words():
    letters = sum(len(word) + 1 for word in TRAINED_ON) / len(TRAINED_ON)
    assert least_loss() == pytest.approx(math.log(len(TRAINED_ON)) / letters)
