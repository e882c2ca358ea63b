"""The library of lesson 00: extremes."""

import math

import torch

from attention.getting_started import softmax

F64 = torch.float64


def test_softmax_gives_minus_infinity_no_weight_and_a_finite_gradient():
    scores = torch.tensor([[0.0, -math.inf, math.log(3)]], dtype=F64, requires_grad=True)
    weights = softmax(scores, 1)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.0, 0.75]], dtype=F64))
    weights[0, 2].backward()
    assert torch.isfinite(scores.grad).all()
