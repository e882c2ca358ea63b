"""Lesson 14's library against sacrebleu."""

import random

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.decoding import greedy
from attention.provided import translators
from attention.translation import (
    bleu,
    corpus_bleu,
    corpus_statistics,
    ngram_matches,
)


def test_tokens_are_not_glued_together():
    assert ngram_matches(["ab", "c"], ["a", "bc"]) == ([0] * 4, [2, 1, 0, 0])


sentences = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5))
def test_bleu_equals_sacrebleu(pairs):
    ours, theirs = map(list, zip(*pairs, strict=True))
    expected = sacrebleu.corpus_bleu(ours, [theirs], tokenize="none", force=True).score
    assert corpus_bleu(ours, theirs) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "pair",
    [("", "a b c d"), ("a b c", "a b c"), ("a b x y z", "a b c d e"), ("x y", "a b"), ("", "")],
)
def test_bleu_at_its_edges_equals_sacrebleu(pair):
    expected = sacrebleu.corpus_bleu([pair[0]], [[pair[1]]], tokenize="none").score
    assert corpus_bleu([pair[0]], [pair[1]]) == pytest.approx(expected, abs=1e-9)


def test_bleu_of_real_outputs_equals_sacrebleu():
    model, corpus = translators.trained("transformer_tied")
    pairs = [pair for some in corpus.test_by_digits(20).values() for pair in some]
    rows = greedy(model, corpus.batch(pairs).source)
    ours = [" ".join(corpus.target_vocabulary.decode(row)) for row in rows]
    theirs = [" ".join(pair[2]) for pair in pairs]
    expected = sacrebleu.corpus_bleu(ours, [theirs], tokenize="none").score
    assert 50 < expected < 100
    assert corpus_bleu(ours, theirs) == pytest.approx(expected, abs=1e-9)


def test_statistics_of_a_part_give_the_bleu_of_that_part():
    draw = random.Random(0)
    texts = [[" ".join(draw.choices("abcd", k=8)) for _ in range(30)] for _ in range(2)]
    statistics = corpus_statistics(*texts)
    part = bleu(*(one[5:20] for one in statistics))
    assert part == pytest.approx(corpus_bleu(texts[0][5:20], texts[1][5:20]))
    assert corpus_bleu([], []) == 0.0
