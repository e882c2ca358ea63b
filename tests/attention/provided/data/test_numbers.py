"""The numbers corpus: true words, an honest split, padding that can be undone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from num2words import num2words

from attention.provided.data import numbers as module
from attention.provided.data.numbers import in_words, is_test, numbers
from attention.provided.data.tokens import EOS, PAD


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


@given(number=st.integers(0, 10**12 - 1), language=st.sampled_from(["en", "de", "fr"]))
@settings(max_examples=300)
def test_words_are_those_of_num2words(number, language):
    direct = num2words(number, lang=language).lower().replace("-", " ").replace(",", "")
    if language == "en":
        direct = direct.replace(" and ", " ")
    assert in_words(number, language) == direct


def test_no_test_number_is_in_any_training_set(empty_cache):
    short, long = numbers(500, 100, digits=3), numbers(500, 100, digits=9)
    trained = {pair[0] for pair in short.train + long.train}
    assert not any(map(is_test, trained))
    assert all(is_test(pair[0]) for pair in short.test + long.test)
    share = sum(map(is_test, range(100_000))) / 100_000
    assert share == pytest.approx(0.1, abs=0.01)


def test_pairs_are_distinct_and_lengths_have_equal_shares():
    corpus = numbers()
    chosen = [pair[0] for pair in corpus.train + corpus.test]
    assert len(chosen) == len(set(chosen)) == 21_000
    of_length = [sum(len(str(pair[0])) == digits for pair in corpus.train) for digits in (4, 5, 6)]
    assert max(of_length) - min(of_length) <= 1


def test_reading_pairs_of_long_numbers_again_gives_the_same(empty_cache):
    first = numbers(3_000, 300, digits=9)
    assert len(list(empty_cache.iterdir())) == 1
    again = numbers(3_000, 300, digits=9)
    assert (again.train, again.test) == (first.train, first.test)


def test_a_cache_that_cannot_be_written_or_read_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(module, "CACHE", tmp_path / "file")
    assert len(numbers(60, 20, digits=2).train) == 60
    (tmp_path / "broken").mkdir()
    monkeypatch.setattr(module, "CACHE", tmp_path / "broken")
    (tmp_path / "broken" / "numbers-1-en-2-60-20.json").write_text('{"train": [')
    assert len(numbers(60, 20, digits=2).train) == 60


def test_batches_have_true_lengths_and_can_be_decoded():
    corpus = numbers()
    pairs = corpus.test[:40]
    batch = corpus.batch(pairs)
    assert batch.source.dtype == batch.lengths.dtype == batch.target.dtype == torch.int64
    for row, length, target, (_, english, german) in zip(
        batch.source, batch.lengths, batch.target, pairs, strict=True
    ):
        assert " ".join(corpus.source_vocabulary.decode(row)) == english
        assert "".join(corpus.target_vocabulary.decode(target)) == german
        assert row[length - 1] == EOS
        assert (row[length:] == PAD).all() and (row[:length] != PAD).all()


def test_characters_and_french():
    corpus = numbers(100, 20, digits=2, source="fr", unit="characters")
    number, french, _ = next(pair for pair in corpus.train + corpus.test if pair[0] == 95)
    assert french == "quatre vingt quinze"
    row = corpus.batch([(number, french, "")]).source[0]
    assert "".join(corpus.source_vocabulary.decode(row)) == french
