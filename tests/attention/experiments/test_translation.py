"""Lesson 14's figures: test sets drawn in common vary less, and what is recorded is shown."""

import matplotlib
import torch

matplotlib.use("agg")

from attention.experiments import translation
from attention.translation import bleu, corpus_statistics, paired_bootstrap


def test_test_sets_are_drawn_again_with_the_same_seed():
    rows = translation.drawn(7, seed=1, size=5)
    assert rows.shape == (500, 5)
    assert set(rows.flatten().tolist()) == set(range(7))
    assert torch.equal(rows, translation.drawn(7, seed=1, size=5))
    assert not torch.equal(rows, translation.drawn(7, seed=2, size=5))


def test_drawn_in_common_equal_systems_never_differ(capsys):
    texts = ["dreihundertvierzig", "zweihundertzehn", "neunhunderteins", "siebenhundertelf"]
    wanted = [*texts[:2], "neunhundertzwei", "sechshundertelf"]
    counts = corpus_statistics(*map(translation.in_pieces, (texts, wanted)))
    translation.pairing(paired_bootstrap, bleu, counts, counts)
    told = capsys.readouterr().out
    assert told.count("the same: +0.0 to +0.0, won 0%") == 3
    assert "others: +0.0 to +0.0" not in told


def test_what_is_recorded_is_shown(capsys):
    for show in (translation.samples, translation.rare_words):
        show()
    assert "wanted " in capsys.readouterr().out
    for draw in (translation.beams, translation.short_training, translation.published):
        assert draw()


def test_without_the_corpus_it_is_said_how_to_get_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(translation, "ROOT", tmp_path)
    assert translation.real_sentences(bleu, corpus_statistics) is None
    assert "autograder data fetch multi30k" in capsys.readouterr().out
