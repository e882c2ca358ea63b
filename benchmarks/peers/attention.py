"""One self-attention layer, forward and backward: the course's, PyTorch's and x-transformers'."""

import torch
from torch import nn

from attention.masked_attention import causal_mask
from attention.multi_head_attention import MultiHeadAttention
from benchmarks.peers.racing import Contestant
from benchmarks.peers.training import take_projections

BATCH, D_MODEL, N_HEADS = 2, 256, 8
DIFFERS = {"x-transformers": "no biases; a causal layer is told so and is given no mask"}


def given(T, device):
    """Random x (B, T, d_model)."""
    draw = torch.Generator().manual_seed(0)
    return torch.randn(BATCH, T, D_MODEL, generator=draw).to(device)


def course():
    """The course's layer with PyTorch's kernel, without biases in effect: they are zero."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(D_MODEL, N_HEADS, fused=True)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        nn.init.zeros_(getattr(layer, name).bias)
    return layer


def pytorch(layer):
    """nn.MultiheadAttention with the weights of the course's layer."""
    peer = nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True)
    with torch.no_grad():
        peer.in_proj_weight.copy_(torch.cat([layer.W_q.weight, layer.W_k.weight, layer.W_v.weight]))
        peer.in_proj_bias.zero_()
        peer.out_proj.load_state_dict(layer.W_o.state_dict())
    return peer


def x_transformers(layer, causal):
    """The Attention of x-transformers with the weights of the course's layer."""
    from x_transformers import Attention

    peer = Attention(D_MODEL, D_MODEL // N_HEADS, heads=N_HEADS, causal=causal, flash=True)
    with torch.no_grad():
        take_projections(layer, peer)
    return peer


def function(name, T, causal, device="cpu"):
    """A contestant's layer as a function of x (B, T, d_model), and its parameters."""
    layer = course().to(device)
    mask = causal_mask(T, device) if causal else None
    if name == "course":
        return lambda x: layer(x, x, x, mask), layer
    if name == "nn.MultiheadAttention":
        peer, hidden = pytorch(layer).to(device), ~mask if causal else None
        options = {"attn_mask": hidden, "is_causal": causal, "need_weights": False}
        return lambda x: peer(x, x, x, **options)[0], peer
    peer = x_transformers(layer, causal).to(device)
    return peer, peer


def make(name, T, causal, device="cpu"):
    """One call with the gradients of x and of all parameters; returns the sum of the output."""
    attend, layer = function(name, T, causal, device)
    x = given(T, device).requires_grad_()

    def run():
        layer.zero_grad()
        x.grad = None
        y = attend(x)
        y.sum().backward()

    return run


def difference(name, T, causal, device="cpu"):
    """The largest difference of a number of the output from the course's."""
    x = given(T, device)
    with torch.no_grad():
        ours, theirs = (function(one, T, causal, device)[0](x) for one in ("course", name))
    return (ours - theirs).abs().max().item()


CONTESTANTS = [
    Contestant("course", make),
    Contestant("nn.MultiheadAttention", make),
    Contestant("x-transformers", make, "x-transformers"),
]
