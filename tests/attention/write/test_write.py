"""`python -m attention.write`: token by token, as without a cache, and one sentence for errors."""

import dataclasses

import pytest
import torch

from attention.language_models import generate
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.files import ROOT
from attention.provided.models import gguf
from attention.provided.models.decoders import smollm2
from attention.train import write_run as shared
from attention.train.core.sampling import Sampling
from attention.train.corpora.texts import TextPieces
from attention.translate.__main__ import main as translate
from attention.write.__main__ import Characters, main
from tests import small_chat_model
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
    draw = torch.Generator().manual_seed(how.seed)

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
    found = shared.write(run, prompt, how, 9, seen.append)
    assert found == without_cache(run, prompt, how, 9)
    assert seen == found


def test_a_long_text_is_read_anew_in_halves(run, monkeypatch):
    read, most = [], TINY.length
    real = run.model.forward
    monkeypatch.setattr(run.model, "forward", lambda x, *more: (read.append(x), real(x, *more))[1])
    how = Sampling(temperature=0)
    monkeypatch.setattr(Sampling, "choose", lambda self, scores, noise: torch.tensor([5]))
    found = shared.write(run, [6, 7], how, 30, lambda token: None)
    assert len(found) == 30
    wide = [x for x in read if x.shape[1] > 1]
    assert [x.shape[1] for x in wide] == [2, most // 2, most // 2, most // 2]
    run.settings["window"], read[:] = 3, []
    shared.write(run, [6, 7], how, 30, lambda token: None)
    assert [x.shape[1] for x in read] == [2] + [1] * 29


def test_a_text_ends_with_eos(run, monkeypatch):
    steps = iter([5, 6, EOS])
    monkeypatch.setattr(Sampling, "choose", lambda self, scores, noise: torch.tensor([next(steps)]))
    assert shared.write(run, [8] * 10, Sampling(), 20, lambda token: None) == [5, 6]


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


@pytest.mark.parametrize("temperature", [1e-38, 1e-300])
def test_the_smallest_temperature_draws_the_best(temperature):
    scores, noise = torch.tensor([[99.0, 99.0, 9.0, 30.0, 8.0]]), torch.tensor([0.5])
    for how in (Sampling(temperature), Sampling(temperature, top_k=2, top_p=1.0)):
        assert how.choose(scores, noise) == 3


def test_half_a_character_is_held_back(capsys):
    pieces = TextPieces([])
    shown, printed = Characters(pieces), []
    for token in [*pieces.encode("a🙂\x1b[0m"), pieces.encode("é")[0]]:
        shown.see(token)
        printed.append(capsys.readouterr().out)
    assert printed == ["a", "", "", "", "🙂", "", "[", "0", "m", ""]
    shown.end()
    assert capsys.readouterr().out == "\ufffd\n"


def test_prompt_and_text_appear_and_a_seed_repeats_them(folder, capsys):
    words = [str(folder), "--prompt", "die Straße", "--length", "20", "--device", "cpu"]
    assert main(words) == 0
    alone = capsys.readouterr().out
    assert alone.startswith("die Straße") and alone.endswith("\n")
    for seed, same in (("0", True), ("1", False)):
        assert main([*words, "--seed", seed]) == 0
        assert (capsys.readouterr().out == alone) is same


def test_a_gpu_writes_the_same(folder, capsys, monkeypatch):
    words = [str(folder), "--prompt", "die", "--length", "15"]
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


def test_what_is_no_run_is_one_sentence(tmp_path, folder, refused, capsys):
    assert "holds no training: `python -m attention.train text FILES" in refused(tmp_path / "runs")
    other = ROOT / "data" / "checkpoints" / "transformer.safetensors"
    assert "is no language model of `python -m attention.train`" in refused(other)
    assert "is damaged, or no file of this course" in refused(ROOT / "README.md")
    assert f"a translator, no language model: use `python -m attention.translate {SHIPPED}`" in (
        refused(SHIPPED)
    )
    assert translate([str(folder), "--device", "cpu"]) == 1
    assert f"use `python -m attention.write {folder}`" in capsys.readouterr().err


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


def test_the_published_model_goes_on_with_a_text(tmp_path, monkeypatch, capsys, refused):
    small_chat_model.write(tmp_path / smollm2.NAME)
    monkeypatch.setattr(smollm2, "read", lambda: gguf.GGUF(tmp_path / smollm2.NAME))
    words = ["--model", "smollm2", "--prompt", "the cat", "--length", "9", "--device", "cpu"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("the cat") and len(said) > 12
    opened = shared.published(CPU)
    ids = without_cache(opened, opened.pieces.encode("the cat"), Sampling(), 9)
    assert said == f"the cat{opened.pieces.decode(ids)}\n"
    assert "say either a RUN or a --model" in refused()
    assert "say either a RUN or a --model" in refused("runs/text", "--model", "smollm2")
