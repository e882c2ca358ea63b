"""The novels of lesson 15: the file, its card, and its three parts."""

import gzip

import pytest

from attention.provided.data import novels
from attention.provided.files import ROOT

CARD = (ROOT / "data" / "README.md").read_text(encoding="utf-8")


def test_the_card_describes_the_file():
    size, characters = novels.PATH.stat().st_size, sum(map(len, novels.load().values()))
    assert size < 1_200_000
    assert f"{size:,}".replace(",", " ") in CARD and f"{characters:,}".replace(",", " ") in CARD
    assert novels.SHA256 in CARD
    for title, text in novels.load().items():
        assert title in CARD and text.isascii() and "CHAPTER" not in text


def test_no_paragraph_to_test_on_is_learned():
    learn, choose, test = (set(text.split("\n")) for text in novels.split())
    for other in (choose, test):
        assert not [line for line in learn & other if len(line) > 40]


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "novels.json.gz"
    path.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(ValueError, match="another version"):
        novels.load(path)
