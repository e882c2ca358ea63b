"""Lesson 05's library against PyTorch, and the properties that the lesson states."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from attention.scaled_dot_product_attention import (
    attention_backward,
    attention_multiplications,
    dot_product_statistics,
    layer_costs,
    rnn_multiplications,
    scaled_dot_product_attention,
    softmax_gradient_norm,
)

sizes = st.integers(1, 6)


@settings(max_examples=40)
@given(sizes, sizes, sizes, sizes, st.integers(0, 10**6))
def test_equals_the_kernel_of_pytorch_for_all_sizes(T_q, T_k, d_k, d_v, seed):
    torch.manual_seed(seed)
    q, k = torch.randn(2, T_q, d_k).double(), torch.randn(2, T_k, d_k).double()
    v = torch.randn(2, T_k, d_v).double()
    mask = torch.rand(T_q, T_k) < 0.5
    mask[:, 0] = True
    context, weights = scaled_dot_product_attention(q, k, v, mask, return_weights=True)
    torch.testing.assert_close(context, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, T_q).double())
    assert (weights[:, ~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_keeps_the_dtype(dtype):
    q = torch.randn(3, 4, dtype=dtype)
    assert scaled_dot_product_attention(q, q, q).dtype == dtype


def test_gradients_are_right():
    q, k, v = (torch.randn(n, 3).double().requires_grad_() for n in (4, 5, 5))
    assert torch.autograd.gradcheck(scaled_dot_product_attention, (q, k, v))


def test_backward_by_hand_equals_autograd():
    q, k, v = (torch.randn(2, n, d).double().requires_grad_() for n, d in ((4, 3), (5, 3), (5, 6)))
    grad = torch.randn(2, 4, 6).double()
    context, weights = scaled_dot_product_attention(q, k, v, return_weights=True)
    expected = torch.autograd.grad(context, (q, k, v), grad)
    torch.testing.assert_close(attention_backward(q, k, v, weights.detach(), grad), expected)


def test_the_variance_of_a_dot_product_is_its_length():
    generator = torch.Generator().manual_seed(0)
    for d in (4, 64):
        mean, variance = dot_product_statistics(*torch.randn(2, 50_000, d, generator=generator))
        assert abs(mean) < 5 * math.sqrt(d / 50_000)
        assert abs(variance / d - 1) < 0.05


def test_saturated_scores_have_no_gradient():
    # Never two that are nearly equal: 1000 times a small difference may still be small.
    scores = torch.rand(20, 8).argsort(dim=1).double() / 4
    assert (softmax_gradient_norm(1000 * scores) < softmax_gradient_norm(scores)).all()


def test_counts_are_equal_where_length_equals_width():
    assert attention_multiplications(64, 64, 64, 64) == rnn_multiplications(64, 64)


@pytest.mark.parametrize("T", [2, 7, 40])
def test_a_layer_costs_what_the_counts_of_its_lesson_say(T):
    assert layer_costs("recurrent", T, 6, 3)[0] == rnn_multiplications(T, 6)
    assert layer_costs("self-attention", T, 6, 3)[0] == attention_multiplications(T, T, 6, 6)


@pytest.mark.parametrize(("T", "width"), [(2, 2), (8, 2), (8, 3), (9, 3), (40, 5), (3, 9)])
def test_as_many_convolutions_as_the_path_says_reach_the_first_position(T, width):
    path = layer_costs("convolution", T, 1, width)[2]
    for layers, reached in ((path, True), (path - 1, False)):
        x = torch.zeros(1, 1, T, dtype=torch.float64)
        x[..., 0] = 1
        for _ in range(layers):
            x = F.conv1d(F.pad(x, (width - 1, 0)), torch.ones(1, 1, width, dtype=x.dtype))
        assert bool(x[0, 0, -1] != 0) == reached
