"""Lesson 21's library: the format's own package, what a draft leaves of p, the layers of 20."""

import gguf
import numpy as np
import torch
from torch import nn

from attention.answers import LowRank, accept, keep_sinks, quantize, stretched_base, unpack_q4
from attention.modern_decoder import ModernDecoder
from attention.tokens_and_positions import rotary

Q4_1 = gguf.GGMLQuantizationType.Q4_1


def test_four_bits_are_those_of_the_format_s_own_package():
    numbers = np.random.default_rng(0).normal(3, 2, (6, 96)).astype(np.float32)
    packed = gguf.quants.quantize(numbers, Q4_1)
    read = unpack_q4(torch.tensor(packed).view(-1, 20)).view(6, 96)
    assert torch.equal(read, torch.tensor(gguf.quants.dequantize(packed, Q4_1)))
    rounded = quantize(torch.tensor(numbers), 4, 32)
    torch.testing.assert_close(rounded, read, rtol=1e-3, atol=5e-3)  # which stores ends as float16


def test_with_a_draft_the_first_token_has_the_probabilities_of_the_model():
    torch.manual_seed(0)
    p, q = torch.randn(2, 9).softmax(1), torch.randn(1, 9).softmax(1)
    found = torch.zeros(9)
    for token in range(9):
        kept = (p[0, token] / q[0, token]).clamp(max=1)
        found[token] += q[0, token] * kept
        if kept < 1:
            count, rest = accept(p, q, torch.tensor([token]), torch.tensor([0.999]))
            assert count == 0
            found += q[0, token] * (1 - kept) * rest
    torch.testing.assert_close(found, p[0])


def test_only_the_two_small_matrices_learn_and_merging_keeps_what_they_learned():
    torch.manual_seed(0)
    for bias in (True, False):
        linear = nn.Linear(6, 4, bias=bias)
        before = {name: weight.clone() for name, weight in linear.state_dict().items()}
        layer, x = LowRank(linear, 2, scale=3.0), torch.randn(5, 7, 6)
        wanted, first = torch.randn(5, 7, 4), None
        optimizer = torch.optim.AdamW(layer.parameters(), lr=0.05, weight_decay=0.1)
        for _ in range(30):
            loss = (layer(x) - wanted).square().mean()
            first = first or loss.item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert loss.item() < first
        for name, weight in linear.state_dict().items():
            assert torch.equal(weight, before[name])
        torch.testing.assert_close(layer.merged()(x), layer(x))


def test_a_shortened_cache_goes_on_in_the_decoder():
    torch.manual_seed(0)
    model = ModernDecoder(11, 16, 2, 1, 24, n_layers=2).eval()
    tokens = torch.randint(3, 11, (2, 9))
    whole, _ = model(tokens)
    _, past = model(tokens[:, :8])
    scores, _ = model(tokens[:, 8:], keep_sinks(past, 3, 5))
    torch.testing.assert_close(scores, whole[:, 8:])
    scores, past = model(tokens[:, 8:], keep_sinks(past, 1, 3))
    assert (scores - whole[:, 8:]).abs().max() > 1e-4
    assert past[0][0].shape[2] == 5


def test_with_a_stretched_base_the_slowest_pair_reaches_its_angles_later():
    x, position = torch.randn(1, 12, dtype=torch.float64), torch.tensor([7.0], dtype=torch.float64)
    old = rotary(x, position, 500.0)
    new = rotary(x, 4 * position, stretched_base(500.0, 12, 4))
    torch.testing.assert_close(new[:, -2:], old[:, -2:])
    fastest = rotary(x, position, stretched_base(500.0, 12, 4))
    torch.testing.assert_close(fastest[:, :2], old[:, :2])
