"""`python -m attention.search`, with the small model: what it prints, and what goes wrong."""

import nbformat
import pytest
import torch
from nbformat.v4 import new_markdown_cell, new_notebook

from attention.provided.models.bert import minilm
from attention.search import __main__ as command
from attention.search import index
from attention.search import model as models

TEXTS = {
    "sort.txt": "Sort a list of numbers in place.\nThe sort is stable.",
    "sub/close.md": "# Files\n\nClose an open file.\n\n# Threads\n\nWait until a thread ends.",
    "code.py": "import os\n\n\ndef remove(path):\n    '''Delete a file.'''\n    os.unlink(path)\n",
}


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    """Indexes are kept in a folder of the test, and the published model is not there."""
    monkeypatch.setattr(index, "FOLDER", tmp_path / "indexes")
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
    first, _, second, *_ = search("Wash a plum.", "notes", "--small", "--top", "2")[1].splitlines()
    assert first == "1. notes/a.txt, line 1 · cosine 1.00 · the same in 5 more"
    assert "Wash" not in second


def test_what_others_wrote_steers_no_terminal(search, notes):
    (notes / "\x9bodd.txt").write_text("red \x1b[31mplums\x1b]0;title\x07")
    (notes / "\x1b[2J.txt").touch()
    status, out, err = search("red plums", "notes", "--small")
    assert status == 0 and "[31mplums]0;title" in out
    assert not {"\x1b", "\x07", "\x9b"} & {*out, *err}


def test_a_question_that_is_not_read_to_its_end_is_said(search, notes):
    assert search("sort " * 62, "notes", "--small")[2] == ""
    _, _, err = search("sort " * 63, "notes", "--small")
    assert err == "the question has 63 word pieces: only the first 62 of them are read\n"


def test_cosines_are_those_of_the_lessons_parts(search, notes):
    question = "How is a file closed?"
    _, out, _ = search(question, "notes", "--small", "--top", "99")
    file = models.bert_files.small()
    encode, read = models.by_pieces(models.encoder(file, fused=False)), models.tokenizer(file)
    (asked,) = encode(torch.tensor([read.encode(question, 64)]))
    lines = out.splitlines()
    shown = [float(line.rpartition(" ")[2]) for line in lines[::2]]
    assert len(shown) == 7 and shown == sorted(shown, reverse=True)
    for cosine, text in zip(shown, lines[1::2], strict=True):
        (vector,) = encode(torch.tensor([read.encode(text, 64)]))
        assert cosine == pytest.approx((asked @ vector).item(), abs=0.0051)


def test_without_the_published_model_the_small_one_searches_and_says_so(search, notes):
    status, _, err = search("sort", "notes/sort.txt")
    assert status == 0
    assert err == (
        "a small model searches, and finds little: fetch the published one with "
        "`autograder data fetch minilm`\n"
    )
    _, _, err = search("sort", "notes/sort.txt", "--data", "else where")
    assert "`autograder data fetch minilm --data 'else where'`" in err


def test_the_next_search_makes_no_vector_of_a_passage_anew(search, notes, monkeypatch):
    first = search("sort", "notes", "--small")
    real = models.Model.vectors
    monkeypatch.setattr(
        models.Model, "vectors", lambda model, texts: real(model, texts) if texts == ["sort"] else 0
    )
    assert search("sort", "notes", "--small") == first


def test_wrong_files_are_told_and_the_others_searched(search, notes):
    (notes / "picture.png").write_bytes(b"\x89PNG\0")
    (notes / "broken.ipynb").write_text("{")
    (notes / "odd.txt").write_bytes("Größe".encode("utf-16-le")[1:])
    (notes / "empty.md").touch()
    words = ("Sort a list", "notes", "notes/picture.png", "none.txt", "--small", "--top", "1")
    status, out, err = search(*words)
    assert status == 0 and out.startswith("1. notes/sort.txt")
    assert sorted(line.split(maxsplit=1)[0] for line in err.splitlines()) == [
        "none.txt",
        *("notes/broken.ipynb", "notes/empty.md", "notes/odd.txt"),
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


def test_where_there_is_no_passage_a_sentence_says_so(search, tmp_path):
    status, out, err = search("sort", tmp_path, "--small")
    assert status == 1 and out == "" and "no passage was found to search" in err
    assert f"{tmp_path} holds no file to search" in err


def test_a_damaged_model_is_one_sentence(search, notes, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(minilm, "available", lambda folder: True)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    status, _, err = search("sort", notes, "--data", tmp_path)
    assert status == 1 and "model.safetensors is not what it was" in err and err.count("\n") == 1


def test_the_published_model_finds_what_has_no_word_in_common(search, notes, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(index, "FOLDER", notes / "index")
    if not minilm.available():
        pytest.skip(f"all-MiniLM-L6-v2 is not here: {minilm.COMMAND}")
    status, out, err = search("How do I get rid of a document?", notes, "--top", "1")
    assert status == 0 and err == "" and "code.py, lines 4 to 6" in out
