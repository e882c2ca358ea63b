"""`python -m attention.search --mine`: a learner's pieces in the library's places."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import torch

import attention
from attention import published_model
from attention.provided.models.bert import files, minilm
from attention.search import __main__ as command
from attention.search import index as indexes
from attention.search import mine
from attention.train.pieces import collected
from autograder.pieces import RECORD, Piece
from tests.attention.train.mine.test_mine import yours

LIBRARY = Path(attention.__file__).parent
LESSONS = {
    "masked_attention": ("06", ["masked_attention"]),
    "multi_head_attention": ("07", ["MultiHeadAttention", "head_updates"]),
    "transformer_blocks": ("09", ["LayerNorm", "FeedForward", "EncoderLayer"]),
    "published_model": (
        "19",
        ["gelu", "wordpiece", "rename_weights", "BertLayers", "sentence_vectors", "search"],
    ),
}


def write(folder, **texts):
    """A folder of collected pieces, each of its text."""
    folder.mkdir(exist_ok=True)
    pieces = []
    for name, text in texts.items():
        lesson = next(one for one, (_, names) in LESSONS.items() if name in names)
        path = folder / f"{lesson}.py"
        path.write_text((path.read_text() if path.exists() else "") + text)
        pieces.append(Piece(name, lesson, f"{LESSONS[lesson][0]}_{lesson}.ipynb"))
    (folder / RECORD).write_text(json.dumps({"pieces": [*map(dataclasses.asdict, pieces)]}))
    return folder


@pytest.fixture
def search(tmp_path, monkeypatch, capsys):
    """Search in a file with the pieces of a folder: status, output, and what is said of pieces."""
    monkeypatch.setattr(indexes, "FOLDER", tmp_path / "indexes")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("Sort a list of numbers.")
    (tmp_path / "b.txt").write_text("Close a file.")

    def searched(folder, *words):
        status = command.main(
            ["Sort a list of numbers.", "a.txt", "b.txt", "--small", "--mine", str(folder), *words]
        )
        out, err = capsys.readouterr()
        return status, out, err

    yield searched
    assert not collected.placed() and published_model.gelu.__module__ == "attention.published_model"


@pytest.mark.long
def test_all_pieces_are_used_and_give_the_librarys_vectors(search, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    pieces = []
    for lesson, (number, names) in LESSONS.items():
        text = (LIBRARY / f"{lesson}.py").read_text(encoding="utf-8")
        (folder / f"{lesson}.py").write_text(text, encoding="utf-8")
        pieces += [Piece(name, lesson, f"{number}_{lesson}.ipynb") for name in names]
    (folder / RECORD).write_text(json.dumps({"pieces": [*map(dataclasses.asdict, pieces)]}))
    status, out, err = search(folder)
    assert status == 0 and out.startswith("1. a.txt, line 1 · cosine 1.00")
    assert yours(err) == {*mine.NEEDED}
    assert "is used" not in err and "No part of a search: 1 more of your pieces" in err


GELU = """
import torch
def gelu(x):
    return x * torch.sigmoid(1.702 * x)
"""
RAISES = """
def wordpiece(word, vocabulary):
    return [word[0], undefined]
"""
COUNTED = """
import torch
calls = []
def gelu(x):
    calls.append(len(x))
    return x * 0.5 * (1 + torch.erf(x / 2 ** 0.5))
"""
NORM = """
import torch
from torch import nn
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x / x.std(-1, keepdim=True) * self.weight + self.bias
"""


def test_a_wrong_piece_is_the_librarys_and_a_sentence_says_how_far_it_was(search, tmp_path):
    status, out, err = search(write(tmp_path / "mine", gelu=GELU))
    assert status == 0 and "cosine 1.00" in out
    away = re.search(
        r"^gelu: with it, the encoder gives other results, up to (\S+) away; the library's is",
        err,
        re.MULTILINE,
    )
    assert 1e-4 < float(away[1]) < 1
    assert "Nothing in" in err


def test_a_piece_that_raises_is_the_librarys(search, tmp_path):
    status, _, err = search(write(tmp_path / "mine", wordpiece=RAISES, gelu=COUNTED))
    assert status == 0
    assert "wordpiece: it raises NameError: name 'undefined' is not defined" in err
    assert yours(err) == {"gelu"}


def test_a_wrong_norm_is_noticed_though_the_layers_take_pytorchs(search, tmp_path):
    _, _, err = search(write(tmp_path / "mine", LayerNorm=NORM))
    assert "LayerNorm: with it, the encoder" in err


def test_vectors_of_other_pieces_are_not_taken_from_the_index(search, tmp_path):
    search(write(tmp_path / "one", gelu=COUNTED))
    search(write(tmp_path / "two", gelu=COUNTED + "\n"))
    search(tmp_path / "two")
    assert len([*(tmp_path / "indexes").iterdir()]) == 2


def test_an_error_of_a_piece_in_use_is_one_sentence(search, tmp_path):
    late = COUNTED.replace("    return", "    if len(x) == 1: raise IndexError('late')\n    return")
    status, _, err = search(write(tmp_path / "mine", gelu=late))
    assert status == 1
    assert "your gelu failed: it raises IndexError: late" in err and "search again" in err


def test_with_the_published_model(tmp_path, monkeypatch):
    if not minilm.available():
        pytest.skip(f"all-MiniLM-L6-v2 is not here: {minilm.COMMAND}")
    trial = mine.SearchTrial(files.published(), collected.load(write(tmp_path / "mine", gelu=GELU)))
    try:
        right, wrong = trial.run(()), trial.run(["gelu"])
    finally:
        collected.take_back()
    far = (right.results[mine.ENCODER] - wrong.results[mine.ENCODER]).abs().max()
    assert torch.isfinite(far) and 1e-4 < far < 1 and wrong.ran[mine.ENCODER] == {"gelu"}
