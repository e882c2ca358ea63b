"""Lesson 14's library against sacrebleu."""

import random

import numpy as np
import pytest
import sacrebleu
import sacrebleu.significance
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.decoding import greedy
from attention.train import shipped
from attention.translation import (
    bleu,
    corpus_bleu,
    corpus_statistics,
    ngram_matches,
    paired_bootstrap,
    score_of,
)


def test_tokens_are_not_glued_together():
    assert ngram_matches(["ab", "c"], ["a", "bc"]) == ([0] * 4, [2, 1, 0, 0])


sentences = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)


@settings(max_examples=100)
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
    model, corpus = shipped.trained("transformer_tied")
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


def test_the_score_of_statistics_is_bleu():
    draw = random.Random(1)
    texts = [[" ".join(draw.choices("abc", k=draw.randint(0, 9))) for _ in range(9)] for _ in "ab"]
    statistics = corpus_statistics(*texts)
    assert score_of(*statistics) == pytest.approx(bleu(*statistics))


@pytest.mark.parametrize(("noise", "better"), [(0.35, True), (0.2, False)])
def test_the_paired_bootstrap_judges_as_that_of_sacrebleu(noise, better):
    draw = random.Random(3)
    references = [draw.choices("abcdef", k=12) for _ in range(40)]

    def with_errors(share):
        return [[t if draw.random() > share else "x" for t in row] for row in references]

    systems = with_errors(0.2), with_errors(noise)
    rows = torch.from_numpy(np.random.default_rng(12345).choice(40, size=(200, 40)))
    low, high, wins = paired_bootstrap(
        *(corpus_statistics(one, references) for one in systems), rows
    )
    texts = [[" ".join(row) for row in one] for one in (*systems, references)]
    _, results = sacrebleu.significance.PairedTest(
        [("theirs", texts[1]), ("ours", texts[0])],
        {"BLEU": sacrebleu.BLEU(tokenize="none", references=[texts[2]])},
        None,
        test_type="bs",
        n_samples=200,
    )()
    assert (results["BLEU"][1].p_value < 0.05) == better == (low > 0)
    assert low < high
    assert (wins > 0.975) == better


def test_twice_the_test_sets_changes_no_share():
    statistics = corpus_statistics(["a b c d e", "a b c d"], ["a b c d e", "a b x c d"])
    swapped = tuple(part.flip(0) for part in statistics)
    rows = torch.tensor([[0, 0], [1, 1], [0, 1], [0, 0]])
    once = paired_bootstrap(statistics, swapped, rows)
    assert once[2] == 0.5
    assert paired_bootstrap(statistics, swapped, rows.repeat(2, 1))[2] == 0.5
