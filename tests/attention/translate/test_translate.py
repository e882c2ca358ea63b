"""`python -m attention.translate`: a line for a line, and one sentence for whatever is wrong."""

import contextlib
import dataclasses
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from attention.provided.data.numbers import in_words
from attention.provided.files import ROOT
from attention.train import translate_run as shared
from attention.train.core.trainer import Trainer
from attention.train.corpora.token_ids import Pairs, Words
from attention.train.runs.run_folder import VOCABULARIES, RunFolder
from attention.train.runs.settings import Settings
from attention.translate import __main__ as translate
from attention.translate import lines
from attention.translate.__main__ import main
from tests.waiting import LONG, until

SHIPPED = str(ROOT / "data" / "checkpoints" / "numbers.safetensors")
CPU = ("--device", "cpu")
SETTINGS = Settings(
    d_model=16, n_heads=2, d_ff=16, n_layers=1, steps=9, max_tokens=60, warmup=2, every=3, beam=2
)


@pytest.fixture
def reads(monkeypatch, tmp_path):
    """A function that makes bytes the standard input."""

    def give(content):
        path = tmp_path / "input"
        path.write_bytes(content)
        stdin = stack.enter_context(path.open())
        monkeypatch.setattr(sys, "stdin", stdin)

    with contextlib.ExitStack() as stack:
        yield give


@pytest.fixture
def refused(capsys):
    """A function that runs the command and returns the one sentence with which it ends."""

    def run(*words):
        assert main([*map(str, words), *CPU]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and error.startswith("python -m attention.translate: ")
        return error

    return run


def test_every_line_becomes_a_line(reads, capsys):
    numbers = [7, 201, 12_345, 999_999]
    text = "\r\n\n".join(in_words(number, "en") for number in numbers)
    reads(f"\ufeff{text}".encode())  # as some editors begin and end lines; the last one has no end
    assert main([SHIPPED, *CPU]) == 0
    wanted = "\n\n".join(in_words(number, "de") for number in numbers) + "\n"
    assert capsys.readouterr().out == wanted


def test_many_lines_keep_their_order(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(lines, "CHUNK", 100)  # so that lines are cut in two
    monkeypatch.setattr(translate, "ROWS", 3)
    numbers = random.Random(0).sample(range(1, 5000), 10)
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("".join(in_words(number, "en") + "\n" for number in numbers[:7]))
    second.write_text("".join(in_words(number, "en") + "\n" for number in numbers[7:]))
    assert main([SHIPPED, str(first), str(second), "--beam", "1", *CPU]) == 0
    found = capsys.readouterr().out.splitlines()
    assert found == [in_words(number, "de") for number in numbers]


def test_what_cannot_be_translated_is_told_and_costs_only_its_line(reads, capsys):
    long = "one " * 600
    reads(f"seven\ntwo dogs\n{long}\n{'x' * 5000}\neight\n".encode())
    assert main([SHIPPED, *CPU]) == 1
    said = capsys.readouterr()
    assert said.out == "sieben\n\n\n\nacht\n"
    sentences = said.err.splitlines()
    assert len(sentences) == 3
    assert "standard input, line 2: the run never read 'dogs'" in sentences[0]
    assert "line 3: the text has 601 tokens, more than 512" in sentences[1]
    assert "line 4: the text has 5000 characters, more than 4000" in sentences[2]


def test_what_a_model_writes_ends_no_line(capsys):
    read = SimpleNamespace(target=SimpleNamespace(decode=lambda ids: "a\nb\rc\x1b"))
    translate.write([lines.Line(3, "a file, line 3", "x")], {3: [4]}, read)
    assert capsys.readouterr().out == "a b c\n"


def test_options_change_the_search(reads, capsys):
    reads(b"two hundred one\n")
    assert main([SHIPPED, "--max-length", "4", "--beam", "1", *CPU]) == 0
    said = capsys.readouterr()
    assert said.out == "zwei\n" and said.err.startswith("line 1: the translation is cut, ")


def test_attention_is_drawn_for_the_first_line_or_for_each(reads, tmp_path, capsys):
    for name, wanted in (("a.png", {"a.png"}), ("b{}.png", {"b2.png", "b3.png"})):
        reads(b"\nseven\neight\n")
        assert main([SHIPPED, "--attention", str(tmp_path / name), "--beam", "1", *CPU]) == 0
        said = capsys.readouterr()
        assert said.out == "\nsieben\nacht\n"
        assert "line 2: the attention of the last layer" in said.err
        assert {path.name for path in tmp_path.glob(f"{name[0]}*.png")} == wanted
    assert (tmp_path / "b3.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--beam", "0"], "--beam must be at least 1, not 0"),
        (["--alpha", "nan"], "--alpha must be at least 0, not nan"),
        (["--max-length", "-1"], "--max-length must be at least 1, not -1"),
        (["nowhere"], "nowhere: No such file"),
    ],
)
def test_a_wrong_option_is_one_sentence(refused, words, says):
    assert says in refused(SHIPPED, *words)


