"""The training loop: it learns, resumes exactly, and averages the last weights."""

import dataclasses
import math
import random
import statistics
import sys

import pytest
import torch

from attention.provided.models.model_file import ModelFileError
from attention.train.core.model import load_model
from attention.train.core.step import learning_rate
from attention.train.core.trainer import Diverged, Trainer
from attention.train.corpora.token_ids import Pairs, Words
from attention.train.runs.run_folder import RunFolder, RunFolderError
from attention.train.runs.settings import Settings

CPU = torch.device("cpu")
TINY = Settings(
    d_model=16, n_heads=2, d_ff=16, n_layers=1, dropout=0.2, steps=9, max_tokens=60, warmup=2,
    every=3, average=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def pairs():
    draw = random.Random(0)
    words = ["".join(draw.choices("abcd", k=draw.randint(1, 8))) for _ in range(60)]
    texts = [(word, word[::-1].upper()) for word in words]
    splits = {"train": texts[:40], "val": texts[40:50], "test": texts[50:]}
    return Pairs(
        "toy", "exact match", Words("abcd", "characters"), Words("ABCD", "characters"), splits
    )


def trainer(pairs, path, resume=False, **changes):
    chosen = dataclasses.replace(TINY, **changes)
    return Trainer(chosen, pairs, RunFolder(path), CPU, resume)


def losses(rows):
    return [float(row["loss"]) for row in rows]


def train(pairs, path, **changes):
    RunFolder(path).begin({})
    made = trainer(pairs, path, **changes)
    made.run()
    return made


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_resumed_training_has_the_losses_of_an_unbroken_one(pairs, tmp_path, accumulate):
    whole = train(pairs, tmp_path / "whole", accumulate=accumulate)
    RunFolder(tmp_path / "broken").begin({})
    broken = trainer(pairs, tmp_path / "broken", accumulate=accumulate)
    for _ in range(5):  # two steps more than were saved
        broken.rows.append(broken._advance())
        if broken.done == 3:
            broken._evaluate(broken.rows[-1])
            broken._save()
    torch.manual_seed(99)  # nothing of the first process is left in the second
    resumed = trainer(pairs, tmp_path / "broken", resume=True, accumulate=accumulate)
    assert resumed.done == 3
    resumed.run()
    assert losses(resumed.rows) == losses(whole.rows)
    final, other = whole.finish(), resumed.finish()
    torch.testing.assert_close(final.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_a_training_that_was_stopped_before_its_first_save_begins_anew(pairs, tmp_path):
    RunFolder(tmp_path).begin({})
    assert trainer(pairs, tmp_path, resume=True).done == 0


def test_it_learns(pairs, tmp_path):
    trained = train(
        pairs, tmp_path / "run", steps=60, every=20, dropout=0.0, learning_rate=0.01, smoothing=0.0
    )
    assert losses(trained.rows)[-1] < 0.6 * losses(trained.rows)[0]
    validation = [float(row["val_loss"]) for row in trained.rows if row["val_loss"] != ""]
    assert len(validation) == 3 and validation[-1] < validation[0]


def test_every_epoch_reads_every_sentence_once(pairs, tmp_path):
    made = trainer(pairs, tmp_path)
    for epoch in range(3):
        first = epoch * len(made.batches)
        read = [
            made.corpus.source.decode(row)
            for step in range(first + 1, first + len(made.batches) + 1)
            for batch in made._batches_of(step)
            for row in made._tensors(batch)[0].tolist()
        ]
        assert sorted(read) == sorted(text for text, _ in pairs.texts["train"])


def test_the_final_weights_are_the_mean_of_the_last_saves(pairs, tmp_path):
    made = train(pairs, tmp_path / "run")
    assert made.kept == ["weights-00000006.safetensors", "weights-00000009.safetensors"]
    assert {path.name for path in made.folder.path.glob("weights-*")} == set(made.kept)
    a, b = (made.folder.load(name)[0] for name in made.kept)
    model, source, target = load_model((made.finish(), made.folder.path / "model.safetensors")[1])
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), (a[name] + b[name]) / 2)
    assert source.decode(source.encode("abba")) == "abba" and len(target) == 7
    assert not model.training


@pytest.fixture(autouse=True)
def outside_of_a_notebook(monkeypatch):
    """Another test of this process may have imported what makes the bar believe it is in one."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


def test_a_line_of_the_log_has_the_mean_loss_since_the_last_line(pairs, tmp_path, capsys):
    made = train(pairs, tmp_path / "run", steps=6)
    begin, *lines = capsys.readouterr().out.splitlines()
    assert begin == "training 6 steps on cpu; a save every 3 steps"
    means = [statistics.fmean(losses(made.rows)[part]) for part in (slice(0, 3), slice(3, 6))]
    assert [line.split(" · ")[1] for line in lines] == [f"loss {mean:.3f}" for mean in means]


def test_a_training_that_diverges_between_two_looks_names_the_step(pairs, tmp_path, monkeypatch):
    made = trainer(pairs, tmp_path)
    values = iter([3.0, 2.0, math.inf, math.nan, math.nan])
    monkeypatch.setattr(made.step, "forward", lambda _: torch.tensor(next(values)))
    for _ in range(5):
        made.rows.append(made._advance())
    with pytest.raises(Diverged, match="the loss of step 3 is inf"):
        made._evaluate(made.rows[-1])


@pytest.mark.parametrize("drop_hidden", [True, False])
def test_hidden_units_are_dropped_unless_one_says_otherwise(pairs, tmp_path, drop_hidden):
    made = trainer(pairs, tmp_path, drop_hidden=drop_hidden).model.train()
    x = torch.ones(5, 16)
    for layer in (*made.encoder.layers, *made.decoder.layers):
        feed_forward = layer.feed_forward
        assert torch.equal(feed_forward(x), feed_forward.eval()(x)) is not drop_hidden
        assert not layer.dropout(x).all()  # updates are dropped in any case


def test_the_state_of_another_model_is_refused(pairs, tmp_path):
    train(pairs, tmp_path / "run", steps=3)
    with pytest.raises(ModelFileError, match="state.safetensors holds weights of another model"):
        trainer(pairs, tmp_path / "run", resume=True, d_ff=24)


def test_the_learning_rate_rises_and_falls_in_a_line():
    chosen = dataclasses.replace(TINY, warmup=4, learning_rate=1.0, steps=10)
    found = {step: learning_rate(step, chosen) for step in (1, 2, 4, 5, 10)}
    assert found == pytest.approx({1: 0.25, 2: 0.5, 4: 1.0, 5: 6 / 7, 10: 1 / 7})


def test_metrics_that_lost_a_step_are_refused(pairs, tmp_path):
    train(pairs, tmp_path / "run", steps=3)
    path = tmp_path / "run" / "metrics.csv"
    path.write_text("".join(path.read_text().splitlines(True)[:-1]))
    with pytest.raises(RunFolderError, match="metrics.csv lacks steps of the last save"):
        trainer(pairs, tmp_path / "run", resume=True)
