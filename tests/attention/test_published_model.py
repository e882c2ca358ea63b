"""Lesson 19's tokeniser against the library that others use, and what its encoder is made of."""

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.trainers import WordPieceTrainer
from torch import nn

from attention import published_model
from attention.provided.data import docstrings
from attention.provided.data.tokens import PAD
from attention.provided.models.bert.tokenizer import WordPieceTokenizer, words_of
from attention.published_model import (
    NAMES,
    BertEmbeddings,
    BertLayers,
    PublishedEncoder,
    wordpiece,
)
from autograder import ROOT
from autograder.building.lesson import find, read

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2}


def untrained(vocabulary, lower=True):
    """A tokeniser of the library with this vocabulary, as one makes it for a BERT."""
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    made = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = BertNormalizer(lowercase=lower)
    made.pre_tokenizer = BertPreTokenizer()
    return made


@pytest.fixture(scope="module")
def texts():
    return [one.summary + "\n" + one.body for one in docstrings.load()[:1500]]


@pytest.fixture(scope="module")
def vocabulary(texts):
    """Pieces that were learned from the docstrings; what is rare is unknown."""
    made = untrained(SPECIAL)
    trainer = WordPieceTrainer(vocab_size=1500, special_tokens=SPECIAL, limit_alphabet=60)
    made.train_from_iterator(texts, trainer)
    return sorted(made.get_vocab(), key=made.get_vocab().get)


@pytest.mark.parametrize("lower", [True, False])
def test_the_tokeniser_cuts_docstrings_as_the_library_does(texts, vocabulary, lower):
    ours, theirs = WordPieceTokenizer(vocabulary, wordpiece), untrained(vocabulary, lower)
    unknown = 0
    for text in texts:
        expected = theirs.encode(text, add_special_tokens=False).tokens
        assert ours.pieces(text, lower) == expected
        unknown += expected.count("[UNK]")
    assert unknown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  Über   CAFÉS\tund\u00a0Straßen\n",
        "日本語 and 한국어, wörld's (end)...",
        "a\u0000b\u200dc\ufffdd \u0301x",
        "don't-stop_now $5 ^~`",
        "x" * 100 + " " + "x" * 101,
        "ı İ ǅ ﬁ ① ½",
    ],
)
def test_rare_signs_are_read_as_the_library_reads_them(text):
    letters = sorted({sign for word in words_of(text) for sign in word})
    pieces = SPECIAL + letters + ["##" + sign for sign in letters]
    theirs = untrained(pieces).encode(text, add_special_tokens=False).tokens
    assert WordPieceTokenizer(pieces, wordpiece).pieces(text) == theirs


def test_a_tokeniser_frames_and_cuts_and_pads(vocabulary):
    tokenizer = WordPieceTokenizer(vocabulary, wordpiece)
    ids = tokenizer.batch(["return the sum of the numbers", "sum"], max_length=5)
    assert ids.shape == (2, 5)
    assert ids.dtype == torch.int64
    first, last = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    assert ids[:, 0].tolist() == [first, first]
    assert ids[0, -1] == last
    assert ids[1].tolist()[2:] == [last, PAD, PAD]


@pytest.mark.parametrize("missing", ["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
def test_a_vocabulary_without_a_special_piece_is_refused(missing):
    with pytest.raises(ValueError, match="lacks"):
        WordPieceTokenizer([one for one in SPECIAL if one != missing], wordpiece)


def test_the_encoder_uses_the_pieces_of_the_lesson(monkeypatch):
    monkeypatch.setattr(published_model, "gelu", torch.zeros_like)
    model = PublishedEncoder(50, 8, **SMALL)
    assert isinstance(model.encoder, BertLayers)
    assert isinstance(model.embeddings, BertEmbeddings)
    ids = torch.tensor([[5, 7, 3]])
    before = model(ids)
    for layer in model.encoder.layers:
        nn.init.normal_(layer.feed_forward.linear_1.weight)
    torch.testing.assert_close(model(ids), before)


def test_the_notebook_shows_the_table_of_names():
    lesson = read(find(["19"], ROOT)[0])
    (cell,) = [cell.source for cell in lesson.cells if cell.source.startswith("NAMES")]
    shown = {}
    exec(cell, shown)
    assert list(shown["NAMES"].items()) == list(NAMES.items())
    assert shown["UNUSED"] == published_model.UNUSED
