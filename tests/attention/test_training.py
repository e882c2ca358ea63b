"""Lesson 11's library where nothing is real, and where numbers are short."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from attention.provided.data.tokens import PAD
from attention.training import (
    Evaluation,
    TrainStep,
    average_checkpoints,
    noam_learning_rate,
)
from attention.transformer import Transformer

SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2, "dropout": 0.0}


def model(**options):
    torch.manual_seed(0)
    return Transformer(9, 11, **SIZES | options).double()


def pairs(n, seed=0):
    """n pairs of padded rows, in one batch; sources of up to 7 ids, targets of up to 5."""
    generator = torch.Generator().manual_seed(seed)
    sides = []
    for size, T in ((9, 7), (11, 5)):
        ids = torch.randint(3, size, (n, T), generator=generator)
        lengths = torch.randint(1, T + 1, (n, 1), generator=generator)
        sides.append(ids.masked_fill(torch.arange(T) >= lengths, PAD))
    return tuple(sides)


def test_a_scheduler_of_pytorchs_that_begins_at_0_is_told_so():
    parameter = nn.Parameter(torch.zeros(1))
    with pytest.raises(ValueError, match="^step=0 is no whole number from 1 on"):
        LambdaLR(torch.optim.SGD([parameter]), lambda step: noam_learning_rate(step, 64, 40))


def test_batches_without_a_real_token_change_nothing():
    """Neither the loss, beside others, nor the weights, alone."""
    source, target = pairs(4)
    empty = source, torch.full_like(target, PAD)
    alone, beside = (TrainStep(model()) for _ in range(2))
    evaluated = Evaluation(alone.model)([(source, target)])
    assert Evaluation(alone.model)([empty, (source, target), empty]) == evaluated
    assert Evaluation(alone.model)([empty]) == 0
    loss = alone([(source, target)])
    assert loss.isfinite() and beside([empty, (source, target)]) == loss
    before = {name: weight.clone() for name, weight in alone.state_dict().items()}
    torch.testing.assert_close(dict(beside.state_dict()), before)
    assert alone([empty, empty]) == 0
    assert all((weight.grad == 0).all() for weight in alone.model.parameters())
    torch.testing.assert_close(dict(alone.state_dict()), before, rtol=0, atol=0)


def test_a_dict_of_sizes_builds_the_model():
    step = TrainStep({"source_size": 9, "target_size": 11, **SIZES})
    assert isinstance(step.model, Transformer)
    assert step([pairs(4)]).item() == pytest.approx(math.log(11), rel=0.5)


@pytest.mark.parametrize("tied", ["none", "target"])
def test_training_in_bfloat16_is_close_to_float32(tied):
    torch.manual_seed(0)
    exact = Transformer(9, 11, **SIZES, tied=tied)
    rough = copy.deepcopy(exact)
    losses = []
    for one, dtype in ((exact, None), (rough, torch.bfloat16)):
        optimizer = torch.optim.AdamW(one.parameters(), lr=0.003)
        step = TrainStep(one, optimizer, dtype=dtype)
        losses.append([step([pairs(16)]).item() for _ in range(20)])
        assert {parameter.dtype for parameter in one.parameters()} == {torch.float32}
        assert step([pairs(16)]).dtype == torch.float32
    assert losses[0][-1] < 0.95 * losses[0][0]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
    assert losses[1] != losses[0]


def test_an_average_keeps_types_and_counts():
    half = [{"w": torch.tensor([6e4]).half(), "n": torch.tensor(n)} for n in (1, 2)]
    got = average_checkpoints(half)
    assert got["w"].dtype == torch.float16 and got["w"].isfinite().all()
    assert got["n"].item() == 2
