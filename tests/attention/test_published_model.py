"""Lesson 19's library against PyTorch, its tokeniser against the library that others use."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.trainers import WordPieceTrainer
from torch import nn
from torch.nn import functional as F

from attention import published_model
from attention.provided.data import docstrings
from attention.provided.data.tokens import PAD
from attention.provided.models.bert.tokenizer import WordPieceTokenizer, words_of
from attention.published_model import (
    NAMES,
    BertEmbeddings,
    BertLayers,
    PublishedEncoder,
    gelu,
    rename_weights,
    search,
    sentence_vectors,
    wordpiece,
)
from autograder import ROOT
from autograder.building.lesson import find, read
from autograder.mistakes.published_model import tries_every_cut

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2}
PIECES = st.text("ab", min_size=1, max_size=3)


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


def test_a_vocabulary_of_whole_words_leaves_the_others_unknown(texts):
    words = sorted({word for text in texts for word in words_of(text)})[::2]
    ours, theirs = WordPieceTokenizer(SPECIAL + words, wordpiece), untrained(SPECIAL + words)
    for text in texts[:300]:
        assert ours.pieces(text) == theirs.encode(text, add_special_tokens=False).tokens


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


@settings(max_examples=200)
@given(st.text("ab", min_size=1, max_size=8), st.lists(PIECES), st.lists(PIECES))
def test_pieces_spell_the_word_and_none_could_be_longer(word, first, later):
    vocabulary = dict.fromkeys([*first, *("##" + piece for piece in later)], 0)
    pieces = wordpiece(word, vocabulary)
    theirs = untrained([*vocabulary, "[UNK]"]).encode(word, add_special_tokens=False).tokens
    assert pieces == theirs
    clever = tries_every_cut(word, vocabulary)
    if pieces == ["[UNK]"]:
        return
    assert clever == pieces
    letters = [piece.removeprefix("##") for piece in pieces]
    assert "".join(letters) == word
    assert all(piece in vocabulary for piece in pieces)
    start = 0
    for piece, part in zip(pieces, letters, strict=True):
        hashes = "##" if start else ""
        assert piece == hashes + part
        ends = range(start + len(part) + 1, len(word) + 1)
        assert not any(hashes + word[start:end] in vocabulary for end in ends)
        start += len(part)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_gelu_is_pytorchs(dtype):
    x = torch.linspace(-8, 8, 1001, dtype=torch.float64).to(dtype)
    bound = {} if dtype != torch.bfloat16 else {"rtol": 0.05, "atol": 0.02}
    torch.testing.assert_close(gelu(x), F.gelu(x), **bound)
    assert not torch.allclose(gelu(x), F.gelu(x, approximate="tanh"), rtol=0, atol=1e-4)


def peer(model):
    """PyTorch's own encoder with the weights of a PublishedEncoder's layers."""
    made = []
    for layer in model.encoder.layers:
        theirs = nn.TransformerEncoderLayer(
            12, 3, 20, dropout=0.0, activation="gelu", batch_first=True, layer_norm_eps=1e-12
        )
        parts = layer.attention
        with torch.no_grad():
            three = [getattr(parts, name) for name in ("W_q", "W_k", "W_v")]
            theirs.self_attn.in_proj_weight.copy_(torch.cat([one.weight for one in three]))
            theirs.self_attn.in_proj_bias.copy_(torch.cat([one.bias for one in three]))
        theirs.self_attn.out_proj.load_state_dict(parts.W_o.state_dict())
        theirs.linear1.load_state_dict(layer.feed_forward.linear_1.state_dict())
        theirs.linear2.load_state_dict(layer.feed_forward.linear_2.state_dict())
        theirs.norm1.load_state_dict(layer.norm_1.state_dict())
        theirs.norm2.load_state_dict(layer.norm_2.state_dict())
        made.append(theirs)
    return made


@pytest.mark.parametrize("fused", [False, True])
def test_the_encoder_is_pytorchs_with_the_weights_copied(fused):
    torch.manual_seed(0)
    model = PublishedEncoder(50, 8, **SMALL, fused=fused)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    ids = torch.tensor([[5, 7, 3, 49, 1], [9, 2, PAD, PAD, PAD]])
    x = F.embedding(ids, model.embeddings.words.weight) + model.embeddings.positions.weight[:5]
    norm = model.embeddings.norm
    x = F.layer_norm(x + model.embeddings.types.weight[0], (12,), norm.weight, norm.bias, 1e-12)
    expected = [x]
    for layer in peer(model):
        expected.append(layer(expected[-1], src_key_padding_mask=ids == PAD))
    hidden = model(ids, return_layers=True)
    assert hidden.shape == (3, 2, 5, 12)
    for got, wanted in zip(hidden, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(ids), hidden[-1])
    torch.testing.assert_close(model(ids[1:, :2])[0], hidden[-1, 1, :2], rtol=1e-4, atol=1e-5)


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


def published(model):
    """The state of a model under the names that a published file has."""
    file = {}
    for name, weight in model.state_dict().items():
        for theirs, ours in reversed(NAMES.items()):
            name = f".{name}".replace(f".{ours}.", f".{theirs}.")[1:]
        file[name] = torch.randn_like(weight)
    return file


def test_weights_of_a_file_find_their_places():
    model = PublishedEncoder(50, 8, **SMALL)
    file = published(model)
    assert "encoder.layer.1.attention.output.LayerNorm.bias" in file
    shuffled = random.Random(0).sample(sorted(file), len(file))
    unused = {"pooler.dense.weight": torch.zeros(2), "embeddings.position_ids": torch.zeros(2)}
    renamed = rename_weights({name: file[name] for name in shuffled} | unused, model.state_dict())
    model.load_state_dict(renamed)
    query = file["encoder.layer.1.attention.self.query.weight"]
    torch.testing.assert_close(model.encoder.layers[1].attention.W_q.weight.detach(), query)


def test_a_file_that_does_not_fit_is_refused_with_the_name():
    model = PublishedEncoder(50, 8, **SMALL)
    file = published(model)
    with pytest.raises(ValueError, match="no place for classifier.bias"):
        rename_weights(file | {"classifier.bias": torch.zeros(2)}, model.state_dict())
    del file["encoder.layer.0.output.dense.bias"]
    with pytest.raises(ValueError, match=r"has no encoder\.layers\.0\.feed_forward"):
        rename_weights(file, model.state_dict())


def test_the_notebook_shows_the_table_of_names():
    lesson = read(find(["19"], ROOT)[0])
    (cell,) = [cell.source for cell in lesson.cells if cell.source.startswith("NAMES")]
    shown = {}
    exec(cell, shown)
    assert list(shown["NAMES"].items()) == list(NAMES.items())
    assert shown["UNUSED"] == published_model.UNUSED


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_sentence_vectors_have_length_1_whatever_the_padding(B, T, d_model, seed):
    torch.manual_seed(seed)
    hidden, mask = torch.randn(B, T, d_model).double(), torch.rand(B, T) < 0.5
    vectors = sentence_vectors(hidden, mask)
    torch.testing.assert_close(vectors.norm(dim=1), mask.any(1).double())
    other = torch.where(mask[..., None], 7 * hidden, 100.0)
    torch.testing.assert_close(sentence_vectors(other, mask), vectors)


@settings(max_examples=60)
@given(
    st.integers(1, 4), st.integers(1, 30), st.integers(1, 30), st.integers(1, 40), st.integers(0, 9)
)
def test_blocks_find_what_one_sort_finds(Q, N, k, block, seed):
    torch.manual_seed(seed)
    queries, passages = (F.normalize(torch.randn(n, 5).double(), dim=1) for n in (Q, N))
    k = min(k, N)
    cosines, rows = (queries @ passages.T).sort(dim=1, descending=True)
    found = search(queries, passages, k, block)
    torch.testing.assert_close(found[0], cosines[:, :k])
    assert torch.equal(found[1], rows[:, :k])


def test_search_never_holds_more_scores_than_a_block_and_k(monkeypatch):
    most, cat = 0, torch.cat

    def watched(tensors, dim=0):
        nonlocal most
        joined = cat(tensors, dim=dim)
        most = max(most, joined.shape[1])
        return joined

    monkeypatch.setattr(torch, "cat", watched)
    search(torch.randn(2, 3), torch.randn(100, 3), k=4, block=10)
    assert most == 14


def test_more_passages_than_there_are_is_refused():
    with pytest.raises(ValueError, match="k=4 is more than the 3 passages"):
        search(torch.randn(2, 3), torch.randn(3, 3), k=4)
