"""Texts of one's own: every token once, the last part held out, and one sentence for the rest."""

import dataclasses

import pytest

from attention.provided.data.tokens import EOS, SPECIAL
from attention.tokens_and_positions import bpe_encode
from attention.train.corpora import texts
from attention.train.corpora.texts import TextPieces, read
from tests.small_text import TINY, written

MERGES = [(ord("\n"), ord("\n")), (ord("a"), ord("b")), (ord(" "), 257)]


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "text.md")


def joined(passages):
    """The ids of passages that overlap by one."""
    return passages[0][:1] + [token for passage in passages for token in passage[1:]]


def test_ids_are_those_of_lesson_08():
    text = "ab  ab\n\n\n\tab ü 日本 🙂\n ab\n"
    ids = [len(SPECIAL) + index for index in bpe_encode(text, MERGES)]
    pieces = TextPieces(MERGES)
    assert pieces.encode(text) == ids
    assert pieces.decode(ids) == text
    assert b"".join(pieces.bytes[index] for index in ids).decode() == text
    assert len(pieces.bytes) == len(pieces)


def test_every_token_is_predicted_once_and_the_last_tenth_is_held_out(file):
    text = read([str(file)], TINY, {})
    whole = file.read_text(encoding="utf-8")
    train, val = (text.pieces.decode(joined(text.ids[split])) for split in ("train", "val"))
    assert train + val == whole
    assert len(val) == text.characters == len(whole) // 10
    lengths = [len(passage) for passage in text.ids["train"]]
    assert set(lengths[:-1]) == {TINY.length + 1} and 2 <= lengths[-1] <= TINY.length + 1
    (note,) = text.notes
    assert note.startswith(f"held out for validation: the last {len(val)} of ")
    assert note.endswith(f" of {file} on")


def test_merges_are_learned_from_the_training_part_only(tmp_path):
    file = tmp_path / "text"
    file.write_text("ab " * 600 + "xy " * 60)
    text = read([str(file)], dataclasses.replace(TINY, merges=4), {})
    assert text.held_out[0].count("xy") > 55
    assert not any("x" in token.decode(errors="replace") for token in text.pieces.bytes[259:])


def test_the_end_of_a_text_separates_it_from_the_next(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_text(f"{path.name} " * 100)
    text = read(list(map(str, paths)), TINY, {})
    ids = joined(text.ids["train"])
    assert ids.count(EOS) == 2 and EOS not in joined(text.ids["val"])
    assert text.pieces.decode(ids) == "a " * 100  # up to the first end
    assert "of " + str(paths[2]) in text.notes[0]


def test_at_most_so_much_is_held_out(file, monkeypatch):
    monkeypatch.setattr(texts, "MOST", 50)
    assert read([str(file)], TINY, {}).characters == 50


def test_line_ends_and_a_mark_at_the_beginning_are_no_part_of_a_text(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(b"\xef\xbb\xbf" + b"one\r\ntwo\r" * 50)
    assert "".join(read([str(file)], TINY, {}).train).startswith("one\ntwo\none\n")


WRONG = {
    "nothing.md cannot be read: No such file": None,
    "is not UTF-8: line 1, character 3 is the byte 0xFC": "für ".encode("latin-1") * 99 + b"\xff",
    "UTF-16, as PowerShell's > writes it": "text".encode("utf-16"),
    "is empty: leave it out": b" \n\n",
    "it has a word of 5001 characters": b"some words " * 99 + b"x" * 5000 + b" more" * 200,
    "--length 12 needs at least 13; add text": b"too short",
    "with it the texts have more than 0.005 MB": b"some words " * 900,
}


@pytest.mark.parametrize("says", WRONG)
def test_what_cannot_be_learned_from_is_one_sentence(says, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "LARGEST", 0.005 if "0.005" in says else 64)
    path = tmp_path / "nothing.md"
    if WRONG[says] is not None:
        content = WRONG[says]
        if says.startswith("is not"):
            content = b"f\xc3\xbc" + content[1:]
        path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        read([str(path)], TINY, {})
    assert says in str(error.value) and "\n" not in str(error.value)


def test_a_text_that_is_there_twice_is_refused(file):
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="copy has the same text as another file: leave it out"):
        read([str(file), str(copy)], TINY, {})


def test_another_text_than_at_the_beginning_is_refused(file):
    kept = read([str(file)], TINY, {}).description()
    assert read([], TINY, kept).ids == read([str(file)], TINY, {}).ids
    file.write_text("something else " * 50)
    with pytest.raises(ValueError, match="is not the one with which this training began"):
        read([], TINY, kept)
    with pytest.raises(ValueError, match="text needs FILES"):
        read([], TINY, {})
