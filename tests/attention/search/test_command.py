"""`python -m attention.search`, with the small model: what it prints, and what goes wrong."""

import json
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat.v4 import new_markdown_cell, new_notebook

from attention.provided.models.bert import minilm
from attention.search import __main__ as command
from attention.search import index as indexes
from attention.search import model as models
from tests.attention.search.test_reading import pdf

TEXTS = {
    "sort.txt": "Sort a list of numbers in place.\nThe sort is stable.",
    "sub/close.md": "# Files\n\nClose an open file.\n\n# Threads\n\nWait until a thread ends.",
    "code.py": "import os\n\n\ndef remove(path):\n    '''Delete a file.'''\n    os.unlink(path)\n",
}


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    """Indexes are kept in a folder of the test, and the published model is not there."""
    monkeypatch.setattr(indexes, "FOLDER", tmp_path / "indexes")
    monkeypatch.setattr(minilm, "available", lambda folder=None: False)


@pytest.fixture
def notes(tmp_path, monkeypatch):
    folder = tmp_path / "notes"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "cells.ipynb").write_text(
        nbformat.writes(new_notebook(cells=[new_markdown_cell("A"), new_markdown_cell("Plot it.")]))
    )
    (folder / "pages.pdf").write_bytes(pdf("First page.", "Grapes and plums."))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def search(capsys):
    def searched(*words):
        status = command.main([str(word) for word in words])
        out, err = capsys.readouterr()
        return status, out, err

    return searched


@pytest.mark.parametrize(
    ("question", "place", "text"),
    [
        ("The sort is stable.", "notes/sort.txt, lines 1 to 2", "Sort a list of numbers"),
        ("# Threads Wait until a thread ends.", "notes/sub/close.md, lines 5 to 7", "# Threads"),
        ("def remove(path): Delete a file. os.unlink", "notes/code.py, lines 4 to 6", "def remove"),
        ("Plot it.", "notes/cells.ipynb, cell 2", "Plot it."),
        ("Grapes and plums.", "notes/pages.pdf, page 2", "Grapes and plums."),
    ],
)
def test_what_is_asked_for_is_found_at_its_place(search, notes, question, place, text):
    status, out, err = search(question, "notes", "--small", "--top", "2")
    first, excerpt, second, *_ = out.splitlines()
    assert status == 0 and err == ""
    assert first.startswith(f"1. {place} · cosine ") and excerpt.startswith(f"   {text}")
    assert second.startswith("2. ")
    assert out.count("cosine") == 2


def test_of_equal_passages_there_is_one_and_how_many_more(search, notes):
    for name in "abcdef":
        (notes / f"{name}.txt").write_text("Wash\na plum." if name == "c" else "Wash a plum.")
    words = ("Wash a plum.", "notes", "--small", "--top", "2")
    first, _, second, *_ = search(*words)[1].splitlines()
    assert first == "1. notes/a.txt, line 1 · cosine 1.00 · the same in 5 more"
    assert "Wash" not in second
    also = json.loads(search(*words, "--json")[1])[0]["also"]
    assert [(one["file"], one["last"]) for one in also][:2] == [
        ("notes/b.txt", 1),
        ("notes/c.txt", 2),
    ]


def test_what_others_wrote_steers_no_terminal(search, notes):
    (notes / "\x9bodd.txt").write_text("red \x1b[31mplums\x1b]0;title\x07")
    (notes / "\x1b[2J.txt").touch()
    for more in ([], ["--json"]):
        status, out, err = search("red plums", "notes", "--small", *more)
        assert status == 0 and "[31mplums]0;title" in out.replace("\\u001b", "").replace(
            "\\u0007", ""
        )
        assert not {"\x1b", "\x07", "\x9b"} & {*out, *err}


def test_a_question_that_is_not_read_to_its_end_is_said(search, notes):
    assert search("sort " * 62, "notes", "--small")[2] == ""
    _, _, err = search("sort " * 63, "notes", "--small")
    assert err == "the question has 63 word pieces: only the first 62 of them are read\n"


def test_json_has_all_of_a_passage(search, notes):
    status, out, _ = search(
        "Wait until a thread ends.", "notes", "--small", "--json", "--top", "99"
    )
    found = json.loads(out)
    assert status == 0 and len(found) == 9
    cosines = [one["cosine"] for one in found]
    assert cosines == sorted(cosines, reverse=True)
    assert {key: found[0][key] for key in ("file", "unit", "first", "last", "text")} == {
        "file": str(Path("notes", "sub", "close.md")),
        "unit": "line",
        "first": 5,
        "last": 7,
        "text": "# Threads\n\nWait until a thread ends.",
    }


