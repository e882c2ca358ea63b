"""Random languages: the best sentence is known, and a beam that drops nothing finds it."""

import itertools

import pytest
import torch

from attention.decoding import plain_beam_search
from attention.experiments.decoding import (
    LONGEST,
    TOKENS,
    best_log_probability,
    random_language,
    share_found,
)
from attention.provided.data.tokens import BOS, EOS, PAD


@pytest.mark.parametrize("sureness", [0.5, 3.0])
def test_the_best_sentence_is_that_of_all_sentences(sureness):
    table = random_language(sureness, torch.Generator().manual_seed(7))
    assert table.exp().sum(dim=1).tolist() == pytest.approx([1.0] * TOKENS)
    assert (table[:, [PAD, BOS]].exp() == 0).all()
    words, best = range(EOS + 1, TOKENS), float("-inf")
    for length in range(1, LONGEST + 1):
        for middle in itertools.product(words, repeat=length - 1):
            for last in [EOS] if length < LONGEST else range(EOS, TOKENS):
                ids = [BOS, *middle, last]
                steps = itertools.pairwise(ids)
                best = max(best, sum(table[one, two].item() for one, two in steps))
    assert best_log_probability(table) == pytest.approx(best, abs=1e-5)
    found = plain_beam_search(lambda ids: table[ids[-1]], 5000, LONGEST)
    assert max(found)[0] == pytest.approx(best, abs=1e-5)  # a sentence that was cut off, perhaps


def test_a_wider_beam_misses_less():
    shares = share_found(plain_beam_search, 1.0, seed=0, widths=(1, 8), count=20)
    assert shares[0] < shares[1]
    assert shares[1] > 0.9
