"""`python -m attention.write`: token by token, as without a cache, and one sentence for errors."""

import dataclasses
import io
import json
import sys

import pytest
import torch

from attention.language_models import generate
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.files import ROOT
from attention.train import write_run as shared
from attention.train.core.sampling import Sampling
from attention.train.corpora.texts import TextPieces
from attention.translate.__main__ import main as translate
from attention.write.__main__ import main
from attention.write.output import Streams, printable
from tests.cuda import cuda
from tests.small_text import TINY, trained

CPU = torch.device("cpu")
SHIPPED = ROOT / "data" / "checkpoints" / "numbers.safetensors"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a training that has ended."""
    found = trained(tmp_path_factory.mktemp("write") / "run", CPU)
    found.finish()
    return found.folder.path


@pytest.fixture
def run(folder):
    return shared.open_run(folder, CPU)


@pytest.fixture
def refused(capsys):
    """A function that runs the command and returns the one sentence with which it ends."""

    def fail(*words):
        assert main([*map(str, words), "--device", "cpu"]) == 1
        said = capsys.readouterr()
        assert said.err.count("\n") == 1 and said.err.startswith("python -m attention.write: ")
        return said.err

    return fail


def without_cache(run, prompt, how, length):
    """What is written if all is read anew at each token: lesson 15's generate."""
    (draw,) = how.generators(1)

    def choose(scores):
        return how.choose(scores, torch.rand((), generator=draw)[None])

    ids = generate(lambda x: run.model(x)[0], torch.tensor([prompt]), choose, length)[0].tolist()
    return ids[: ids.index(EOS)] if EOS in ids else ids


@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize(
    "how", [Sampling(), Sampling(temperature=0), Sampling(1.5, top_k=5, top_p=1.0, seed=7)]
)
def test_it_writes_what_it_would_without_a_cache(run, how, window):
    for layer in run.model.layers:
        layer.attention.window = window or None
    prompt, seen = shared.encode(run, "die"), []
    (found,) = shared.write(run, prompt, how, 1, 9, lambda *one: seen.append(one))
    assert found == without_cache(run, prompt, how, 9)
    assert seen == [(0, token) for token in found]


def test_texts_beside_each_other_are_those_of_their_seeds(run):
    prompt, how = shared.encode(run, "und"), Sampling(temperature=2.0, top_p=1.0)
    beside = shared.write(run, prompt, how, 3, 30, lambda *_: None)
    for number, text in enumerate(beside):
        alone = dataclasses.replace(how, seed=number)
        assert shared.write(run, prompt, alone, 1, 30, lambda *_: None) == [text]
    assert len({tuple(text) for text in beside}) == 3


