"""`python -m attention.train text`: a language model, by the machinery of all trainings."""

import dataclasses
import json
import math
import shutil

import pytest
import torch

from attention.language_models import language_model_loss
from attention.train import __main__ as command
from attention.train.core.trainer import Trainer
from attention.train.corpora import texts
from attention.train.mine import using
from attention.train.pieces import collected
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import hidden_units
from attention.train.write_run import open_run
from autograder.pieces import read
from tests.attention.train.mine.test_mine import LIBRARY, record, yours
from tests.cuda import NAME, cuda
from tests.small_text import TINY, trained, written

CPU = torch.device("cpu")
WORDS = [
    *("--d-model", "16", "--n-heads", "2", "--n-kv-heads", "1", "--n-layers", "1"),
    *("--merges", "20", "--length", "12", "--max-tokens", "60", "--warmup", "2", "--every", "2"),
    *("--steps", "4"),
]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    collected.take_back()


@pytest.fixture
def file(tmp_path):
    return str(written(tmp_path / "text.md"))


def arguments(file, folder, *more):
    return ["text", file, *WORDS, "--device", "cpu", "--folder", str(folder), *more]


def losses(folder):
    return [row["loss"] for row in RunFolder(folder).metrics(99)]


def test_a_training_leaves_all_that_is_promised(file, tmp_path, capsys, drawn):
    folder, exported = tmp_path / "run", tmp_path / "copy.safetensors"
    assert command.main(arguments(file, folder, "--export", str(exported))) == 0
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "metrics.csv", "curves.png", "curves.svg", "state.safetensors",
        "model.safetensors", "result.json", "vocabularies.json",
        "weights-00000002.safetensors", "weights-00000004.safetensors",
    }  # fmt: skip
    said = capsys.readouterr().out
    assert f"of {file} on\n" in said and "step 4 of 4" in said
    run, result = open_run(exported, CPU), json.loads((folder / "result.json").read_text())
    assert run.settings["d_ff"] == hidden_units(16) == 48
    assert result["parameters"] == sum(p.numel() for p in run.model.parameters())
    # Nats a token and bits per character are of the whole text that is held out.
    text = texts.read([file], dataclasses.replace(TINY, length=12), {})
    total = tokens = 0
    for passage in text.ids["val"]:
        ids = torch.tensor([passage])
        total += language_model_loss(run.model(ids)[0], ids).item() * (len(passage) - 1)
        tokens += len(passage) - 1
    assert result["held_out_tokens"] == tokens
    assert result["loss"] == pytest.approx(total / tokens, abs=1e-4)
    bits = total / math.log(2) / len("".join(text.held_out))
    assert result["bits_per_character"] == pytest.approx(bits, abs=1e-3)
    assert text.held_out[0].startswith(result["prompt"].rstrip("\ufffd")) and result["sample"]


def test_it_learns(tmp_path):
    settings = dataclasses.replace(TINY, steps=60, every=30, learning_rate=0.01)
    found = trained(tmp_path / "run", CPU, settings)
    values = [float(row["val_loss"]) for row in found.rows if row["val_loss"] != ""]
    assert values[-1] < values[0] < math.log(len(found.corpus.pieces))
    assert float(found.rows[-1]["loss"]) < 0.7 * float(found.rows[0]["loss"])


