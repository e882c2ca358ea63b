"""How much of a text the model reads, and how texts share a batch."""

import unicodedata

import pytest

from attention import published_model
from attention.provided.models.bert.tokenizer import WordPieceTokenizer
from attention.search import model as models
from attention.search import reading
from attention.search.model import Model


@pytest.mark.parametrize(
    "text", ["검색할문장을시험한다" * 3 + " ", "Поисковая выдача. ", "漢字かな交じり文。"]
)
def test_every_passage_is_read_to_its_end(text):
    letters = sorted({*unicodedata.normalize("NFD", text.lower())})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{one}" for one in letters)]
    tokens = WordPieceTokenizer(vocabulary, published_model.wordpiece)
    model = Model("each letter is a piece", "", tokens, None, d_model=2, max_length=64)
    found, _ = reading.read((90 * text).encode(), "text", model.pieces, model.count)
    pieces = [len(tokens.pieces(one.text)) for one in found]
    assert len(pieces) > 10 and max(pieces) <= 62


def test_texts_of_like_lengths_share_a_batch():
    lengths = [100, 10, 11, 104, 50, 10, 101, 12]
    found = list(models.batches(lengths, tokens=320))
    assert [sorted(batch) for batch in found] == [[1, 2, 5, 7], [4], [0, 3, 6]]
    for batch in found:
        assert len(batch) * max(lengths[place] for place in batch) <= 320
