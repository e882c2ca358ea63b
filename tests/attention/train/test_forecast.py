"""`--dry-run`: what it counts is what a training does, and the folder stays as it was."""

import dataclasses

import pytest
import torch
from torch import nn

from attention.provided.kept import kept_bytes
from attention.train import forecast
from attention.train.__main__ import main
from attention.train.corpora import Pairs, Words
from attention.train.forecast import rehearse
from attention.train.run_folder import RunFolder
from attention.train.settings import Settings
from attention.train.trainer import Trainer
from attention.training_on_gpu import training_flops, training_memory
from attention.transformer import Encoder

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


def test_the_command_writes_nothing_and_says_it(tmp_path, capsys):
    folder = tmp_path / "run"
    words = ["numbers", "--d-model", "16", "--n-heads", "2", "--d-ff", "16", "--n-layers", "1"]
    words += ["--max-tokens", "512", "--device", "cpu", "--folder", str(folder), "--dry-run"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"a dry run: nothing is written to {folder}")
    rows = {line[:12].strip(): line[14:] for line in said.splitlines()[1:]}
    assert list(rows) == [
        "device", "parameters", "steps", "tokens", "operations", "memory", "peak", "a step",
        "a save", "time",
    ]  # fmt: skip
    assert rows["a save"].endswith("; 8 of them")
    assert rows["time"].endswith("then 1 000 translations to judge it")
    assert list(tmp_path.iterdir()) == []
    assert main([*words, "--resume"]) == 1
    assert "leave out --resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599.9, "1 h 0 min")]
)
def test_a_time_is_rounded_before_it_is_split(seconds, said):
    assert forecast.duration(seconds) == said
