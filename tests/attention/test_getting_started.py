"""The library of lesson 00 against independent computations."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.getting_started import softmax, uniform_average, weighted_average

F64 = torch.float64


@st.composite
def matrices(draw, columns=None, size=50):
    """A matrix of 1 to 5 rows, of numbers between -size and size, with extremes among them."""
    shape = draw(st.integers(1, 5)), columns or draw(st.integers(1, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    matrix = size * (2 * torch.rand(shape, generator=generator, dtype=F64) - 1)
    extreme = draw(st.sampled_from([-size, 0, size]))
    return torch.where(torch.rand(shape, generator=generator) < 0.2, extreme, matrix)


@given(matrices())
def test_uniform_average_is_the_mean_of_each_column(values):
    expected = [math.fsum(column.tolist()) / len(column) for column in values.T]
    torch.testing.assert_close(uniform_average(values), torch.tensor(expected, dtype=F64))


@given(matrices(size=2000), st.sampled_from([0, 1, -1]))
def test_softmax_agrees_with_torch_and_sums_to_one(scores, dim):
    weights = softmax(scores, dim)
    torch.testing.assert_close(weights, torch.softmax(scores, dim))
    torch.testing.assert_close(weights.sum(dim), torch.ones_like(weights.sum(dim)))


@given(matrices(), st.floats(-500, 500))
def test_softmax_does_not_see_a_common_shift(scores, shift):
    torch.testing.assert_close(softmax(scores + shift, 1), softmax(scores, 1), rtol=1e-9, atol=1e-9)


def test_softmax_gives_minus_infinity_no_weight_and_a_finite_gradient():
    scores = torch.tensor([[0.0, -math.inf, math.log(3)]], dtype=F64, requires_grad=True)
    weights = softmax(scores, 1)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.0, 0.75]], dtype=F64))
    weights[0, 2].backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, F64])
def test_softmax_keeps_the_dtype(dtype):
    assert softmax(torch.tensor([[100.0, 1.0]], dtype=dtype), 1).dtype == dtype


def test_softmax_leaves_its_input_alone():
    scores = torch.randn(3, 4)
    before = scores.clone()
    softmax(scores, 1)
    assert torch.equal(scores, before)


@given(matrices(), st.data())
def test_weighted_average_stays_in_the_convex_hull(values, data):
    scores = data.draw(matrices(columns=len(values)))
    context = weighted_average(torch.softmax(scores, 1), values)
    assert context.shape == (len(scores), values.shape[1])
    assert (context >= values.amin(0) - 1e-9).all()
    assert (context <= values.amax(0) + 1e-9).all()


@given(matrices(), st.data())
def test_weighted_average_and_the_order_of_pairs_and_queries(values, data):
    weights = torch.softmax(data.draw(matrices(columns=len(values))), 1)
    context = weighted_average(weights, values)
    pairs = data.draw(st.permutations(range(len(values))))
    torch.testing.assert_close(weighted_average(weights[:, pairs], values[pairs]), context)
    queries = data.draw(st.permutations(range(len(weights))))
    torch.testing.assert_close(weighted_average(weights[queries], values), context[queries])


@pytest.mark.parametrize("total", [0.0, 0.5, 0.9998, 1.0002, 2.0, math.nan, math.inf])
def test_weighted_average_refuses_a_row_with_another_sum(total):
    weights = torch.tensor([[0.5, 0.5], [total, 0.0], [3.0, 3.0]], dtype=F64)
    with pytest.raises(ValueError, match=rf"row 1 .* sums to {total:.4f}, not to 1"):
        weighted_average(weights, torch.eye(2, dtype=F64))


def test_weighted_average_forgives_rounding():
    weights = torch.softmax(torch.randn(50, 3000), 1)  # float32
    assert weighted_average(weights, torch.ones(3000, 2)).shape == (50, 2)
