"""Files of every kind become passages, and what is wrong with one is told in a sentence."""

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from attention.search import reading
from attention.search.reading import ReadingError, read


def test_a_notebook_has_cells_without_their_outputs():
    shown = [new_output("stream", text="printed")]
    cells = [new_markdown_cell("# Title\n\ntext"), new_code_cell("x = 1", outputs=shown)]
    found, _ = read(nbformat.writes(new_notebook(cells=cells)).encode(), "notebook")
    assert [(one.first, one.last, one.text) for one in found] == [
        (1, 1, "# Title\n\ntext"),
        (2, 2, "x = 1"),
    ]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"cells": 3}', "text", "[" * 10**5])
def test_a_broken_notebook(text):
    with pytest.raises(ReadingError, match="it is no notebook, or a broken one"):
        read(text.encode(), "notebook")


def test_half_a_character_in_a_notebook_does_no_harm():
    made = json.loads(nbformat.writes(new_notebook(cells=[new_markdown_cell("a XX b")])))
    text = json.dumps(made).replace("XX", "\\ud83d")
    (one,) = read(text.encode(), "notebook")[0]
    assert one.text.encode() == b"a ? b"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_text_is_utf_8(encoding):
    found, note = read("Äpfel\r\nund Birnen".encode(encoding), "text")
    assert [one.text for one in found] == ["Äpfel\nund Birnen"] and note == ""


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("alle\nä".encode() + b"pf\xfcl", "it is not UTF-8: line 2, character 4 is the byte 0xFC"),
        ("Äpfel".encode("utf-16"), "it is no text in UTF-8"),
        (b"\x89PNG\r\n\x1a\n\0\0", "it is no text in UTF-8"),
    ],
)
def test_what_is_no_text(content, sentence):
    with pytest.raises(ReadingError, match=f"^is left out: {sentence}"):
        read(content, "text")


@pytest.mark.parametrize("kind", ["text", "notebook"])
def test_an_empty_file(kind):
    assert read(b" \n", kind) == ([], "is empty")


def test_what_is_left_out_is_said():
    data = 300 * "="
    (one,), note = read(f"a {data}\nb {data}".encode(), "text")
    assert one.text == "a …\nb …"
    assert note == "has 2 × 300 or more characters without a space: they are left out"
    assert read(b"x" * (10 << 20), "text") == ([], "holds no words, only data")
    cell = nbformat.writes(new_notebook(cells=[new_markdown_cell(f"a {data}")])).encode()
    assert read(cell, "notebook")[1].startswith("has 1 × 300 or more")


def test_a_folder_is_searched_deeply_and_a_named_file_whatever_its_name(tmp_path):
    for name in ("b.md", "a/c.PY", "a/d.bin", ".git/e.md", "a/__pycache__/f.py", ".hidden.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    places = [tmp_path / "a" / "d.bin", tmp_path, tmp_path / "b.md"]
    found = [(path.relative_to(tmp_path).as_posix(), why) for path, why in reading.files(places)]
    assert found == [("a/d.bin", ""), ("b.md", ""), ("a/c.PY", "")]


def test_a_folder_without_files(tmp_path):
    ((path, why),) = reading.files([tmp_path])
    assert path == tmp_path and why.startswith("holds no file to search: their names end in .txt")


def test_what_is_not_there_or_too_large(tmp_path, monkeypatch):
    with pytest.raises(ReadingError, match="is not there"):
        reading.contents(tmp_path / "none.txt")
    with pytest.raises(ReadingError, match="is no file"):
        reading.contents(tmp_path)
    monkeypatch.setattr(reading, "BIGGEST", 1 << 20)
    (tmp_path / "large.txt").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(ReadingError, match="is left out: it has more than 1 MiB"):
        reading.contents(tmp_path / "large.txt")


def test_an_unreadable_file(monkeypatch, tmp_path):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "a.txt").touch()
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ReadingError, match="^cannot be read: Permission denied$"):
        reading.contents(tmp_path / "a.txt")
