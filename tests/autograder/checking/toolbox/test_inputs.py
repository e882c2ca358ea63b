"""The seeded source of inputs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.checking.toolbox.inputs import Draw
from tests.autograder.values import tensors

seeds = st.integers(0, 2**32)


def everything(draw):
    return [
        draw.normal(2, 3, scale=5.0),
        draw.uniform(4, low=2.0, high=3.0),
        draw.integers(1, 9, 5),
        draw.permutation(6),
        draw.choice(range(10**6)),
        draw.normal(),
    ]


def same(one, other):
    return [torch.equal(*map(torch.as_tensor, pair)) for pair in zip(one, other, strict=True)]


def test_a_seed_draws_the_same_and_touches_no_other_generator():
    before = torch.get_rng_state()
    assert all(same(everything(Draw(1)), everything(Draw(1))))
    assert not any(same(everything(Draw(1)), everything(Draw(2))))
    assert torch.equal(before, torch.get_rng_state())


@given(seeds)
def test_numbers_lie_where_they_should(seed):
    draw = Draw(seed)
    uniform, integers = draw.uniform(50, low=2.0, high=3.0), draw.integers(1, 9, 50)
    assert uniform.dtype == draw.normal(1).dtype == torch.float64
    assert integers.dtype == torch.int64
    assert 2 <= uniform.min() <= uniform.max() < 3
    assert 1 <= integers.min() <= integers.max() < 9


def test_normal_has_the_scale_asked_for():
    numbers = Draw(0).normal(10_000, scale=5.0)
    assert numbers.std().item() == pytest.approx(5, rel=0.05)
    assert numbers.mean().item() == pytest.approx(0, abs=0.2)


@given(seeds, st.integers(0, 5))
def test_a_permutation_is_one_but_never_the_identity(seed, n):
    order = Draw(seed).permutation(n).tolist()
    assert sorted(order) == list(range(n))
    assert n < 2 or order != list(range(n))


@given(tensors())
def test_strided_has_equal_values_in_another_layout(tensor):
    view = Draw.strided(tensor)
    assert view.dtype == tensor.dtype
    assert torch.allclose(view.double(), tensor.double(), equal_nan=True)
    assert view.is_contiguous() == (tensor.numel() < 2)