def test_a_long_text_is_read_anew_in_halves(run, monkeypatch):
    read, most, run.own = [], TINY.length, True  # the library's model reads: it can be watched
    real = run.model.forward
    monkeypatch.setattr(run.model, "forward", lambda x, *more: (read.append(x), real(x, *more))[1])
    how = Sampling(temperature=0)
    monkeypatch.setattr(Sampling, "choose", lambda self, scores, noise: torch.tensor([5]))
    (found,) = shared.write(run, [6, 7], how, 1, 30, lambda *_: None)
    assert len(found) == 30
    wide = [x for x in read if x.shape[1] > 1]
    assert [x.shape[1] for x in wide] == [2, most // 2, most // 2, most // 2]
    run.settings["window"], read[:] = 3, []
    shared.write(run, [6, 7], how, 1, 30, lambda *_: None)
    assert [x.shape[1] for x in read] == [2] + [1] * 29


def test_a_text_that_ends_leaves_the_others_going(run, monkeypatch):
    steps = iter([[5, 6, 7], [EOS, 6, EOS], [9, 6, 9], *[[6]] * 30])
    monkeypatch.setattr(
        Sampling, "choose", lambda self, scores, noise: torch.tensor(next(steps)[: len(noise)])
    )
    found = shared.write(run, [8] * 10, Sampling(), 3, 20, lambda *_: None)
    assert [found[0], found[2]] == [[5], [7]] and found[1] == [6] * 20


def test_what_is_drawn_is_what_may_be():
    scores = torch.full((1, 12), -9.0)
    scores[0, [PAD, BOS]], scores[0, [4, 5, 6]] = 20.0, torch.tensor([3.0, 2.9, 2.0])
    noise = torch.linspace(0.001, 0.999, 50)
    for how, may in (
        (Sampling(temperature=0), {4}),
        (Sampling(top_k=2, top_p=1.0), {4, 5}),
        (Sampling(temperature=1.0, top_p=0.8), {4, 5}),
        (Sampling(top_p=1.0), {4, 5, 6}),
    ):
        drawn = {how.choose(scores, one[None]).item() for one in noise}
        assert drawn == may
    assert scores[0, PAD] == 20  # the model's own stay as they are


def test_half_a_character_is_held_back(capsys):
    pieces = TextPieces([])
    streams = Streams(pieces, 2, show=True)
    shown = []
    for token in pieces.encode("a🙂\x1b[0m"):
        streams.see(0, token)
        shown.append(capsys.readouterr().out)
    assert shown == ["a", "", "", "", "🙂", "", "[", "0", "m"]
    streams.see(1, pieces.encode("é")[0])
    assert streams.finish() == ["a🙂\x1b[0m", "\ufffd"]


def test_prompt_and_text_appear_and_a_seed_repeats_them(folder, capsys):
    words = [str(folder), "--prompt", "die Straße", "--length", "20", "--device", "cpu"]
    assert main(words) == 0
    alone = capsys.readouterr().out
    assert alone.startswith("die Straße") and alone.endswith("\n")
    assert main([*words, "--count", "2"]) == 0
    both = capsys.readouterr().out
    assert both.startswith(f"--- 1 of 2 ---\n{alone}--- 2 of 2 ---\ndie Straße")
    assert main([*words, "--json", "--count", "2"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.removesuffix("\n").split("\n")]
    assert [row["number"] for row in rows] == [1, 2]
    assert printable(rows[0]["prompt"] + rows[0]["text"]) + "\n" == alone
    assert all((row["tokens"] < 20) == row["ended"] for row in rows)


@pytest.mark.parametrize(
    ("given", "prompt"), [(b"zum \xc3\xbc\n", "zum ü"), (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb")]
)
def test_the_prompt_may_come_from_standard_input(folder, capsys, monkeypatch, given, prompt):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert main([str(folder), "--prompt", "-", "--length", "2", "--json", "--device", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out)["prompt"] == prompt


def test_a_gpu_writes_the_same(folder, capsys, monkeypatch):
    words = [str(folder), "--prompt", "die", "--length", "15", "--count", "2"]
    assert main([*words, "--device", "cpu"]) == 0
    here = capsys.readouterr().out
    with cuda(monkeypatch) as device:
        monkeypatch.setattr("attention.write.__main__.choose_device", lambda _: device)
        assert main(words) == 0
    assert capsys.readouterr().out == here


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--length", "0"], "--length must be at least 1, not 0"),
        (["--count", "1001"], "--count must be from 1 to 1000, not 1001"),
        (["--top-k", "-1"], "--top-k must be at least 0, not -1"),
        (["--top-p", "nan"], "--top-p must be above 0 and at most 1, not nan"),
        (["--temperature", "inf"], "--temperature must be at least 0, not inf"),
        (["--seed", "-1"], "--seed must be at least 0"),
        (["--prompt", "a b c d e f g h i"], "more than the 12 that the model has learned to read"),
        (["--device", "tpu"], "--device must be cuda, mps or cpu, not 'tpu'"),
    ],
)
def test_a_wrong_option_is_one_sentence(folder, capsys, words, says):
    assert main([str(folder), "--device", "cpu", *words]) == 1
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_what_is_no_run_is_one_sentence(tmp_path, folder, refused, capsys, monkeypatch):
    assert "holds no training: `python -m attention.train text FILES" in refused(tmp_path / "runs")
    other = ROOT / "data" / "checkpoints" / "transformer.safetensors"
    assert "is no language model of `python -m attention.train`" in refused(other)
    assert "is damaged, or no file of this course" in refused(ROOT / "README.md")
    assert f"a translator, no language model: use `python -m attention.translate {SHIPPED}`" in (
        refused(SHIPPED)
    )
    assert translate([str(folder), "--device", "cpu"]) == 1
    assert f"use `python -m attention.write {folder}`" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"f\xfcr")))
    assert "standard input is not UTF-8 at byte 2: convert" in refused(folder, "--prompt", "-")


def test_a_training_that_has_not_ended_writes_with_its_last_save(tmp_path, capsys, refused):
    settings = dataclasses.replace(TINY, steps=3)
    found = trained(tmp_path / "run", CPU, settings)
    capsys.readouterr()
    words = [str(tmp_path / "run"), "--length", "3", "--device", "cpu"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.out and "is unfinished: these are the weights of step 3 of 3" in said.err
    assert "`python -m attention.train text --resume --folder" in said.err
    for path in found.folder.path.glob("weights-*"):
        path.unlink()
    assert "has saved no weights yet, which it does every 3 steps" in refused(tmp_path / "run")
