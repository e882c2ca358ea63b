"""`--dry-run`: what it counts is what a training does, and the folder stays as it was."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from attention.provided.measuring.saved_for_backward import kept_bytes
from attention.train import dry_run as forecast
from attention.train.__main__ import main
from attention.train.core.trainer import Trainer
from attention.train.corpora.token_ids import Pairs, Words
from attention.train.dry_run import rehearse
from attention.train.pieces import collected
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import Settings
from attention.training_on_gpu import training_flops, training_memory
from attention.transformer import Encoder
from tests.waiting import LONG

CPU = torch.device("cpu")
TINY = Settings(
    d_model=16, n_heads=2, d_ff=24, n_layers=2, steps=10, max_tokens=60, warmup=2, every=4,
    accumulate=2,
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def in_haste():
    """Two steps are measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast, "STEPS", (2, 2))
        yield


@pytest.fixture(scope="module")
def pairs():
    texts = [("ab" * (1 + n % 5), "BA" * (1 + n % 7)) for n in range(60)]
    splits = {"train": texts[:40], "val": texts[40:50], "test": texts[50:]}
    return Pairs("toy", "exact match", Words("ab", "characters"), Words("AB", "characters"), splits)


@pytest.fixture(scope="module")
def found(pairs):
    return rehearse(TINY, pairs, CPU)


def test_what_is_counted_is_what_an_epoch_of_training_has(found, pairs, tmp_path):
    trained = Trainer(TINY, pairs, RunFolder(tmp_path), CPU)
    assert found.parameters == sum(p.numel() for p in trained.model.parameters())
    assert found.batches == len(trained.batches)
    # As many steps as there are batches, of two batches each: two epochs.
    steps = [list(trained._batches_of(step)) for step in range(1, found.batches + 1)]
    tensors = [trained._tensors(batch) for batches in steps for batch in batches]
    real = sum((side != 0).sum().item() for both in tensors for side in both)
    assert found.tokens * found.batches == pytest.approx(real)
    places = sum(side.numel() for both in tensors for side in both)
    assert found.places * found.batches == pytest.approx(places)
    sizes = {"d_model": 16, "d_ff": 24, "n_layers": 2, "vocab_size": 5}
    flops = sum(
        len(source) * training_flops(source.shape[1], target.shape[1], **sizes)
        for source, target in tensors
    )
    assert found.flops * found.batches == pytest.approx(flops)


def test_the_time_is_that_of_the_steps_and_the_saves(found):
    assert len(found.measured) == 2 and min(found.measured) > 0
    assert found.saves == 3  # after steps 4, 8 and 10
    # The first save may take longer than the one that was measured for the others.
    assert found.seconds >= 10 * found.step + 2 * found.save
    assert found.cpu_seconds > 0


def test_activations_are_counted_as_lesson_12_does_where_its_formula_holds():
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 3}
    x = torch.randn(5, 7, 16, requires_grad=True)
    stack = Encoder(**sizes, dropout=0.0)
    stack.norm = nn.Identity()
    found = kept_bytes(lambda: stack(x), stack.parameters())
    assert found == training_memory(5, 7, **sizes)["activations"]


def test_twice_the_tokens_of_a_batch_need_twice_the_memory(found, pairs):
    large = rehearse(dataclasses.replace(TINY, max_tokens=120), pairs, CPU)
    assert 1.5 * found.activations < large.activations < 2.2 * found.activations
    assert large.parameters == found.parameters


LINES = [
    "device", "parameters", "steps", "tokens", "operations", "memory", "peak", "a step", "a save",
    "time",
]  # fmt: skip


def dry_run(folder, *more):
    """The words of a small dry run."""
    words = ["numbers", "--d-model", "16", "--n-heads", "2", "--d-ff", "16", "--n-layers", "1"]
    words += ["--max-tokens", "512", "--device", "cpu", "--folder", str(folder), "--dry-run"]
    return [*words, *more]


def test_the_command_writes_nothing_and_says_it(tmp_path, capsys):
    folder = tmp_path / "run"
    words = dry_run(folder)
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"a dry run: nothing is written to {folder}")
    rows = {line[:12].strip(): line[14:] for line in said.splitlines()[1:]}
    assert list(rows) == LINES
    assert rows["a save"].endswith("; 8 of them")
    assert rows["time"].endswith("then 1 000 translations to judge it")
    assert list(tmp_path.iterdir()) == []
    assert main([*words, "--resume"]) == 1
    assert "leave out --resume" in capsys.readouterr().err


PIECE = """
import torch
CALLS = []
def causal_mask(T, device=None):
    CALLS.append(T)
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()
"""


def test_it_measures_a_students_pieces_and_writes_nothing(tmp_path, capsys, monkeypatch):
    pieces, folder = tmp_path / "mine", tmp_path / "run"
    pieces.mkdir()
    (pieces / "masked_attention.py").write_text(PIECE)
    piece = collected.Piece("causal_mask", "masked_attention", "06_masked_attention.ipynb")
    (pieces / collected.RECORD).write_text(json.dumps({"pieces": [dataclasses.asdict(piece)]}))
    before = {path: path.stat().st_mtime_ns for path in pieces.iterdir()}
    calls = []

    def watched(*arguments):
        calls.append(len(collected.own("causal_mask").__globals__["CALLS"]))
        found = rehearse(*arguments)
        calls.append(len(collected.own("causal_mask").__globals__["CALLS"]))
        return found

    monkeypatch.setattr(forecast, "rehearse", watched)
    try:
        assert main(dry_run(folder, "--mine", str(pieces))) == 0
        said = capsys.readouterr().out
    finally:
        collected.take_back()
    tried, _, shown = said.partition(f"a dry run: nothing is written to {folder}")
    assert "trying your pieces in" in tried and "causal_mask" in tried
    assert [line[:12].strip() for line in shown.splitlines()[1:]] == LINES
    assert calls[0] < calls[1]  # not only when the piece was tried
    assert not folder.exists()
    assert before.items() <= {path: path.stat().st_mtime_ns for path in pieces.iterdir()}.items()


OF_TWO = """
import os, sys
from attention.train import dry_run as forecast
from attention.train.__main__ import main
forecast.SECONDS = 1e9 * float(os.environ["RANK"])  # the second alone would measure for long
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.long
def test_of_two_processes_one_prints_and_none_writes(tmp_path):
    folder = tmp_path / "run"
    (tmp_path / "of_two.py").write_text(OF_TWO)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*start, str(tmp_path / "of_two.py"), *dry_run(folder, "--max-tokens", "256")],
        capture_output=True,
        text=True,
        timeout=LONG,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith(f"a dry run: nothing is written to {folder}")
    assert [line[:12].strip() for line in rest] == LINES
    assert "2 processes" in rest[0] and "of 5 measured" in done.stdout
    assert not folder.exists()
    assert [path for path in tmp_path.rglob("*") if path.suffix in (".safetensors", ".csv")] == []


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599.9, "1 h 0 min")]
)
def test_a_time_is_rounded_before_it_is_split(seconds, said):
    assert forecast.duration(seconds) == said
