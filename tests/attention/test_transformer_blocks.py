"""Lesson 09's layers: rows of padding, weights that are watched, and another attention in place."""

import pytest
import torch
from torch import nn

from attention.multi_head_attention import Sublayers
from attention.provided.models.attention_weights import watch_attention
from attention.transformer_blocks import (
    DecoderLayer,
    EncoderLayer,
)


def test_padding_only_sentences_stay_finite():
    layer = DecoderLayer(12, 3, 20)
    x = torch.randn(2, 5, 12, requires_grad=True)
    lengths = torch.tensor([4, 0])[:, None, None]
    masks = torch.arange(5) < lengths, torch.arange(7) < lengths
    output = layer(x, torch.randn(2, 7, 12), *masks)
    output.sum().backward()
    assert output.isfinite().all() and x.grad.isfinite().all()


@pytest.mark.parametrize("fused", [False, True])
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


def test_sublayers_refuse_sizes_with_both_numbers():
    with pytest.raises(ValueError, match="n_heads=5 does not divide d_model=12"):
        Sublayers(12, 5, 20)
