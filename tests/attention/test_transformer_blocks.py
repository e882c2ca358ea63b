"""Lesson 09's library against PyTorch's own layers, with the weights copied."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, padding_mask
from attention.multi_head_attention import Sublayers
from attention.provided.models.attention_weights import watch_attention
from attention.transformer_blocks import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    Residual,
    gradient_norms,
    layer_parameters,
)

NORMS = pytest.mark.parametrize("pre_norm", [False, True])
FUSED = pytest.mark.parametrize("fused", [False, True])


def copy_attention(ours, theirs):
    projections = (ours.W_q, ours.W_k, ours.W_v)
    theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
    theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
    theirs.out_proj.load_state_dict(ours.W_o.state_dict())


def pair(ours_class, theirs_class, **options):
    """The library's layer and PyTorch's with the same non-trivial weights, float64, evaluation."""
    ours = ours_class(12, 3, 20, **options).double().eval()
    norm_first = options["pre_norm"]
    theirs = theirs_class(12, 3, 20, batch_first=True, norm_first=norm_first).double().eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        copy_attention(ours.attention, theirs.self_attn)
        if hasattr(ours, "cross_attention"):
            copy_attention(ours.cross_attention, theirs.multihead_attn)
            theirs.norm3.load_state_dict(ours.norm_3.state_dict())
        theirs.linear1.load_state_dict(ours.feed_forward.linear_1.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.linear_2.state_dict())
        theirs.norm1.load_state_dict(ours.norm_1.state_dict())
        theirs.norm2.load_state_dict(ours.norm_2.state_dict())
    return ours, theirs


def assert_same_with_gradients(got, expected, inputs):
    torch.testing.assert_close(got, expected)
    grad = torch.randn_like(got)
    torch.testing.assert_close(
        torch.autograd.grad(got, inputs, grad), torch.autograd.grad(expected, inputs, grad)
    )


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), max_size=3), st.integers(2, 9), st.sampled_from([1e-5, 0.1]))
def test_layer_norm_equals_pytorchs(leading, d_model, eps):
    ours, theirs = LayerNorm(d_model, eps).double(), nn.LayerNorm(d_model, eps).double()
    with torch.no_grad():
        ours.weight.copy_(torch.randn(d_model))
        ours.bias.copy_(torch.randn(d_model))
    theirs.load_state_dict(ours.state_dict())
    x = (3 + 2 * torch.randn(*leading, d_model)).double().requires_grad_()
    assert_same_with_gradients(ours(x), theirs(x), [x])


def test_layer_norm_of_a_constant_vector_is_its_bias():
    norm, x = LayerNorm(4), torch.full((2, 4), 7.0, requires_grad=True)
    output = norm(x)
    torch.testing.assert_close(output, torch.zeros(2, 4))
    output.sum().backward()
    assert x.grad.isfinite().all()


def test_feed_forward_works_on_every_position_alone():
    layer, x = FeedForward(12, 20), torch.randn(2, 5, 12)
    theirs = nn.Sequential(layer.linear_1, nn.ReLU(), layer.linear_2)
    torch.testing.assert_close(layer(x), theirs(x))
    torch.testing.assert_close(layer(x)[:, 2:3], layer(x[:, 2:3]))
    dropped = FeedForward(12, 20, dropout=1.0)
    torch.testing.assert_close(dropped(x), dropped.linear_2.bias.expand(2, 5, 12))
    assert not torch.equal(dropped.eval()(x), dropped.train()(x))


@settings(max_examples=20)
@given(st.floats(0.0, 0.9))
def test_residual_drops_a_share_of_p_and_keeps_the_mean(p):
    torch.manual_seed(0)
    layer, x, update = Residual(p), torch.randn(300, 300), torch.ones(300, 300)
    change = layer(x, update) - x
    assert abs((change.abs() < 1e-4).double().mean() - p) < 0.01
    assert abs(change.mean() - 1) < 0.05
    assert layer.eval()(x, update).equal(x + update)


def test_residual_is_dropout_then_a_sum():
    layer, x, update = Residual(0.3), torch.randn(4, 6), torch.randn(4, 6)
    noise = torch.rand(4, 6)
    expected = x + torch.where(noise < 0.3, 0.0, update / 0.7)
    torch.testing.assert_close(layer(x, update, noise), expected)


@NORMS
@FUSED
@pytest.mark.parametrize("masked", ["none", "padding", "causal", "both"])
def test_encoder_layer_equals_pytorchs(pre_norm, fused, masked):
    ours, theirs = pair(EncoderLayer, nn.TransformerEncoderLayer, pre_norm=pre_norm, fused=fused)
    x = torch.randn(2, 5, 12).double().requires_grad_()
    real, causal = padding_mask(torch.tensor([5, 3]), 5), causal_mask(5)
    mask = {"none": None, "padding": real, "causal": causal, "both": real & causal}[masked]
    options = {}
    if masked in ("padding", "both"):
        options["src_key_padding_mask"] = ~real[:, 0]
    if masked in ("causal", "both"):
        options["src_mask"] = ~causal
    assert_same_with_gradients(ours(x, mask), theirs(x, **options), [x])


@NORMS
@FUSED
@pytest.mark.parametrize("T_k", [5, 7])
def test_decoder_layer_equals_pytorchs(pre_norm, fused, T_k):
    ours, theirs = pair(DecoderLayer, nn.TransformerDecoderLayer, pre_norm=pre_norm, fused=fused)
    x, memory = (torch.randn(2, T, 12).double().requires_grad_() for T in (5, T_k))
    target = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 1, 1, 0]]).bool()
    source = padding_mask(torch.tensor([T_k, 2]), T_k)
    expected = theirs(
        x,
        memory,
        tgt_mask=~causal_mask(5),
        tgt_key_padding_mask=~target,
        memory_key_padding_mask=~source[:, 0],
    )
    got = ours(x, memory, target[:, None], source)
    assert_same_with_gradients(got, expected, [x, memory])
    torch.testing.assert_close(ours(x, memory), theirs(x, memory, tgt_mask=~causal_mask(5)))


@NORMS
def test_no_position_of_the_decoder_sees_the_future(pre_norm):
    layer = DecoderLayer(12, 3, 20, pre_norm=pre_norm).eval()
    x, memory = torch.randn(2, 6, 12), torch.randn(2, 7, 12)
    other = x.clone()
    other[:, 4:] = torch.randn(2, 2, 12)
    before, after = layer(x, memory), layer(other, memory)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


@NORMS
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_dropout_is_random_in_training_only(kind, pre_norm):
    layer = kind(12, 3, 20, dropout=0.3, pre_norm=pre_norm)
    inputs = [torch.randn(2, 5, 12)] * (2 if kind is DecoderLayer else 1)
    assert not layer(*inputs).equal(layer(*inputs))
    layer.eval()
    assert layer(*inputs).equal(layer(*inputs))


def test_padding_only_sentences_stay_finite():
    layer = DecoderLayer(12, 3, 20)
    x = torch.randn(2, 5, 12, requires_grad=True)
    lengths = torch.tensor([4, 0])
    output = layer(x, torch.randn(2, 7, 12), padding_mask(lengths, 5), padding_mask(lengths, 7))
    output.sum().backward()
    assert output.isfinite().all() and x.grad.isfinite().all()


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize(("d_model", "d_ff"), [(512, 2048), (12, 20)])
def test_parameter_counts(cross, d_model, d_ff):
    kind = DecoderLayer if cross else EncoderLayer
    with torch.device("meta"):
        layer = kind(d_model, 4, d_ff)
    assert sum(p.numel() for p in layer.parameters()) == layer_parameters(d_model, d_ff, cross)


def test_gradient_norms_fade_without_the_way_past():
    torch.manual_seed(0)
    x, weights = torch.randn(8, 16), 0.5 * torch.randn(24, 16, 16) / 4
    with_skip, without = gradient_norms(x, weights, True), gradient_norms(x, weights, False)
    assert (with_skip > 1e6 * without).all()
    assert not weights.requires_grad
    leaf = weights.clone().requires_grad_()
    h = x
    for weight in leaf:
        h = h + torch.tanh(F.linear(h, weight.T))
    h.square().mean().backward()
    torch.testing.assert_close(with_skip, leaf.grad.flatten(1).norm(dim=1))


@FUSED
def test_watch_attention_collects_gates_and_leaves_no_trace(fused):
    model = nn.ModuleDict({"a": EncoderLayer(12, 3, 20, fused=fused).eval()})
    model["b"] = DecoderLayer(12, 3, 20, fused=fused).eval()

    def run():
        return model["b"](x, model["a"](memory))

    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    plain = run()
    with watch_attention(model) as weights:
        torch.testing.assert_close(run(), plain)
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    assert shapes == {
        "a.attention": (2, 3, 7, 7),
        "b.attention": (2, 3, 5, 5),
        "b.cross_attention": (2, 3, 5, 7),
    }
    closed = torch.zeros(3, requires_grad=True)
    with watch_attention(model, {"b.cross_attention": closed}):
        gated = run()
    assert not torch.allclose(gated, plain)
    gated.square().sum().backward()
    assert closed.grad.abs().min() > 0
    assert run().equal(plain)
    unknown = pytest.raises(ValueError, match=r"no attention is called c.*a\.attention")
    with unknown, watch_attention(model, {"c": closed}):
        pass


def test_another_attention_can_take_the_place():
    """As a cache for decoding will: the layers only ever call attention(q, k, v, mask)."""

    class Recorded(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.calls = inner, []

        def forward(self, query, key, value, mask=None):
            self.calls.append((query.shape, key.shape))
            return self.inner(query, key, value, mask)

    layer, x = DecoderLayer(12, 3, 20).eval(), torch.randn(2, 5, 12)
    expected = layer(x, torch.ones(2, 7, 12))
    layer.cross_attention = Recorded(layer.cross_attention)
    assert layer(x, torch.ones(2, 7, 12)).equal(expected)
    assert layer.cross_attention.calls == [((2, 5, 12), (2, 7, 12))]


def test_sublayers_refuse_sizes_with_both_numbers():
    with pytest.raises(ValueError, match="n_heads=5 does not divide d_model=12"):
        Sublayers(12, 5, 20)