def test_cosines_are_those_of_the_lessons_parts(search, notes):
    question = "How is a file closed?"
    _, out, _ = search(question, "notes", "--small", "--json", "--top", "99")
    file = models.bert_files.small()
    encode, read = models.by_pieces(models.encoder(file, fused=False)), models.tokenizer(file)
    (asked,) = encode(torch.tensor([read.encode(question, 64)]))
    for one in json.loads(out):
        (vector,) = encode(torch.tensor([read.encode(one["text"], 64)]))
        assert one["cosine"] == pytest.approx((asked @ vector).item(), abs=1e-4)


def test_without_the_published_model_the_small_one_searches_and_says_so(search, notes):
    status, _, err = search("sort", "notes/sort.txt")
    assert status == 0
    assert err == (
        "a small model searches, and finds little: fetch the published one with "
        "`autograder data fetch minilm`\n"
    )
    _, _, err = search("sort", "notes/sort.txt", "--data", "else where")
    assert "`autograder data fetch minilm --data 'else where'`" in err


def test_the_index_is_kept_where_it_is_wanted(search, notes, tmp_path, monkeypatch):
    path = tmp_path / "deep" / "one.index"
    search("sort", "notes", "--small", "--index", path)
    assert path.exists() and not (tmp_path / "indexes").exists()
    search("sort", "notes", "--small")
    (kept,) = (tmp_path / "indexes").iterdir()
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is read"))
    assert search("sort", "notes", "--small")[0] == 0 and kept.exists()


def test_no_index_is_written_over_a_text(search, notes):
    status, _, err = search("sort", "notes", "--small", "--index", "notes/sort.txt")
    assert status == 1 and "give it another ending" in err
    assert (notes / "sort.txt").read_text() == TEXTS["sort.txt"]


def test_wrong_files_are_told_and_the_others_searched(search, notes):
    (notes / "picture.png").write_bytes(b"\x89PNG\0")
    (notes / "broken.ipynb").write_text("{")
    (notes / "broken.pdf").write_bytes(b"%PDF")
    (notes / "odd.txt").write_bytes("Größe".encode("utf-16-le")[1:])
    (notes / "empty.rst").touch()
    words = ("Sort a list", "notes", "notes/picture.png", "none.txt", "--small", "--top", "1")
    status, out, err = search(*words)
    assert status == 0 and out.startswith("1. notes/sort.txt")
    assert sorted(line.split(maxsplit=1)[0] for line in err.splitlines()) == [
        "none.txt",
        *("notes/broken.ipynb", "notes/broken.pdf", "notes/empty.rst", "notes/odd.txt"),
        "notes/picture.png",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((" ", "notes"), "there is no question"),
        (("sort", "notes", "--top", "0"), "--top must be at least 1, not 0"),
        (("sort", "none", "nothing"), "there is no none and no nothing"),
        (("sort", "notes", "--small", "--mine", "nowhere"), "nowhere holds no collected pieces"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(search, notes, words, sentence):
    status, out, err = search(*words)
    assert status == 1 and out == ""
    assert err.splitlines()[-1].startswith(f"python -m attention.search: {sentence}")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_where_no_passage_is_there_is_a_status_of_its_own(search, tmp_path, as_json):
    status, out, err = search("sort", tmp_path, "--small", *as_json)
    assert status == 3 and out == ("[]\n" if as_json else "")
    assert f"{tmp_path} holds no file to search" in err


def test_a_damaged_model_is_one_sentence(search, notes, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(minilm, "available", lambda folder: True)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    status, _, err = search("sort", notes, "--data", tmp_path)
    assert status == 1 and "model.safetensors is not what it was" in err and err.count("\n") == 1


def test_the_published_model_finds_what_has_no_word_in_common(search, notes, monkeypatch):
    monkeypatch.undo()
    if not minilm.available():
        pytest.skip(f"all-MiniLM-L6-v2 is not here: {minilm.COMMAND}")
    status, out, err = search(
        "How do I get rid of a document?", notes, "--top", "1", "--index", notes / "index"
    )
    assert status == 0 and err == "" and "code.py, lines 4 to 6" in out
