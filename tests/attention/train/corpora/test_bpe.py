"""The fast trainer's merges are those of lesson 08, ties included."""

import random

import pytest
import torch

from attention.tokens_and_positions import count_words, docstrings
from attention.tokens_and_positions import train_bpe as lesson
from attention.train.corpora.bpe import train_bpe


@pytest.mark.parametrize("seed", range(30))
def test_merges_of_few_letters_are_the_lessons(seed):
    """Few letters make runs such as 7 7 7, and many totals that are equal."""
    draw = random.Random(seed)
    letters = [255, *range(1, draw.randint(1, 4))]
    words = [draw.choices(letters, k=draw.randint(0, 12)) for _ in range(draw.randint(1, 20))]
    counts = [draw.randint(1, 4) for _ in words]
    assert train_bpe(words, counts, 60) == lesson(words, counts, 60)


def test_merges_of_text_are_the_lessons():
    words, counts = count_words(docstrings(torch.linalg))
    kept = [list(word) for word in words]
    merges = train_bpe(words, counts, 500)
    assert len(merges) == 500 and merges == lesson(words, counts, 500)
    assert words == kept


def test_it_ends_when_no_pair_is_left():
    assert train_bpe([], [], 5) == train_bpe([[97]], [3], 5) == []
    assert train_bpe([[97, 97, 97]], [2], 9) == [(97, 97), (256, 97)]