def test_what_is_no_run_is_one_sentence(tmp_path, refused, reads):
    reads(b"seven\n")
    said = refused(tmp_path / "runs")
    assert f"holds no training: `python -m attention.train numbers --folder {tmp_path}/runs" in said
    other = ROOT / "data" / "checkpoints" / "transformer.safetensors"
    assert "is no translator of `python -m attention.train`" in refused(other)
    assert "is damaged, or no file of this course" in refused(ROOT / "README.md")
    assert "cannot be drawn" in refused(SHIPPED, "--attention", tmp_path / "a.nothing")


def test_a_text_that_is_not_utf_8_is_told_after_what_came_before(reads, capsys):
    reads("seven\neight\nzwölf\nnine\n".encode("latin-1"))
    assert main([SHIPPED, *CPU]) == 1
    said = capsys.readouterr()
    assert said.out == "sieben\nacht\n"
    assert "standard input is not UTF-8: line 3, character 3 is the byte 0xF6: mend" in said.err
    assert said.err.count("\n") == 1


def test_a_line_that_never_ends_is_no_text(reads, refused, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 100)
    reads(b"x" * 200)
    assert "standard input has a line of more than 100 bytes" in refused(SHIPPED)


# A training that has not ended


@pytest.fixture
def begun(tmp_path):
    """A training that has begun: its folder, and what trains in it."""
    texts = [("ab" * (1 + n % 5), "BA" * (1 + n % 7)) for n in range(60)]
    splits = {"train": texts[:40], "val": texts[40:50], "test": texts[50:]}
    words = Words("ab", "characters"), Words("AB", "characters")
    pairs = Pairs("toy", "exact match", *words, splits)
    folder = RunFolder(tmp_path / "run")
    folder.begin(dataclasses.asdict(SETTINGS))
    folder.keep_vocabularies(pairs.description())
    return folder, Trainer(SETTINGS, pairs, folder, torch.device("cpu"))


def test_an_unfinished_training_translates_with_its_last_save(begun, reads, capsys):
    folder, trainer = begun
    trainer.settings = dataclasses.replace(SETTINGS, steps=6)
    trainer.run()
    capsys.readouterr()
    reads(b"abab\n\n")
    assert main([str(folder.path), *CPU]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 2
    assert said.err == (
        f"{folder.path} is unfinished: these are the weights of step 6 of 9; "
        f"`python -m attention.train numbers --resume --folder {folder.path}` goes on\n"
    )
    run = shared.open_run(folder.path, torch.device("cpu"))
    last, _ = folder.load("weights-00000006.safetensors")
    torch.testing.assert_close({n: p.detach() for n, p in run.model.named_parameters()}, last)
    assert run.settings["beam"] == 2 and run.target.decode([3, 4]) == "AB"


def test_a_training_that_saved_nothing_says_when_it_will(begun, refused):
    folder, trainer = begun
    said = refused(folder.path)
    assert "has saved no weights yet, which it does every 3 steps" in said
    assert "--resume" in said
    trainer.settings = dataclasses.replace(SETTINGS, steps=3)
    trainer.run()
    (folder.path / VOCABULARIES).unlink()
    assert f"{VOCABULARIES} is missing" in refused(folder.path)
    (folder.path / VOCABULARIES).write_text("[")
    assert f"{VOCABULARIES} cannot be read" in refused(folder.path)


# In a pipe


def started():
    return subprocess.Popen(
        [sys.executable, "-m", "attention.translate", SHIPPED, *CPU],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        # What a shell starts in the background may ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def waits(process):
    """Whether it sleeps: a signal just before Python does is noticed only after it."""
    stat = Path(f"/proc/{process.pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.long
def test_a_line_is_answered_before_the_next_and_ctrl_c_is_one_word():
    with started() as process:
        for word, wanted in ((b"seven\n", "sieben\n"), (b"twelve\n", "zwölf\n")):
            process.stdin.write(word)
            process.stdin.flush()
            assert process.stdout.readline().decode() == wanted
        until(lambda: waits(process), "the command to wait for a line")
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 130
        assert process.stderr.read() == b"stopped\n"
