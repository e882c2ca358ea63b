"""Lesson 06's library: masks as sets, empty rows, and sparse equal to dense."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from attention.masked_attention import (
    bigbird_mask,
    causal_mask,
    combine_masks,
    leaks,
    local_mask,
    longformer_mask,
    masked_attention,
    padding_mask,
    sliding_window_attention,
    suspect,
)


@settings(max_examples=40)
@given(st.integers(1, 7), st.integers(1, 7), st.floats(0, 1), st.integers(0, 10**6))
def test_any_mask_gives_finite_results_and_gradients(T_q, T_k, share, seed):
    torch.manual_seed(seed)
    q, k, v = (torch.randn(2, n, 3).double().requires_grad_() for n in (T_q, T_k, T_k))
    mask = torch.rand(2, T_q, T_k) < share
    context, weights = masked_attention(q, k, v, mask, return_weights=True)
    assert (weights[~mask] == 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double())
    torch.testing.assert_close(context, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    for gradient in torch.autograd.grad(context.sum(), (q, k, v)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_low_precision_has_no_nan(dtype):
    q = torch.randn(4, 8, dtype=dtype)
    mask = torch.ones(4, 4).tril(-1).bool()  # the first row is empty
    context = masked_attention(q, q, q, mask)
    assert context.dtype == dtype
    assert context.isfinite().all()
    assert (context[0] == 0).all()


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(0, 14), st.integers(0, 10**6))
def test_sliding_window_equals_the_dense_result(T, window, seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(3, 2, T, 4).double()
    expected = masked_attention(q, k, v, local_mask(T, window))
    torch.testing.assert_close(sliding_window_attention(q, k, v, window), expected)


def test_sliding_window_never_makes_the_matrix():
    T = 200_000  # (T, T) would take 160 GB
    q = torch.randn(T, 2, requires_grad=True)
    sliding_window_attention(q, q, q, 2).sum().backward()
    assert q.grad.isfinite().all()


def test_masks_contain_each_other():
    T = 16
    local, both = local_mask(T, 2), longformer_mask(T, 2, [3])
    assert (both | local).equal(both)
    assert both.equal(both.T)
    assert combine_masks(causal_mask(T), local).sum() == 3 * T - 3
    assert combine_masks() is None


def test_bigbird_draws_the_random_blocks_on_top_of_the_others():
    plain, drawn = (bigbird_mask(10, 2, n_random=n, seed=7) for n in (0, 2))
    assert (drawn | plain).equal(drawn)
    assert ((drawn.sum(1) - plain.sum(1))[2:-2] == 2 * 2).all()
    assert drawn.equal(bigbird_mask(10, 2, n_random=2, seed=7))
    assert not drawn.equal(bigbird_mask(10, 2, n_random=2, seed=8))
    before = torch.get_rng_state()
    bigbird_mask(10, 2, n_random=2, seed=7)
    assert before.equal(torch.get_rng_state())


def test_padding_mask_gives_each_sequence_its_own_result():
    x = torch.randn(2, 5, 4)
    context = masked_attention(x, x, x, padding_mask(torch.tensor([3, 5]), 5))
    alone = masked_attention(x[:1, :3], x[:1, :3], x[:1, :3])
    torch.testing.assert_close(context[:1, :3], alone)


def test_the_leak_test_finds_five_of_seven():
    x = torch.randn(6, 4)
    assert "".join(name for name in "ABCDEFG" if leaks(name, x, 2)) == "BCDFG"
    assert not any(leaks(name, x, 5) for name in "ABCDEFG")
    assert suspect("A", x).shape == x.shape
