"""`python -m attention.train`, from options to pictures, on a device that refuses as CUDA does."""

import json
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import attention
from attention.provided.files import ROOT
from attention.train import __main__ as command
from attention.train import dry_run
from attention.train.corpora import token_ids
from attention.train.mine import trial, using
from attention.train.pieces import collected
from attention.train.runs import settings
from attention.train.runs.run_folder import RunFolder
from attention.train.translate_run import open_run
from autograder.inside.device.rehearsal import Rehearsed
from tests.cuda import NAME, cuda

SHIPPED = str(ROOT / "data" / "checkpoints" / "numbers.safetensors")
TINY = [
    *("numbers", "--d-model", "16", "--n-heads", "2", "--d-ff", "16", "--n-layers", "1"),
    *("--warmup", "2", "--max-tokens", "600", "--every", "1", "--judged", "1", "--beam", "2"),
    *("--steps", "2", "--dropout", "0.1"),
]


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The command finds CUDA, and trains on a few short numbers: a search takes its time."""
    pairs = token_ids.numbers(30)
    for split, count in (("train", 6), ("val", 3), ("test", 3)):
        short = sorted(pairs.texts[split], key=lambda pair: len(pair[1]))[:count]
        pairs.texts[split] = short
    pairs.__post_init__()
    monkeypatch.setattr(command, "read", lambda *_: pairs)
    with cuda(monkeypatch) as there:
        monkeypatch.setattr(command, "choose_device", lambda _: there)
        yield there
    collected.take_back()
    plt.close("all")


def losses(folder):
    return [float(row["loss"]) for row in RunFolder(folder).metrics(2)]


def test_a_training_leaves_all_that_is_promised(device, tmp_path, capsys, drawn):
    folder = tmp_path / "run"
    assert command.main([*TINY, "--folder", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "metrics.csv", "curves.png", "curves.svg", "state.safetensors",
        "model.safetensors", "result.json", "vocabularies.json",
        "weights-00000001.safetensors", "weights-00000002.safetensors",
    }  # fmt: skip
    result = json.loads((folder / "result.json").read_text())
    assert result["device"] == NAME and result["test_sentences"] == 1
    assert "training 2 steps on cuda" in capsys.readouterr().out
    (folder / "model.safetensors").unlink()  # as after a stop before the end
    assert command.main(["numbers", "--folder", str(folder), "--resume"]) == 0
    assert "resumed after step 2 of 2 steps on cuda" in capsys.readouterr().out
    run = open_run(folder, device)
    assert all(isinstance(x, Rehearsed) for x in run.model.parameters())


def test_a_run_translates_there_and_is_drawn(tmp_path, capsys):
    picture = tmp_path / "picture.png"
    words = ["--folder", SHIPPED, "--translate", "twelve", "seven", "--draw", str(picture)]
    assert command.main(words) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["twelve -> zwölf", "seven -> sieben"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_dry_run_says_what_the_gpu_held(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dry_run, "STEPS", (1, 1))
    assert command.main([*TINY, "--dry-run", "--folder", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert f"device  {NAME}" in said and "peak  1 MB, measured" in said
    assert not (tmp_path / "run").exists()


@pytest.fixture
def every(tmp_path):
    """A folder with all pieces of a training, in the library's own words."""
    folder = tmp_path / "mine"
    folder.mkdir()
    lessons = {}
    for path in sorted(Path(attention.__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = [
            name for name in using.NEEDED if f"\ndef {name}(" in text or f"class {name}(" in text
        ]
        if names:
            shutil.copy(path, folder)
            lessons |= dict.fromkeys(names, path.stem)
    pieces = [{"name": name, "lesson": at, "notebook": f"00_{at}"} for name, at in lessons.items()]
    (folder / collected.RECORD).write_text(json.dumps({"pieces": pieces}))
    return folder


@pytest.mark.long
def test_ones_own_pieces_are_tried_and_used_there(every, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trial, "LONGEST", 3)
    # One time for all: each is measured on the CPU elsewhere.
    monkeypatch.setattr(using, "time_piece", lambda *_: using.Timed("causal_mask", "", 1.0, 1.0))
    with_own, without = tmp_path / "with", tmp_path / "without"
    monkeypatch.setattr(RunFolder, "draw", lambda *_: None)
    more = ("--dropout", "0", "--dtype", "float32")
    assert command.main([*TINY, *more, "--mine", str(every), "--folder", str(with_own)]) == 0
    said = capsys.readouterr().out
    assert "the library's is used" not in said and "The library's, for" not in said
    assert {piece.name for piece in collected.read(with_own / using.COPY)} == set(using.NEEDED)
    assert command.main([*TINY, *more, "--folder", str(without)]) == 0
    assert losses(with_own) == pytest.approx(losses(without), rel=1e-3)


def test_a_piece_that_makes_its_mask_on_the_cpu_is_left_to_the_library(
    device, tmp_path, monkeypatch
):
    (tmp_path / "masked_attention.py").write_text(
        "import torch\n\n\ndef causal_mask(T, device=None):\n"
        "    return torch.ones(T, T, dtype=torch.bool).tril()\n"
    )
    piece = {"name": "causal_mask", "lesson": "masked_attention", "notebook": "06"}
    (tmp_path / collected.RECORD).write_text(json.dumps({"pieces": [piece]}))
    monkeypatch.setattr(using, "_whole_step", lambda *_: {})
    monkeypatch.setattr(trial, "LONGEST", 3)
    chosen = settings.from_options(command.parser().parse_args(TINY))
    pieces = collected.load(tmp_path)
    assert using.choose(pieces, chosen, command.read(), device) == ([], {})
    assert pieces.why["causal_mask"].startswith("it raises DeviceMismatch: Expected all tensors")
