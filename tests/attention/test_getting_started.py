"""The library of lesson 00: extremes and bad weights."""

import math

import pytest
import torch

from attention.getting_started import softmax, weighted_average

F64 = torch.float64


def test_softmax_gives_minus_infinity_no_weight_and_a_finite_gradient():
    scores = torch.tensor([[0.0, -math.inf, math.log(3)]], dtype=F64, requires_grad=True)
    weights = softmax(scores, 1)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.0, 0.75]], dtype=F64))
    weights[0, 2].backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("total", [0.0, 0.5, 0.9998, 1.0002, 2.0, math.nan, math.inf])
def test_weighted_average_refuses_a_row_with_another_sum(total):
    weights = torch.tensor([[0.5, 0.5], [total, 0.0], [3.0, 3.0]], dtype=F64)
    with pytest.raises(ValueError, match=rf"row 1 .* sums to {total:.4f}, not to 1"):
        weighted_average(weights, torch.eye(2, dtype=F64))


def test_weighted_average_forgives_rounding():
    weights = torch.softmax(torch.randn(50, 3000), 1)  # float32
    assert weighted_average(weights, torch.ones(3000, 2)).shape == (50, 2)
