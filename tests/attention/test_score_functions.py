"""The library of lesson 04: relations between score functions, and long-run frequencies."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.score_functions import (
    as_bilinear,
    gaussian_scores,
    hard_attention,
    local_window,
    predictive_local_weights,
    reinforce_gradient,
    score,
    score_costs,
)

F64 = torch.float64
seeds = st.integers(0, 10**6)


def normal(seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator, dtype=F64) for shape in shapes]


@given(seed=seeds, kind=st.sampled_from(["dot", "scaled_dot", "reduced_rank"]))
@settings(max_examples=30)
def test_multiplicative_scores_are_bilinear(seed, kind):
    q, k, U, V = normal(seed, (2, 5, 4), (2, 7, 4), (3, 4), (3, 4))
    W = as_bilinear(kind, 4, {"U": U, "V": V}).double()
    bilinear = score("bilinear", q, k, {"W": W})
    torch.testing.assert_close(bilinear, score(kind, q, k, {"U": U, "V": V}), rtol=1e-6, atol=1e-6)


@given(seed=seeds, bandwidth=st.floats(0.3, 3))
@settings(max_examples=30)
def test_keys_of_equal_length_make_the_gaussian_a_dot_product(seed, bandwidth):
    q, k = normal(seed, (2, 5, 4), (2, 7, 4))
    k = k / k.norm(dim=2, keepdim=True)
    gaussian = gaussian_scores(q, k, bandwidth).softmax(2)
    torch.testing.assert_close(gaussian, (score("dot", q, k, {}) / bandwidth**2).softmax(2))


def test_costs_of_the_lecture_sizes():
    assert score_costs("scaled_dot", 10, 10, 64, 0) == (0, 6500)
    assert score_costs("bilinear", 10, 10, 64, 0)[0] == 4096
    assert score_costs("additive", 10, 10, 64, 64)[0] == 2 * 4096 + 64


def test_a_wide_window_is_global():
    assert local_window(torch.tensor([3.0, 0.0]), 7, 7).all()
    scores = normal(0, (2, 7))[0]
    centres = torch.tensor([3.0, 3.0], dtype=F64)
    wide = predictive_local_weights(scores, centres, 10**6)
    torch.testing.assert_close(wide, scores.softmax(1))


@given(seed=seeds)
@settings(max_examples=20)
def test_hard_attention_is_soft_attention_on_average(seed):
    weights = normal(seed, (1, 6))[0].softmax(1)
    grid = (torch.arange(20_000, dtype=F64) + 0.5) / 20_000  # every number between 0 and 1, evenly
    chosen = hard_attention(weights.expand(20_000, 6), torch.eye(6, dtype=F64), grid)
    torch.testing.assert_close(chosen.mean(0), weights[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("baseline", [0.0, 2.0])
def test_reinforce_is_exact_when_every_choice_comes_as_often_as_its_weight(baseline):
    scores = torch.tensor([0.5, 0.25, 0.25], dtype=F64).log()
    rewards = torch.tensor([1.0, -2.0, 5.0], dtype=F64)
    chosen = torch.tensor([0, 0, 1, 2])
    leaf = scores.clone().requires_grad_()
    (exact,) = torch.autograd.grad(leaf.softmax(0) @ rewards, leaf)
    estimate = reinforce_gradient(scores, chosen, rewards[chosen], baseline)
    torch.testing.assert_close(estimate, exact)
