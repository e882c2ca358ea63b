"""Lesson 05's library: what its check does not ask."""

import pytest
import torch

from attention.scaled_dot_product_attention import (
    attention_multiplications,
    layer_costs,
    rnn_multiplications,
    scaled_dot_product_attention,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_keeps_the_dtype(dtype):
    q = torch.randn(3, 4, dtype=dtype)
    assert scaled_dot_product_attention(q, q, q).dtype == dtype


@pytest.mark.parametrize("T", [2, 7, 40])
def test_a_layer_costs_what_the_counts_of_its_lesson_say(T):
    assert layer_costs("recurrent", T, 6, 3)[0] == rnn_multiplications(T, 6)
    assert layer_costs("self-attention", T, 6, 3)[0] == attention_multiplications(T, T, 6, 6)
    assert rnn_multiplications(T, 6) == 2 * 6 * 6 * T
