"""Gradient descent."""

import subprocess
import sys

import pytest
import torch

from attention.provided.descent import Descent


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_it_does_what_pytorch_does(momentum):
    generator = torch.Generator().manual_seed(3)
    start = [torch.randn(shape, generator=generator) for shape in ((5, 3), (7,), (2,))]
    ends = []
    for kind in (Descent, torch.optim.SGD):
        parameters = [torch.nn.Parameter(one.clone()) for one in start]
        optimizer = kind(parameters, lr=0.1, momentum=momentum)
        for _ in range(4):
            optimizer.zero_grad()
            sum((one.square() * one).sum() for one in parameters[:2]).backward()  # not of the last
            optimizer.step()
        ends.append([one.detach() for one in parameters])
    torch.testing.assert_close(*ends)


def test_pytorchs_compiler_is_not_imported():
    program = """
import sys, torch
from attention.training import TrainStep
pair = torch.tensor([[1, 2]])
sizes = {"source_size": 9, "target_size": 9, "d_model": 4, "n_heads": 2, "d_ff": 4}
TrainStep(sizes)([(pair, pair)])
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
