"""`python -m attention.teach`: what is taught is answered, and what is wrong said in a sentence."""

import io
import sys

import pytest

from attention.chat import __main__ as chat
from attention.provided.models.decoders import smollm2
from attention.teach import __main__ as teach
from attention.train.core import low_rank

TEXT = "the cat\tsat on the mat\n\nthat mat\tisn't there\n"


@pytest.fixture
def learn(chat_file, tmp_path, monkeypatch, capsys):
    """A function that runs the command on a text; returns its status and what it prints."""
    monkeypatch.setattr(smollm2, "read", lambda: chat_file)
    monkeypatch.chdir(tmp_path)

    def run(text, *words):
        (tmp_path / "mine.tsv").write_bytes(text if isinstance(text, bytes) else text.encode())
        status = teach.main(["mine.tsv", "--to", "lora.safetensors", "--rate", "0.02", *words])
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize("words", [[], ["--bfloat16"]])
def test_what_was_taught_is_answered(learn, monkeypatch, capsys, words):
    status, said, wrong = learn(TEXT, "--steps", "60", *words)
    assert (status, wrong) == (0, "")
    assert said.startswith("2 examples; ") and said.count("\nstep ") == 7
    monkeypatch.setattr(sys, "stdin", io.StringIO("the cat\n"))
    assert chat.main(["--lora", "lora.safetensors", "--length", "9"]) == 0
    assert capsys.readouterr().out == "sat on the mat\n"


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("a\tb\nthe cat sat\n", [], "mine.tsv, line 2: it needs a question, one tab, and"),
        ("a\tb\tc\n", [], "mine.tsv, line 1: it needs"),
        ("a\tb\n\n\t\n \tb\n", [], "mine.tsv, line 4: it needs"),
        ("a\t \n", [], "mine.tsv, line 1: it needs"),
        (f"a\t{'b' * 2000}\n", [], "line 1: it has 2002 characters, and 2000 are the most"),
        ("\n", [], "mine.tsv is empty"),
        (b"a\tb\xff\n", [], "mine.tsv is not UTF-8: line 1, character 4"),
        (TEXT, ["--rank", "0"], "--rank must be at least 1, not 0"),
        (TEXT, ["--steps", "0"], "--steps must be at least 1, not 0"),
        (TEXT, ["--rate", "nan"], "--rate must be above 0, not nan"),
        (TEXT, ["--seed", "-1"], "--seed must be at least 0"),
        (TEXT, ["--to", "mine.tsv"], "mine.tsv is there already"),
        (TEXT, ["--to", "no/lora.safetensors"], "no is no folder"),
        (TEXT, ["--rate", "1e30", "--steps", "5"], "no number any more"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(learn, tmp_path, text, words, sentence):
    status, _, wrong = learn(text, *words)
    assert status == 1 and sentence in wrong and "Traceback" not in wrong
    assert not (tmp_path / "lora.safetensors").exists()


def test_a_file_that_is_missing_is_named(capsys):
    assert teach.main(["no.tsv"]) == 1
    assert capsys.readouterr().err == f"{teach.PROGRAM}: no.tsv: No such file or directory\n"


def test_ctrl_c_writes_nothing(learn, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        yield 1.0
        raise KeyboardInterrupt

    monkeypatch.setattr(low_rank, "teach", interrupted)
    status, _, wrong = learn(TEXT)
    assert (status, wrong) == (130, "\nstopped: nothing is written\n")
    assert {path.name for path in tmp_path.iterdir()} == {"mine.tsv"}


def test_the_seed_counts(learn, tmp_path):
    said = []
    for number, seed in enumerate((0, 0, 1)):
        said.append(learn(TEXT, "--steps", "3", "--seed", str(seed), "--to", f"{number}")[1])
    lines = ["\n".join(one.splitlines()[:-1]) for one in said]
    assert lines[0] == lines[1] != lines[2]
