"""Autocast on the rehearsal device: the types are those of CUDA, and a mixture is refused."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from autograder.inside.device.rehearsal import DEVICE, landed, rehearsal, rehearsed

X = torch.arange(12.0).reshape(3, 4) / 7
SHORT, WIDE = torch.bfloat16, torch.float32


def cast(function, x=X, **options):
    """What ``function`` gives on the device within autocast."""
    with rehearsal(), torch.autocast(DEVICE.type, **{"dtype": SHORT} | options):
        return landed(function(rehearsed(x)))


PRODUCTS = {
    "matmul": lambda x: x @ x.T,
    "linear": lambda x: F.linear(x, x),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "fused": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "layer": lambda x: nn.Linear(4, 2, device=x.device)(x),
}
WIDENED = {
    "softmax": lambda x: x.bfloat16().softmax(-1),
    "layer norm": lambda x: F.layer_norm(x.bfloat16(), (4,)),
    "loss": lambda x: F.cross_entropy(x.bfloat16(), torch.tensor([1, 0, 2], device=x.device)),
    "sum": lambda x: x.bfloat16().sum(),
    "keyword": lambda x: torch.log_softmax(input=x.bfloat16(), dim=-1),
}
KEPT = {
    "sum of two types": lambda x: x + (x @ x.T)[:, :1],
    "relu": lambda x: F.relu(x),
    "in place": lambda x: x.clone().mul_(2),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_short(name, dtype):
    found = cast(PRODUCTS[name], dtype=dtype)
    assert found.dtype == dtype
    if name != "layer":  # whose weights are drawn
        torch.testing.assert_close(found.float(), PRODUCTS[name](X), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", WIDENED)
def test_sums_and_norms_are_wide(name):
    found = cast(WIDENED[name])
    assert found.dtype == WIDE
    torch.testing.assert_close(found, WIDENED[name](X).float(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", KEPT)
def test_all_else_stays_as_it_is(name):
    assert cast(KEPT[name]).dtype == WIDE


def test_without_a_type_it_is_that_of_cuda_and_double_is_left_alone():
    assert cast(PRODUCTS["matmul"], dtype=None).dtype == torch.float16
    assert cast(PRODUCTS["matmul"], X.double()).dtype == torch.float64


def test_it_can_be_switched_off_within_and_ends():
    def within(x):
        with torch.amp.autocast(x.device.type, SHORT, enabled=False):
            off = x @ x.T
        return off, x @ x.T

    off, on = cast(within)
    assert (off.dtype, on.dtype) == (WIDE, SHORT)
    assert cast(PRODUCTS["matmul"], enabled=False).dtype == WIDE
    with rehearsal():
        assert (rehearsed(X) @ rehearsed(X).T).dtype == WIDE
        with torch.autocast("cpu", SHORT):  # that of the CPU is PyTorch's own, and for it alone
            assert (X @ X.T).dtype == SHORT and (rehearsed(X) @ rehearsed(X).T).dtype == WIDE
    assert not torch.is_autocast_enabled("cpu")


def test_a_block_that_was_never_left_ends_with_the_rehearsal():
    with rehearsal():
        torch.autocast(DEVICE.type, SHORT).__enter__()
        assert (rehearsed(X) @ rehearsed(X).T).dtype == SHORT
    with rehearsal():
        assert (rehearsed(X) @ rehearsed(X).T).dtype == WIDE


def test_gradients_are_of_the_type_of_the_weights():
    layer, other = nn.Linear(4, 2), nn.Linear(4, 2)
    other.load_state_dict(layer.state_dict())
    with rehearsal() as device:
        layer.to(device)
        with torch.autocast(device.type, SHORT):
            loss = layer(rehearsed(X)).float().square().mean()
        loss.backward()
        assert layer.weight.grad.dtype == WIDE
    other(X).square().mean().backward()
    torch.testing.assert_close(landed(layer.weight.grad), other.weight.grad, rtol=0.05, atol=0.02)


def test_a_product_of_two_types_is_refused_behind_it():
    def mixed(x):
        with torch.autocast(x.device.type, SHORT):
            y = x @ x.T
        return y @ x

    with rehearsal(), pytest.raises(RuntimeError, match="same dtype|BFloat16"):
        mixed(rehearsed(X))
