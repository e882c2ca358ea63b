"""The recorded trainings of lessons 11 and 12: their schedules, batches and measures."""

import matplotlib
import pytest
import torch

matplotlib.use("agg")

from attention.experiments import training, training_on_gpu
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.training import batch_by_tokens, noam_learning_rate


def test_the_schedule_is_that_of_the_paper_up_to_its_peak():
    rates = [training.rate(step, "noam", 0.0198, 40) for step in range(1, 200)]
    paper = [noam_learning_rate(step, 64, 40) for step in range(1, 200)]
    assert rates == pytest.approx(paper, rel=2e-3)
    assert training.rate(90, "rise", 0.01, 40) == training.rate(1, "constant", 0.01, 40) == 0.01


def test_buckets_hold_what_the_exercise_would_put_there():
    pairs = numbers(500, 50).train
    lengths = [len(german) + 1 for _, _, german in pairs]
    expected = batch_by_tokens(lengths, training.MAX_TOKENS)
    found = training.buckets_of(pairs)
    assert [[pairs[index] for index in batch] for batch in expected] == found


def test_a_strange_batch_keeps_its_padding():
    corpus = numbers()
    batch = corpus.batch([corpus.train[0], corpus.train[-1]])
    strange = training._strange(batch, len(corpus.target_vocabulary), 0)
    assert torch.equal(strange.target == PAD, batch.target == PAD)
    assert not torch.equal(strange.target, batch.target)


def test_a_few_steps_lower_the_loss_and_come_out_again():
    first, again = (training.losses_at([0.003] * 6, seed=1) for _ in range(2))
    assert first == again
    assert first[-1] < first[0]


@pytest.mark.parametrize("scale, lost", [(1.0, None), (2.0**16, 0.0), (2.0**60, "infinite")])
def test_gradients_are_rounded_to_float16(scale, lost):
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.tensor([[1e-9, 0.5]])
    share = training_on_gpu.round_gradients(model, scale)
    if lost == "infinite":
        assert share is None
    else:
        assert share == (0.5 if lost is None else lost)
        assert model.weight.grad[0, 1] == 0.5


def test_every_seed_is_drawn():
    ax = seeds.dots({"one": [1.0, 2.0], "other": [3.0, 4.0]})
    assert [len(line.get_xdata()) for line in ax.lines if line.get_marker() == "o"] == [2, 2]
    rows = [{"x": x, "y": 9.0 * x} for x in (0.1, 0.1, 1.0)]
    ax = seeds.sweep(rows, "x", "y", plots.panels(), "label", most=4.0)
    assert max(max(line.get_ydata()) for line in ax.lines) == 4.0
    ax = seeds.curves({"a": [[1.0, 2.0], [3.0, 2.0]]}, [0, 1], plots.panels())
    assert list(ax.lines[0].get_ydata()) == [2.0, 2.0]