def test_a_training_that_was_stopped_goes_on_bit_by_bit(file, tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert command.main(arguments(file, whole)) == 0

    def stop(self, advance=Trainer._advance):
        if self.done == 3:  # a step after a save
            raise KeyboardInterrupt
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_advance", stop)
        assert command.main(arguments(file, broken)) == 130
    assert len(losses(broken)) == 2
    words = ["text", "--resume", "--folder", str(broken), "--device", "cpu"]
    assert command.main(words) == 0  # it knows its files
    assert losses(broken) == losses(whole)
    a, b = (RunFolder(folder).load("model.safetensors")[0] for folder in (whole, broken))
    torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize("resume", [["--resume"], []])
@pytest.mark.parametrize(
    "lost",
    ["state.safetensors", "config.json", "vocabularies.json", "metrics.csv", "weights-00000002"],
)
def test_a_run_that_lost_a_file_is_neither_resumed_nor_begun_anew(
    file, tmp_path, capsys, lost, resume
):
    folder = tmp_path / "run"
    assert command.main(arguments(file, folder)) == 0
    capsys.readouterr()
    (path,) = folder.glob(f"{lost}*")
    path.unlink()
    left = {one: one.stat().st_mtime_ns for one in folder.iterdir()}
    assert command.main([*arguments(file, folder), *resume]) == 1
    said = capsys.readouterr().err
    assert (f"{path} is missing, without which" if resume else "holds a training already") in said
    assert left == {one: one.stat().st_mtime_ns for one in folder.iterdir()}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["text"], "text needs FILES"),
        (["numbers", "{file}"], "numbers takes no FILES: text {file} does"),
        (["numbers", "--model", "modern"], "--model modern is not for numbers"),
        (["text", "{file}", "--model", "transformer"], "--model transformer is not for text"),
        (["text", "{file}", "--beam", "3"], "--beam is a setting of another model than modern"),
        (["numbers", "--window", "3"], "--window is a setting of another model than transformer"),
        (["text", "{file}", "--n-kv-heads", "3"], "4 is no multiple of 3"),
        (["text", "{file}", "--max-tokens", "99"], "--max-tokens 99 is less than --length 256"),
        (["text", "{file}", "--length", "9000", "--max-tokens", "9000"], "needs at least 9001"),
    ],
)
def test_what_does_not_fit_is_one_sentence(file, tmp_path, capsys, words, says):
    words = [word.format(file=file) for word in words]
    assert command.main([*words, "--device", "cpu", "--folder", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert says.format(file=file) in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_gpu_trains_it_too(file, tmp_path, capsys, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    exact = ("--dtype", "float32", "--steps", "2", "--every", "1")
    assert command.main(arguments(file, here, *exact)) == 0
    with cuda(monkeypatch) as device:
        monkeypatch.setattr(command, "choose_device", lambda _: device)
        assert command.main(arguments(file, there, *exact)) == 0
    assert json.loads((there / "result.json").read_text())["device"] == NAME
    a, b = ([float(loss) for loss in losses(folder)] for folder in (here, there))
    assert a == pytest.approx(b, rel=1e-4)


# With a learner's own pieces

LESSONS = {
    "masked_attention": ("06", ["masked_attention"]),
    "tokens_and_positions": ("08", ["rotary"]),
    "training": (
        "11",
        ["adamw_step", "TrainStep", "Evaluation", "batch_by_tokens", "clip_gradients"],
    ),
    "decoding": ("13", ["sample_tokens", "top_p_filter"]),
    "language_models": ("15", ["language_model_loss"]),
    "modern_decoder": (
        "20",
        ["rms_norm", "SwiGLU", "ModernAttention", "ModernDecoderLayer", "ModernDecoder"]
        + ["generate_with_cache"],
    ),
}


def with_pieces(folder, lessons):
    folder.mkdir()
    for lesson in lessons:
        shutil.copy(LIBRARY / f"{lesson}.py", folder)
    record(folder, lessons)
    return folder


@pytest.mark.long
def test_all_pieces_of_ones_own_have_the_losses_of_the_library(file, tmp_path, capsys, monkeypatch):
    pieces = with_pieces(tmp_path / "mine", LESSONS)
    assert sorted(name for _, names in LESSONS.values() for name in names) == sorted(
        using.NEEDED_FOR_TEXT
    )
    own, library = tmp_path / "own", tmp_path / "library"
    assert command.main(arguments(file, own, "--mine", str(pieces))) == 0
    said = capsys.readouterr().out
    assert yours(said) == {*using.NEEDED_FOR_TEXT}
    assert "The library's, for" not in said and "the library's is used" not in said
    kept = {piece.name for piece in read(own / using.COPY)}
    assert kept == set(using.NEEDED_FOR_TEXT)
    run = open_run(own, CPU)
    assert run.notes[0].startswith("with yours: ")
    assert type(run.model) is collected.own("ModernDecoder")
    assert command.main(arguments(file, library)) == 0
    a, b = ([float(loss) for loss in losses(folder)] for folder in (own, library))
    assert a == pytest.approx(b, rel=1e-3)


def test_a_wrong_piece_is_named_and_a_right_one_used(file, tmp_path, capsys, monkeypatch):
    pieces = with_pieces(tmp_path / "mine", {"language_models": LESSONS["language_models"]})
    (pieces / "modern_decoder.py").write_text(
        "def rms_norm(x, weight, eps=1e-6):\n    return x * weight\n"
    )
    lessons = {"modern_decoder": ("20", ["rms_norm"])}
    record(pieces, {**lessons, "language_models": LESSONS["language_models"]})
    assert command.main(arguments(file, tmp_path / "run", "--mine", str(pieces))) == 0
    said = capsys.readouterr().out
    assert "rms_norm: with it, the training step gives other results: losses " in said
    assert [piece.name for piece in read(tmp_path / "run" / using.COPY)] == ["language_model_loss"]
