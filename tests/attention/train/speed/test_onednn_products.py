"""Products by oneDNN: the numbers and gradients of PyTorch's, which stay where it is no use."""

import os

import pytest
import torch
from torch import nn

from attention.train.speed import onednn_products


@pytest.fixture
def onednn(monkeypatch):
    """Have oneDNN multiply on whatever processor this is; returns what it was called with."""
    operator = onednn_products.onednn()
    if operator is None:
        pytest.skip("this PyTorch has no oneDNN")
    calls = []

    def watched(*arguments):
        calls.append(arguments)
        return operator(*arguments)

    monkeypatch.setattr(onednn_products, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(onednn_products, "onednn", lambda: watched)
    return calls


def layers(*sizes, bias=True):
    torch.manual_seed(0)
    return [nn.Linear(6, size, bias=bias) for size in sizes]


class TestLinear:
    @pytest.mark.parametrize("shape", [(6,), (1, 6), (5, 6), (2, 3, 6)])
    @pytest.mark.parametrize("sizes", [(4,), (1,), (4, 4, 4), (2, 5)])
    @pytest.mark.parametrize("bias", [True, False])
    def test_is_pytorchs_layers_side_by_side(self, onednn, shape, sizes, bias):
        side_by_side = layers(*sizes, bias=bias)
        parameters = [p for layer in side_by_side for p in layer.parameters()]
        x = torch.randn(shape, requires_grad=True)
        wanted = torch.cat([layer(x) for layer in side_by_side], dim=-1)
        direction = torch.randn_like(wanted)
        found = onednn_products.linear(x, *side_by_side)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(
            torch.autograd.grad(found, [x, *parameters], direction),
            torch.autograd.grad(wanted, [x, *parameters], direction),
        )
        assert len(onednn) == 3  # the result and two gradients

    def test_remembers_the_layers_own_weights(self, onednn):
        kept = []
        side_by_side, x = layers(4, 4, 4), torch.randn(5, 6, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda tensor: tensor):
            onednn_products.linear(x, *side_by_side)
        own = [x, *(layer.weight for layer in side_by_side)]
        assert [tensor.data_ptr() for tensor in kept] == [tensor.data_ptr() for tensor in own]

    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
    def test_other_types_are_pytorchs(self, onednn, dtype):
        (layer,) = layers(4)
        layer.to(dtype)
        x = torch.randn(5, 6).to(dtype)
        assert torch.equal(onednn_products.linear(x, layer), layer(x)) and not onednn

    def test_under_autocast_it_is_pytorchs_in_bfloat16(self, onednn):
        side_by_side = layers(4, 4)
        with torch.autocast("cpu", torch.bfloat16):
            found = onednn_products.linear(torch.randn(5, 6), *side_by_side)
        assert found.dtype == torch.bfloat16 and not onednn


class TestAddProduct:
    @pytest.mark.parametrize("n", [1, 7, 2 * onednn_products.ROWS + 3])
    @pytest.mark.parametrize("faster", [True, False])
    def test_adds_to_what_is_there(self, onednn, monkeypatch, n, faster):
        monkeypatch.setattr(onednn_products, "onednn_is_faster", lambda: faster)
        torch.manual_seed(0)
        total, left, right = torch.randn(n, 3), torch.randn(5, n).T, torch.randn(5, 3).T
        wanted = total + left @ right.T
        onednn_products.add_product(total, left, right)
        torch.testing.assert_close(total, wanted)
        assert bool(onednn) == faster

    def test_sums_up_in_the_type_of_the_total(self):
        total = torch.full((2, 1), 1000.0)
        onednn_products.add_product(total, torch.ones(2, 1).bfloat16(), torch.ones(1, 1).bfloat16())
        assert total.tolist() == [[1001.0]] * 2  # 1000 in bfloat16


class TestOneDNNIsFaster:
    def test_is_what_a_try_says(self, monkeypatch):
        def slow(left, right, *_):
            return [left @ right.T for _ in range(3)]

        for operator, faster in ((lambda *_: None, True), (slow, False), (None, False)):
            monkeypatch.setattr(onednn_products, "onednn", lambda operator=operator: operator)
            assert onednn_products.onednn_is_faster.__wrapped__() is faster

    def test_the_try_takes_no_random_numbers(self):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        onednn_products.onednn_is_faster.__wrapped__()
        assert torch.equal(torch.get_rng_state(), before)

    def test_a_pytorch_without_the_operator_multiplies_all_the_same(self, monkeypatch):
        monkeypatch.delattr(torch.ops.mkldnn, "_linear_pointwise", raising=False)
        monkeypatch.setattr(type(torch.ops.mkldnn), "__getattr__", _absent)
        assert (
            onednn_products.onednn() is None and not onednn_products.onednn_is_faster.__wrapped__()
        )


def _absent(self, name):
    raise AttributeError(name)


@pytest.mark.parametrize(
    "begin", [onednn_products.keep_few_kernels, lambda: onednn_products.quicken(nn.Sequential())]
)
def test_keeps_kernels_of_few_shapes_unless_told_otherwise(begin, monkeypatch):
    monkeypatch.setattr(os, "environ", {"LRU_CACHE_CAPACITY": "7"})
    begin()
    assert os.environ == {
        "LRU_CACHE_CAPACITY": "7",
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(onednn_products.SHAPES),
    }


class TestQuicken:
    def test_replaces_linear_layers_and_nothing_else(self, onednn, monkeypatch):
        class Own(nn.Linear):
            pass

        monkeypatch.setattr(os, "environ", {})
        model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), Own(4, 3))
        before, x = model.state_dict(), torch.randn(5, 6)
        wanted = model(x)
        onednn_products.quicken(model)
        assert [type(module) for module in model] == [onednn_products.Linear, nn.ReLU, Own]
        torch.testing.assert_close(model(x), wanted)
        assert model.state_dict().keys() == before.keys() and len(onednn) == 1
