"""Lesson 06's library: low precision, long sequences, and the seven suspects."""

import pytest
import torch

from attention.masked_attention import (
    masked_attention,
    sliding_window_attention,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_query_that_sees_nothing_has_a_context_of_0_and_finite_gradients(dtype):
    q = torch.randn(4, 8, dtype=dtype, requires_grad=True)
    mask = torch.ones(4, 4).tril(-1).bool()  # the first row is empty
    context = masked_attention(q, q, q, mask)
    assert context.dtype == dtype
    assert context.isfinite().all()
    assert (context[0] == 0).all()
    context.sum().backward()
    assert q.grad.isfinite().all()


def test_sliding_window_never_makes_the_matrix():
    T = 200_000  # (T, T) would take 160 GB
    q = torch.randn(T, 2, requires_grad=True)
    sliding_window_attention(q, q, q, 2).sum().backward()
    assert q.grad.isfinite().all()
