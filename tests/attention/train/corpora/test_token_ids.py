"""The corpora of the training command: splits, vocabularies, and text to ids and back."""

import pytest

from attention.provided.data import numbers as module
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import EOS, SPECIAL
from attention.tokens_and_positions import bpe_encode, count_words, train_bpe
from attention.train.corpora import multi30k, token_ids
from attention.train.corpora.token_ids import Pieces, Words, vocabulary

TEXTS = ["a man in a red hat", "two men , a dog", "ein mann mit rotem hut"]


@pytest.fixture(scope="module")
def pieces():
    return Pieces(train_bpe(*count_words(TEXTS), 20))


class TestPieces:
    def test_ids_are_those_of_lesson_08_behind_the_special_ones(self, pieces):
        for text in [*TEXTS, "an unseen hat", ""]:
            wanted = [len(SPECIAL) + index for index in bpe_encode(text, pieces.merges)]
            assert pieces.encode(text) == [*wanted, EOS]

    @pytest.mark.parametrize("text", [*TEXTS, "straße 🙂 naïve", " two  spaces ", ""])
    def test_any_line_comes_back(self, pieces, text):
        assert pieces.decode(pieces.encode(text)) == text

    def test_half_a_character_becomes_a_replacement(self, pieces):
        assert pieces.decode([len(SPECIAL) + 0xC3, EOS]) == "\ufffd"

    def test_what_was_learned_ahead_changes_nothing(self, pieces):
        ahead = Pieces(pieces.merges)
        ahead.learn([" man", " red", "a", " unseen"])
        assert ahead.encode(TEXTS[0]) == pieces.encode(TEXTS[0])


@pytest.mark.parametrize("made", [Words(["one", "two"], "words"), Words("abc", "characters")])
def test_words_come_back(made):
    text = {"words": "two one", "characters": "cab"}[made.unit]
    assert made.decode(made.encode(text)) == text
    assert made.encode(text)[-1] == EOS


def test_a_vocabulary_is_made_again_from_its_description(pieces):
    for made in (pieces, Words("xyz", "characters")):
        again = vocabulary(made.description())
        assert len(again) == len(made)
        assert again.encode("xyz") == made.encode("xyz")


@pytest.fixture(scope="module")
def pairs():
    return token_ids.numbers(2000)


class TestNumbers:
    def test_no_number_is_in_two_splits(self, pairs):
        sources = [text for texts in pairs.texts.values() for text, _ in texts]
        assert len(set(sources)) == len(sources)
        assert {split: len(texts) > 400 for split, texts in pairs.texts.items()} == {
            "train": True, "val": True, "test": True
        }  # fmt: skip

    def test_no_test_number_of_the_lessons_is_trained_on(self, pairs):
        test = {text for number, text, _ in numbers(2000).test}
        assert not test & {text for text, _ in pairs.texts["train"]}

    def test_ids_are_those_of_the_lessons(self, pairs):
        corpus = numbers(2000)
        _, source, target = corpus.train[7]
        assert pairs.ids["train"][7] == (
            corpus.source_vocabulary.encode(source.split()),
            corpus.target_vocabulary.encode(target),
        )


def test_both_languages_share_the_pieces_of_the_training_text(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "CACHE", tmp_path)
    monkeypatch.setattr(
        multi30k, "load", lambda split, lang, tok, folder: TEXTS if split == "train" else ["a dog"]
    )
    first = token_ids.translations(10)
    assert first.source is first.target and len(first.source) == len(SPECIAL) + 256 + 10
    assert first.texts["test"] == [("a dog", "a dog")]
    assert first.target.decode(first.ids["train"][2][1]) == TEXTS[2]
    (cached,) = tmp_path.glob("merges-10-*.json")
    cached.write_text("{broken")
    assert token_ids.translations(10).source.merges == first.source.merges


def test_texts_that_are_cut_elsewhere_have_merges_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "CACHE", tmp_path)
    kept = [token_ids.learned_merges(texts, 9) for texts in (["ab\nab"], ["ab", "ab"])]
    assert len(kept) == len([*tmp_path.glob("merges-9-*.json")]) == 2
