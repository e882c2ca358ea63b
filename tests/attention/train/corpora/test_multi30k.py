"""Multi30k: its sentences, and where they come from; the rest is in test_downloads."""

import pytest

from attention.train.corpora.multi30k import CorpusError, load
from tests import small_corpus


@pytest.fixture
def corpus(monkeypatch, tmp_path):
    return small_corpus.use(monkeypatch, tmp_path)


@pytest.fixture
def texts(corpus):
    return corpus[0]


@pytest.fixture
def folder(corpus):
    return corpus[1]


def put(folder, texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_bytes(text)


@pytest.mark.parametrize("tokenised", [True, False])
@pytest.mark.parametrize(("split", "n"), small_corpus.SENTENCES.items())
def test_load_splits_at_line_ends_only(texts, folder, split, n, tokenised):
    put(folder, texts)
    english = load(split, "en", tokenised, folder)
    german = load(split, "de", tokenised=tokenised, folder=folder)
    assert len(english) == len(german) == n
    kind = ".lc.norm.tok" if tokenised else ""
    assert english[3] == f"en 3 grün\u2028und\u0085blau {split}{kind}.en ."
    assert german[3] == f"de 3 grün\u2028und\u0085blau {split}{kind}.de ."


@pytest.mark.parametrize("wanted", [("test", "en"), ("train", "fr"), ("../train", "en")])
def test_texts_that_multi30k_does_not_have(folder, wanted):
    with pytest.raises(CorpusError, match=r"has no text called .*; there are: train.en, train.de"):
        load(*wanted, folder=folder)
