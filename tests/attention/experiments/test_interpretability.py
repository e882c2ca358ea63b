"""Lesson 17's figures return what their captions say."""

import pytest
import torch

from attention.experiments import induction
from attention.experiments import interpretability as experiments
from attention.interpretability import ActivationPatching, LeaveOneOut, null_space_dimension
from attention.train import shipped


@pytest.fixture(scope="module")
def numbers():
    model, corpus = shipped.trained("numbers")
    return model.double().requires_grad_(False), corpus


def test_all_of_the_encoders_heads_can_be_removed():
    assert experiments.pruned_heads() == 8


def test_four_letters_need_thirty(numbers):
    model, corpus = numbers
    one = experiments.numbers(corpus, 231)
    weights = experiments.first_map(model, corpus)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(weights)).double())
    lost = LeaveOneOut(model)(one.source, one.target)[0]
    assert experiments.attention_and_losses(weights, lost) == 4


def test_patched_words_are_numbers_where_they_are_in_the_corpus(numbers, capsys):
    model, corpus = numbers
    written = experiments.patch_words(ActivationPatching(model), corpus, 931, 139)
    assert written == {
        "nine": 131, "hundred": 931, "thirty": 931, "one": 939, "EOS": 931, "none": 931
    }  # fmt: skip
    assert "all that differ:   einhundertneununddreißig" in capsys.readouterr().out


def test_a_vector_holds_its_place_too(numbers, capsys):
    found = experiments.move_vectors(*numbers)
    assert found["as they are"] == found["first and last exchanged"] == 576
    assert found["the first in both places"] > 560
    assert "the first in both places  neunhundertdreißig\n" in capsys.readouterr().out


def test_who_copies_the_last_successor_fails_only_after_a_token_with_several():
    def copies(ids, head_masks):
        logits = torch.zeros(*ids.shape, induction.VOCABULARY)
        for row, scores in zip(ids.tolist(), logits, strict=True):
            followed = {}
            for t, token in enumerate(row):
                scores[t, followed.get(token, 0)] = 1
                followed[token] = row[t + 1] if t + 1 < len(row) else 0
        return logits, None

    one, several = induction.by_successors(copies)
    assert one == 1 and several < 1 and several < induction.continued(copies) < 1


def test_a_fixed_distance_continues_all_rows_of_one_period(monkeypatch):
    assert induction.copied_back() < 0.5
    monkeypatch.setattr(induction, "PERIODS", (5, 5))
    assert induction.copied_back() == 1


def test_only_the_decoder_has_more_keys_than_conditions(numbers):
    assert experiments.null_spaces(null_space_dimension, *numbers) == "decoder"
