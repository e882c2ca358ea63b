"""The task of lesson 08: its positions are those of the lesson, and it learns."""

import torch

from attention.experiments import tokens_and_positions
from attention.experiments.tokens_and_positions import D_MODEL, LooksBack, clocks, turned
from attention.tokens_and_positions import (
    bpe_decode,
    bpe_encode,
    rotary,
    sinusoidal_positions,
)

POSITIONS = torch.arange(5.0, 12.0)


def test_the_clocks_are_the_sinusoids_of_the_lesson():
    hands = torch.view_as_real(clocks(5, 7)).flip(-1).flatten(-2)
    torch.testing.assert_close(hands, sinusoidal_positions(POSITIONS, D_MODEL))


def test_turning_is_what_the_lesson_calls_rotary():
    x = torch.randn(2, 7, D_MODEL)
    torch.testing.assert_close(turned(x, clocks(5, 7)), rotary(x, POSITIONS))


def test_without_positions_the_order_changes_nothing():
    torch.manual_seed(0)
    model, ids = LooksBack("none"), torch.randint(16, (2, 9))
    torch.testing.assert_close(model(ids.flip(1)).flip(1), model(ids))


def test_only_positions_tell_the_two_sentences_apart():
    assert max(tokens_and_positions.word_order()) < 1e-5
    without, with_positions = tokens_and_positions.word_order_with(sinusoidal_positions)
    assert without < 1e-5 < 0.1 < with_positions


def test_only_rotary_scores_depend_on_the_distance_alone():
    spreads = tokens_and_positions.scores_by_position(rotary, sinusoidal_positions)
    assert spreads["rotary"] < 1e-3 < 1 < spreads["added"]


def test_bytes_per_token_grow_with_the_merges():
    found = tokens_and_positions.bytes_per_token(
        "aab aab " * 20, [(97, 97), (32, 256)], bpe_encode, bpe_decode
    )
    assert found["docstrings, kept aside"] > found["German"] >= 1
