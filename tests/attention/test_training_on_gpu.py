"""Lesson 12's library against PyTorch's counter."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attention.training_on_gpu import training_flops
from attention.transformer import Transformer

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
