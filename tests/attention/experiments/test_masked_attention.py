"""Lesson 06: how far information travels under a mask, and what its speller can see and reach."""

import math

import pytest
import torch

from attention.experiments.masked_attention import (
    LETTERS,
    TRAINED_ON,
    Speller,
    companions,
    least_loss,
    steps_to_meet,
    train_speller,
    what_leaks_are_worth,
    wrong_ways_to_mask,
)
from attention.masked_attention import causal_mask, longformer_mask, masked_attention


def causal(q, k, v):
    return masked_attention(q, k, v, causal_mask(q.shape[-2]))


@pytest.mark.parametrize(("window", "steps"), [(0, None), (1, 8), (2, 4), (3, 3), (8, 1)])
def test_a_window_needs_as_many_layers_as_it_takes_steps_from_end_to_end(window, steps):
    assert steps_to_meet(longformer_mask(9, window, [])) == steps


def test_wrong_ways_to_mask_are_wrong():
    right, filled, late, lowest = wrong_ways_to_mask(masked_attention, causal_mask).values()
    assert torch.equal(right[0], torch.zeros(4))
    assert filled[1, 3] > 0 and late[1].sum() < 0.99 and lowest[0].tolist() == [0.25] * 4
    assert len(what_leaks_are_worth().lines) == 4


def test_a_causal_speller_does_not_look_ahead():
    torch.manual_seed(0)
    model, letters = Speller(causal), torch.randint(3, len(LETTERS), (2, 9))
    other = letters.clone()
    other[:, 5:] = 3
    torch.testing.assert_close(model(letters)[:, :5], model(other)[:, :5])


def test_a_leak_goes_below_the_least_loss_and_a_causal_mask_does_not():
    def ahead(q, k, v):
        T = q.shape[-2]
        return masked_attention(q, k, v, torch.ones(T, T, dtype=torch.bool).tril(1))

    honest, leaking = (train_speller(attend, seed=0, steps=60) for attend in (causal, ahead))
    assert sum(honest.losses[-10:]) / 10 > least_loss() > sum(leaking.losses[-10:]) / 10
    assert honest.known > leaking.known == 0


def test_the_least_loss_is_that_of_a_table_of_all_words():
    letters = sum(len(word) + 1 for word in TRAINED_ON) / len(TRAINED_ON)
    assert least_loss() == pytest.approx(math.log(len(TRAINED_ON)) / letters)


def test_a_translator_that_sees_its_padding_is_best_beside_a_long_number(capsys):
    assert companions() > 0.95
    said = capsys.readouterr().out
    assert "seen, no padding            2 digits 0.29 0.50 1.00" in said
    hidden = [line[28:] for line in said.splitlines() if line.startswith("hidden")]
    assert len({*hidden}) == 1
