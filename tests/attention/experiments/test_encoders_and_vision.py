"""The figures of lesson 16: what they return, from trainings that are cut short."""

import pytest
import torch

from attention.encoders_and_vision import (
    HierarchicalAttention,
    VisionTransformer,
    attention_pooling,
    blank_each_patch,
    mask_tokens,
    mean_pooling,
)
from attention.experiments import encoders_and_vision as experiments
from attention.provided.data import digits

PIECES = HierarchicalAttention, mean_pooling, attention_pooling


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "1")  # a few steps for each training


@pytest.mark.parametrize("name", experiments.READERS)
def test_what_is_padded_changes_no_reader(name):
    torch.manual_seed(0)
    reader, words = experiments.Reader(name, 8, *PIECES), torch.randint(1, 20, (2, 3, 4))
    wide = torch.nn.functional.pad(words, (0, 2, 0, 1))
    torch.testing.assert_close(reader(wide), reader(words))


@pytest.mark.long
def test_readers_are_trained_and_drawn(short):
    experiments.show_documents()
    readers, able = experiments.four_readers(*PIECES)
    assert {name: len(trained) for name, trained in readers.items()} == dict.fromkeys(
        experiments.READERS, 3
    )
    assert able == 0
    picked = experiments.what_a_reader_picks(readers["two levels"])
    assert len(picked) == 3 and 0 <= min(picked) <= max(picked) <= 1


def test_the_gain_of_hidden_words_is_that_of_the_record():
    experiments.show_hidden_words(mask_tokens)
    assert 0.08 <= experiments.draw_hidden_words() <= 0.12


@pytest.mark.long
def test_a_vision_transformer_is_trained_and_looked_at(short):
    experiments.show_digits()
    model = experiments.train_on_digits(VisionTransformer)
    convolution, attention = experiments.fixed_and_variable_weights(model)
    assert convolution == 0 < attention
    axes = experiments.where_it_looks(model, blank_each_patch)
    assert axes.shape == (3, 5)
    assert 0.7 < experiments.errors_on_digits() < 0.85
    assert 0.7 < experiments.blank_one_patch() < 0.95


def test_moved_images_are_the_images_with_paper_coming_in():
    images, draw = torch.rand(50, 1, 4, 6), torch.Generator().manual_seed(0)
    assert torch.equal(digits.moved(images, 0, draw), images)
    wide, found = torch.nn.functional.pad(images, (1, 1, 1, 1)), set()
    for image, moved in zip(wide, digits.moved(images, 1, draw), strict=True):
        ways = [(y, x) for y in range(3) for x in range(3)]
        (way,) = [w for w in ways if torch.equal(image[:, w[0] :, w[1] :][:, :4, :6], moved)]
        found.add(way)
    assert len(found) == 9
