"""Held-out numbers, and what is written of them."""

import torch

from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import EOS
from attention.provided.models.translators import long_numbers, share_right, texts_of


def test_the_numbers_are_held_out_and_come_with_their_texts():
    corpus = numbers()
    source, wanted = long_numbers(corpus, each=3)
    held_out = {pair[2]: pair for pair in corpus.test}
    assert len(source) == len(wanted) == 12
    assert all(held_out[text][0] > 99 for text in wanted)
    batch = corpus.batch([held_out[text] for text in wanted])
    assert torch.equal(batch.source, source)
    assert texts_of(corpus, batch.target) == wanted


def test_a_text_ends_at_eos():
    corpus = numbers()
    letters = [corpus.target_vocabulary.tokens.index(letter) for letter in "drei"]
    assert texts_of(corpus, [torch.tensor([*letters, EOS, letters[0]])]) == ["drei"]


def test_the_share_of_right_texts():
    assert share_right(["eins", "zwei", "drei", ""], ["eins", "zwo", "drei", "null"]) == 0.5
