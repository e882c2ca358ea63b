"""The recorded trainings of lessons 11 and 12: their schedules, batches and measures."""

import matplotlib
import pytest
import torch

matplotlib.use("agg")

from attention.experiments import numbers_training, training, training_on_gpu
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import PAD
from attention.training import batch_by_tokens, noam_learning_rate


def test_the_schedule_is_that_of_the_paper_up_to_its_peak():
    rates = [training.rate(step, "noam", 0.0198, 40) for step in range(1, 200)]
    paper = [noam_learning_rate(step, 64, 40) for step in range(1, 200)]
    assert rates == pytest.approx(paper, rel=2e-3)
    assert training.rate(90, "rise", 0.01, 40) == training.rate(1, "constant", 0.01, 40) == 0.01


def test_buckets_hold_what_the_exercise_would_put_there():
    pairs = numbers(500, 50).train
    lengths = [len(german) + 1 for _, _, german in pairs]
    expected = batch_by_tokens(lengths, numbers_training.MAX_TOKENS)
    found = numbers_training.buckets_of(pairs)
    assert [[pairs[index] for index in batch] for batch in expected] == found


def test_a_strange_batch_keeps_its_padding():
    corpus = numbers()
    batch = corpus.batch([corpus.train[0], corpus.train[-1]])
    strange = numbers_training.strange(batch, len(corpus.target_vocabulary), 0)
    assert torch.equal(strange.target == PAD, batch.target == PAD)
    assert not torch.equal(strange.target, batch.target)


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


def test_padding_is_counted_batch_by_batch():
    # Batches of (1, 3), padded to 6, and (4), which does not fit into 6 with them.
    assert numbers_training.padded_share([1, 3, 4], 6) == pytest.approx(1 - 8 / 10)


def test_batches_are_numbered_and_come_in_a_new_order_in_every_epoch():
    corpus = numbers()
    epoch, losses = len(numbers_training.buckets_of(corpus.train)), [0.0]
    found = list(numbers_training.numbered_batches(2 * epoch, losses))
    assert [number for number, _ in found] == list(range(1, 2 * epoch + 1))
    targets = [target for _, (_, target) in found]
    lengths = [[len(one) for one in part] for part in (targets[:epoch], targets[epoch:])]
    assert lengths[0] != lengths[1]
    assert sorted(lengths[0]) == sorted(lengths[1])
