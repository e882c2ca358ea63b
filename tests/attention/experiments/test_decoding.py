"""What lesson 13 shows: a language as a table, and what a model says of sentences asked again."""

import math

import pytest
import torch

from attention.decoding import beam_search
from attention.experiments import decoding as experiments
from tests.attention.test_decoding import small, sources

WORDS = ["PAD", "BOS", "EOS", "a", "dog"]


def test_a_language_becomes_a_table():
    table = experiments.as_table(WORDS, {"BOS": {"a": 0.75, "dog": 0.25}, "a": {"dog": 1.0}})
    assert table.exp().sum(dim=1).tolist() == pytest.approx([1.0] * 5)
    assert table[1, 3].exp().item() == pytest.approx(0.75)
    assert table[3, 4] == table[4, 2] == 0  # a dog, and then the end
    assert table[4, 3] == -math.inf


def test_asked_again_the_model_says_what_the_search_says():
    model, source = small(), sources()
    ids, said = beam_search(model, source, 2, 0.0, 8, return_scores=True)
    asked = experiments.log_probability(model, source, ids)
    torch.testing.assert_close(asked.float(), said.float())


def test_what_is_recorded_is_drawn():
    shares = experiments.sampled_sentences()
    assert shares["nucleus of 0.9"] > shares["the 3 best"] > shares["all letters"]
    assert len(experiments.wider_beams()) == 2
    assert experiments.beams_against_greedy() == "B"
