"""`python -m attention.train`, from options to pictures, on a device that refuses as CUDA does."""

import json

import matplotlib.pyplot as plt
import pytest

from attention.provided.files import ROOT
from attention.train import __main__ as command
from attention.train.corpora import token_ids
from attention.train.mine import trial, using
from attention.train.pieces import collected
from attention.train.runs import settings
from attention.train.translate_run import open_run
from autograder.inside.device.rehearsal import Rehearsed
from autograder.pieces import RECORD
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


def test_a_piece_that_makes_its_mask_on_the_cpu_is_left_to_the_library(
    device, tmp_path, monkeypatch
):
    (tmp_path / "masked_attention.py").write_text(
        "import torch\n\n\ndef causal_mask(T, device=None):\n"
        "    return torch.ones(T, T, dtype=torch.bool).tril()\n"
    )
    piece = {"name": "causal_mask", "lesson": "masked_attention", "notebook": "06"}
    (tmp_path / RECORD).write_text(json.dumps({"pieces": [piece]}))
    monkeypatch.setattr(trial, "LONGEST", 3)
    chosen = settings.from_options(command.parser().parse_args(TINY))
    pieces = collected.load(tmp_path)
    assert using.choose(trial.Trial(chosen, command.read(), device, pieces)) == []
    assert pieces.why["causal_mask"].startswith("it raises DeviceMismatch: Expected all tensors")
