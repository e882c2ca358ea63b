"""Lesson 14's library against sacrebleu."""

import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attention.translation import bleu, corpus_statistics, score_of

sentences = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)


@settings(max_examples=100)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5))
@example([("", "a b c d")])
@example([("a b c", "a b c")])
@example([("a b x y z", "a b c d e")])
@example([("", "")])
def test_scores_equal_sacrebleu_s(pairs):
    ours, theirs = map(list, zip(*pairs, strict=True))
    statistics = corpus_statistics(ours, theirs)
    for score, method in ((score_of, "exp"), (bleu, "none")):
        options = {"tokenize": "none", "force": True, "smooth_method": method}
        expected = sacrebleu.corpus_bleu(ours, [theirs], **options).score
        assert score(*statistics) == pytest.approx(expected, abs=1e-9)


def test_no_sentences_score_nothing():
    assert score_of(*corpus_statistics([], [])) == 0.0
