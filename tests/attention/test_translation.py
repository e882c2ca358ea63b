"""Lesson 14's library against sacrebleu."""

import random

import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attention.translation import bleu, corpus_bleu, corpus_statistics, score_of

sentences = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)


@settings(max_examples=100)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5))
@example([("", "a b c d")])
@example([("a b c", "a b c")])
@example([("a b x y z", "a b c d e")])
@example([("", "")])
def test_bleu_equals_sacrebleu(pairs):
    ours, theirs = map(list, zip(*pairs, strict=True))
    expected = sacrebleu.corpus_bleu(ours, [theirs], tokenize="none", force=True).score
    assert corpus_bleu(ours, theirs) == pytest.approx(expected, abs=1e-9)


def test_the_score_of_statistics_is_bleu():
    draw = random.Random(1)
    texts = [[" ".join(draw.choices("abc", k=draw.randint(0, 9))) for _ in range(9)] for _ in "ab"]
    statistics = corpus_statistics(*texts)
    assert score_of(*statistics) == pytest.approx(bleu(*statistics))
    assert corpus_bleu([], []) == 0.0
