"""Lesson 12's library against PyTorch's counters, its GradScaler and one process."""

import math
import os
import re
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attention.provided.measuring.saved_for_backward import kept_bytes, kept_tensors
from attention.provided.rehearsal import rehearse
from attention.training_on_gpu import (
    data_parallel_gradients,
    loss_scaling,
    training_flops,
    training_memory,
)
from attention.transformer import Transformer
from attention.transformer_blocks import EncoderLayer
from tests.waiting import LONG

SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2, "dropout": 0.0}


@pytest.mark.parametrize("tied", ["none", "target"])
@pytest.mark.parametrize("T_k, T_q, n_layers", [(7, 5, 2), (3, 11, 1), (6, 6, 3)])
def test_flops_are_those_that_pytorch_counts(tied, T_k, T_q, n_layers):
    one = Transformer(9, 11, **SIZES | {"n_layers": n_layers}, tied=tied)
    ids = torch.randint(3, 9, (1, T_k)), torch.randint(3, 9, (1, T_q))
    with FlopCounterMode(display=False) as counter:
        one(*ids).sum().backward()
    counted = training_flops(T_k, T_q, 12, 20, n_layers, vocab_size=11)
    assert counted == counter.get_total_flops()
    assert type(counted) is int


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("B, T, n_layers", [(2, 5, 1), (3, 4, 2), (1, 1, 1)])
def test_memory_is_what_pytorch_keeps(B, T, n_layers, fused):
    stack = nn.Sequential(*[EncoderLayer(12, 3, 20, 0.0, True, fused) for _ in range(n_layers)])
    x = torch.randn(B, T, 12, requires_grad=True)
    counted = training_memory(B, T, 12, 3, 20, n_layers, fused)
    assert counted["activations"] == kept_bytes(lambda: stack(x), stack.parameters())
    assert counted["weights"] == sum(parameter.nbytes for parameter in stack.parameters())
    assert counted["gradients"] == counted["weights"]
    assert counted["moments"] == 2 * counted["weights"]


def test_what_is_kept_twice_counts_once():
    x = torch.ones(4, 3, requires_grad=True)
    assert kept_tensors(lambda: x * x) == [((4, 3), 48)]
    assert kept_bytes(lambda: x.sum() + 1) == 0
    assert kept_bytes(lambda: x * x, [x]) == 0


def test_the_scale_is_that_of_pytorchs_scaler():
    weight = nn.Parameter(torch.zeros(2))
    sgd = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=4)
    scaler.scale(torch.ones(()))
    scale, good_steps = 2.0**20, 0
    for _ in range(30):
        gradients = [(torch.tensor([0.3, -1e-6]) * scale).half()]
        unscaled, scale, good_steps = loss_scaling(gradients, scale, good_steps, patience=4)
        weight.grad = gradients[0].float()
        scaler.step(sgd)
        scaler.update()
        assert scaler.get_scale() == scale
        if unscaled is not None:
            torch.testing.assert_close(unscaled[0], torch.tensor([0.3, -1e-6]), rtol=1e-3, atol=0)
    assert 2.0**16 <= scale <= 2.0**18


def test_small_gradients_survive_the_division():
    (unscaled,), _, _ = loss_scaling([torch.tensor([0.001], dtype=torch.float16)], 2.0**16)
    assert unscaled.dtype == torch.float32
    assert unscaled.item() == pytest.approx(0.001 / 2**16, rel=1e-3)
    nothing, scale, _ = loss_scaling([torch.tensor([math.nan], dtype=torch.float16)], 8.0)
    assert (nothing, scale) == (None, 4.0)


@pytest.mark.parametrize("tokens", [[3, 17], [1, 1, 18], [20], [20, 0]])
def test_shares_have_the_gradients_of_the_whole(tokens):
    x, weight = torch.randn(20, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)

    def gradient_of(rows):
        leaf = weight.clone().requires_grad_()
        loss = (rows @ leaf).sin().mean() if len(rows) else (0 * leaf).sum()
        return list(torch.autograd.grad(loss, leaf))

    shares = [gradient_of(rows) for rows in x.split(tokens)]
    torch.testing.assert_close(data_parallel_gradients(shares, tokens), gradient_of(x))


def test_gradients_of_no_token_at_all_are_0():
    shares = [[torch.zeros(3), torch.zeros(2, 2)]] * 2
    torch.testing.assert_close(data_parallel_gradients(shares, [0, 0]), shares[0])


@pytest.mark.long
def test_two_real_processes_agree_with_one():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done = subprocess.run(
        [*command, "2", "-m", "attention.experiments.training_on_gpu"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    weighted = re.search(r"weighted with its tokens: (\S+)", done.stdout)
    plain = re.search(r"plain mean of the processes: +(\S+)", done.stdout)
    assert weighted, done.stderr
    lines = re.findall(r"^process ([01]) of 2: \d+ of \d+ tokens$", done.stdout, re.MULTILINE)
    assert sorted(lines) == ["0", "1"], done.stdout
    assert float(weighted[1]) < 1e-5 < 0.1 < float(plain[1])


def test_what_a_gpu_refuses_is_printed(capsys):
    def mixed(x):
        return x + torch.arange(x.shape[0])

    assert rehearse(mixed, torch.ones(3)) is None
    assert "mixed: RuntimeError: Expected all tensors" in capsys.readouterr().out
    assert rehearse(lambda x: x.numpy(), torch.ones(3)) is None
    assert "use .cpu() first" in capsys.readouterr().out

    def made_there(x):
        return x + torch.arange(3, device=x.device)

    torch.testing.assert_close(rehearse(made_there, torch.ones(3)), torch.tensor([1.0, 2, 3]))
    assert capsys.readouterr().out == ""
