"""Lesson 11's library against PyTorch's losses, optimisers and averages."""

import copy
import itertools
import math
import random

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

from attention.provided.data.tokens import PAD
from attention.training import (
    Evaluation,
    TrainStep,
    adamw_step,
    average_checkpoints,
    batch_by_tokens,
    clip_gradients,
    epoch_order,
    label_smoothed_loss,
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


def test_the_schedule_of_the_paper():
    rates = [noam_learning_rate(step, 512, 4000) for step in range(1, 20_001)]
    assert rates.index(max(rates)) == 3999
    assert max(rates) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert rates[999] == pytest.approx(max(rates) / 4)
    assert rates[15_999] == pytest.approx(max(rates) / 2)


@pytest.mark.parametrize("step, warmup", [(0, 4000), (-1, 4000), (1, 0)])
def test_steps_count_from_1(step, warmup):
    wrong = f"step={step} " if step < 1 else f"warmup_steps={warmup} "
    with pytest.raises(ValueError, match=f"^{wrong}is no whole number from 1 on"):
        noam_learning_rate(step, 512, warmup)
    parameter = nn.Parameter(torch.zeros(1))
    with pytest.raises(ValueError, match="^step=0 is no whole number from 1 on"):  # as PyTorch's
        LambdaLR(torch.optim.SGD([parameter]), lambda step: noam_learning_rate(step, 64, 40))


@pytest.mark.parametrize("step", [0, -1])
def test_adamw_counts_its_steps_from_1(step):
    zero = torch.zeros(1)
    with pytest.raises(ValueError, match=f"step={step}"):
        adamw_step(zero, zero, zero, zero, step, learning_rate=0.1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_without_a_real_token_the_loss_and_its_gradient_are_0(smoothing):
    logits, nothing = torch.randn(2, 5, 11, requires_grad=True), torch.full((2, 5), PAD)
    loss = label_smoothed_loss(logits, nothing, smoothing)
    loss.backward()
    assert loss == 0 and (logits.grad == 0).all()


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


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_smoothed_loss_equals_pytorchs(smoothing):
    logits = torch.randn(3, 5, 11, dtype=torch.float64, requires_grad=True)
    _, target = pairs(3)
    options = {"ignore_index": PAD, "label_smoothing": smoothing}
    expected = F.cross_entropy(logits.mT, target, **options)
    got = label_smoothed_loss(logits, target, smoothing)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(
        torch.autograd.grad(got, logits), torch.autograd.grad(expected, logits)
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("everywhere", [False, True])
def test_smoothed_loss_equals_pytorchs_where_scores_are_infinite(smoothing, everywhere):
    """PAD is ruled out where it is the target, or everywhere."""
    logits, (_, target) = torch.randn(3, 5, 11, dtype=torch.float64), pairs(3)
    there = (target == PAD) | everywhere
    logits[..., PAD] = logits[..., PAD].masked_fill(there, -math.inf)
    options = {"ignore_index": PAD, "label_smoothing": smoothing}
    expected = F.cross_entropy(logits.mT, target, **options)
    got = label_smoothed_loss(logits.requires_grad_(), target, smoothing)
    torch.testing.assert_close(got, expected)
    assert got.isfinite() == (smoothing == 0 or not everywhere)
    if got.isfinite():
        (gradient,) = torch.autograd.grad(got, logits)
        assert gradient.isfinite().all()


def test_batches_hold_every_sentence_once_and_waste_little():
    lengths = [random.Random(0).randint(1, 40) for _ in range(2000)]
    batches = batch_by_tokens(lengths, 400)
    assert sorted(itertools.chain(*batches)) == list(range(2000))
    padded = [len(batch) * max(lengths[index] for index in batch) for batch in batches]
    assert max(padded) <= 400
    assert sum(lengths) / sum(padded) > 0.97
    assert batch_by_tokens([], 5) == []
    assert batch_by_tokens([5, 2, 3, 2], 5) == [[1, 3], [2], [0]]
    with pytest.raises(ValueError, match="sentence 1 has 6 tokens, max_tokens=5"):
        batch_by_tokens([5, 6], 5)


def test_no_two_epochs_are_alike():
    orders = {tuple(epoch_order(20, seed, epoch)) for seed in range(10) for epoch in range(10)}
    assert len(orders) == 100
    far = [(0, 10), (0, 100), (0, 1000), (0, 10_000), (1, 0), (1, 11), (11, 1)]
    assert len({tuple(epoch_order(20, *pair)) for pair in far}) == len(far)
    state = random.getstate()
    assert epoch_order(20, 3, 4) == epoch_order(20, 3, 4)
    assert random.getstate() == state


@pytest.mark.parametrize("max_norm", [0.5, 3.0, 1e6])
@pytest.mark.parametrize("loss_scale", [1.0, 1024.0])
def test_clipping_equals_pytorchs(max_norm, loss_scale):
    gradients = [torch.randn(5, 3, dtype=torch.float64), torch.randn(7, dtype=torch.float64)]
    parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, max_norm)
    got = clip_gradients([loss_scale * gradient for gradient in gradients], max_norm, loss_scale)
    for one, parameter in zip(got, parameters, strict=True):
        torch.testing.assert_close(one, parameter.grad, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("eps", [1e-9, 0.1])
def test_adamw_equals_pytorchs_over_many_steps(weight_decay, eps):
    parameter = nn.Parameter(torch.randn(5, 3, dtype=torch.float64))
    options = {"betas": (0.9, 0.98), "eps": eps, "weight_decay": weight_decay}
    optimizer = torch.optim.AdamW([parameter], lr=0.05, **options)
    state = parameter.detach().clone(), *torch.zeros(2, 5, 3, dtype=torch.float64)
    for step in range(1, 30):
        parameter.grad = torch.randn(5, 3, dtype=torch.float64)
        state = adamw_step(state[0], parameter.grad, *state[1:], step, 0.05, **options)
        optimizer.step()
        torch.testing.assert_close(state[0], parameter.detach())


def test_several_batches_make_the_step_of_one():
    source, target = pairs(12)
    together, apart = (TrainStep(model(), max_norm=0.3) for _ in range(2))
    for _ in range(3):
        loss = together([(source, target)])
        parts = [(source[rows], target[rows]) for rows in (slice(0, 2), slice(2, 9), slice(9, 12))]
        torch.testing.assert_close(apart(parts), loss)
    for one, other in zip(together.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert not loss.requires_grad


def test_only_one_batch_is_in_memory_at_a_time():
    step, events = TrainStep(model()), []
    loss_of = step.loss

    def watched(source, target):
        events.append("forward")
        loss = loss_of(source, target)
        loss.register_hook(lambda _: events.append("backward"))
        return loss

    step.loss = watched
    assert not step([pairs(4, seed) for seed in range(3)]).requires_grad
    assert events == ["forward", "backward"] * 3


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


@pytest.mark.parametrize("training", [False, True])
def test_evaluation_weighs_tokens_and_leaves_the_mode(training):
    one = model(dropout=0.5).train(training)
    source, target = pairs(10)
    evaluation = Evaluation(one, smoothing=0.1)
    loss = evaluation([(source[:2], target[:2]), (source[2:], target[2:])])
    assert one.training is training and not loss.requires_grad
    logits = one.eval()(source, target)
    torch.testing.assert_close(loss, label_smoothed_loss(logits, target, 0.1).detach())


def test_stopped_and_resumed_training_ends_in_the_same_place():
    batches = [pairs(6, seed) for seed in range(5)]

    def new():
        one = model()
        optimizer = torch.optim.AdamW(one.parameters(), lr=0.01)
        return TrainStep(one, optimizer), optimizer

    def learn(step, numbers):
        order = [epoch_order(5, 0, number // 5)[number % 5] for number in numbers]
        return [step([batches[index]]).item() for index in order]

    step, _ = new()
    whole = learn(step, range(12))
    first, optimizer = new()
    begin = learn(first, range(7))
    stored = copy.deepcopy({"model": first.model.state_dict(), "optim": optimizer.state_dict()})
    second, optimizer = new()
    second.model.load_state_dict(stored["model"])
    optimizer.load_state_dict(stored["optim"])
    assert begin + learn(second, range(7, 12)) == whole


def test_average_equals_pytorchs_and_keeps_types():
    models = [model() for _ in range(3)]
    for seed, one in enumerate(models):
        torch.manual_seed(seed)
        for parameter in one.parameters():
            nn.init.normal_(parameter)
    averaged = torch.optim.swa_utils.AveragedModel(models[0])
    for one in models:
        averaged.update_parameters(one)
    got = average_checkpoints([one.state_dict() for one in models])
    for name, value in averaged.module.state_dict().items():
        torch.testing.assert_close(got[name], value)
    half = [{"w": torch.tensor([6e4]).half(), "n": torch.tensor(n)} for n in (1, 2)]
    got = average_checkpoints(half)
    assert got["w"].dtype == torch.float16 and got["w"].isfinite().all()
    assert got["n"].item() == 2
