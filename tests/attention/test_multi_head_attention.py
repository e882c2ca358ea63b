"""Lesson 07's library against PyTorch's layer, its kernel, and single heads."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from attention.masked_attention import causal_mask
from attention.multi_head_attention import (
    MultiHeadAttention,
    attend,
    share_heads,
    split_heads,
)
from attention.train.speed.acceleration import PackedAttention
from attention.transformer_blocks import DecoderLayer


def pair(d_model=12, n_heads=3, **options):
    """The library's layer and PyTorch's with the same weights, both float64."""
    ours = MultiHeadAttention(d_model, n_heads, **options).double()
    theirs = nn.MultiheadAttention(d_model, n_heads, batch_first=True).double()
    projections = (ours.W_q, ours.W_k, ours.W_v)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
        theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
        theirs.out_proj.load_state_dict(ours.W_o.state_dict())
    return ours, theirs


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("shape", [None, (5, 7), (1, 7), (2, 1, 7), (1, 5, 7), (2, 5, 7)])
def test_equals_the_layer_of_pytorch(fused, shape):
    ours, theirs = pair(fused=fused)
    x, key, value = (torch.randn(2, n, 12).double().requires_grad_() for n in (5, 7, 7))
    mask = forbidden = None
    if shape is not None:
        mask = torch.rand(shape) < 0.5
        mask[..., 0] = True
        forbidden = ~mask.expand(2, 5, 7).repeat_interleave(3, 0)
    got = ours(x, key, value, mask)
    expected = theirs(x, key, value, attn_mask=forbidden)[0]
    torch.testing.assert_close(got, expected)
    grad = torch.randn_like(got)
    torch.testing.assert_close(
        torch.autograd.grad(got, (x, key, value), grad),
        torch.autograd.grad(expected, (x, key, value), grad),
    )


class Kernels(TorchDispatchMode):
    """Notes which of PyTorch's operators run, by name, also those of the backward pass."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def assert_only_the_fused_kernel_runs(layer, *inputs, times):
    """Run a layer forward and backward and see that no table of weights was made by hand."""
    with Kernels() as kernels:
        layer(*inputs).sum().backward()
    assert kernels.names.count("_scaled_dot_product_flash_attention_for_cpu") == times
    assert kernels.names.count("_scaled_dot_product_flash_attention_for_cpu_backward") == times
    assert not {"bmm", "_softmax", "_safe_softmax"} & set(kernels.names)


MASKS = [(5, 5), (1, 5), (2, 1, 5), (1, 5, 5), (2, 5, 5)]


@pytest.mark.parametrize("shape", [None, *MASKS])
@pytest.mark.parametrize("kind", [MultiHeadAttention, PackedAttention])
def test_every_shape_of_mask_reaches_the_fused_kernel(kind, shape):
    mask = None if shape is None else torch.ones(shape, dtype=torch.bool)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    layer = kind(12, 3, fused=True)
    assert_only_the_fused_kernel_runs(layer, x, x, x, mask, times=1)
    assert_only_the_fused_kernel_runs(layer, x, memory, memory, mask, times=1)


def test_a_decoder_layers_own_mask_reaches_the_fused_kernel():
    layer = DecoderLayer(12, 3, 24, dropout=0.0, fused=True)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    assert_only_the_fused_kernel_runs(layer, x, memory, times=2)


@pytest.mark.parametrize("shape", MASKS)
@pytest.mark.parametrize("cross", [False, True])
def test_packed_projections_read_every_shape_of_mask_alike(cross, shape):
    layer, packed = MultiHeadAttention(12, 3), PackedAttention(12, 3, fused=True)
    packed.load_state_dict(layer.state_dict())
    x, mask = torch.randn(2, 5, 12, requires_grad=True), torch.rand(shape) < 0.5
    memory = torch.randn(2, 5, 12) if cross else x
    mask[..., -1, :] = False  # a query that sees nothing
    got, expected = packed(x, memory, memory, mask), layer(x, memory, memory, mask)
    torch.testing.assert_close(got, expected)
    grad = torch.randn_like(got)
    got, expected = (torch.autograd.grad(output, x, grad) for output in (got, expected))
    torch.testing.assert_close(got, expected)
    given = (x, memory, memory, mask, torch.tensor([1.0, 0.0, 0.5]))
    torch.testing.assert_close(*(one(*given, return_weights=True) for one in (packed, layer)))


@pytest.mark.parametrize("fused", [False, True])
def test_rows_with_nothing_to_see_stay_finite(fused):
    layer = MultiHeadAttention(12, 3, fused=fused)
    x = torch.randn(2, 5, 12, requires_grad=True)
    mask = causal_mask(5) & torch.tensor([[[True]], [[False]]])  # the second is all padding
    output = layer(x, x, x, mask)
    torch.testing.assert_close(output[1], layer.W_o.bias.expand(5, 12))
    output.sum().backward()
    assert x.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_the_two_paths_are_equal_also_when_weights_are_asked_for():
    explicit, fused = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3, fused=True)
    fused.load_state_dict(explicit.state_dict())
    x, gates = torch.randn(2, 5, 12), torch.tensor([1.0, 0.0, 0.5])
    for options in ({}, {"mask": causal_mask(5)}, {"head_mask": gates}):
        torch.testing.assert_close(explicit(x, x, x, **options), fused(x, x, x, **options))
    output, weights = fused(x, x, x, return_weights=True)
    torch.testing.assert_close(output, fused(x, x, x))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


@pytest.mark.parametrize("fused", [False, True])
def test_dropout_is_on_in_training_only_and_keeps_the_mean(fused):
    layer = MultiHeadAttention(12, 3, dropout=0.5, fused=fused)
    x = torch.randn(1, 6, 12)
    layer.eval()
    assert layer(x, x, x).equal(layer(x, x, x))
    layer.train()
    assert not layer(x, x, x).equal(layer(x, x, x))
    torch.manual_seed(0)
    q, values = torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 100, 2)
    contexts = [attend(q, values, values, dropout=0.5, fused=fused)[0].mean() for _ in range(200)]
    assert abs(torch.stack(contexts).mean() - 1) < 0.05


@pytest.mark.parametrize("fused", [False, True])
def test_each_key_needs_a_value(fused):
    q, k, v = torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 5, 3), torch.zeros(1, 1, 7, 3)
    with pytest.raises(ValueError, match="each key needs a value: 5 keys, 7 values"):
        attend(q, k, v, fused=fused)


def test_sizes_that_do_not_divide_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match="n_heads=5 does not divide d_model=12"):
        MultiHeadAttention(12, 5)
    with pytest.raises(ValueError, match="n_heads=5 does not divide d_model=12"):
        split_heads(torch.zeros(1, 2, 12), 5)
    with pytest.raises(ValueError, match="H_kv=3 does not divide n_heads=4"):
        share_heads(torch.zeros(1, 3, 2, 2), 4)
