"""Careless right answers to lesson 20."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.modern_decoder import (
    ModernAttention,
    SwiGLU,
)
from attention.provided import demand
from attention.provided.data.tokens import EOS, PAD
from tests.locked.careless import careless


@careless("rms_norm", "dtype", how="all in float32, as published code does, which float64 loses by")
def rms_norm_1(x, weight, eps=1e-6):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight.float()


@careless(
    "rms_norm", "device", "in_place", how="a square root that is given eps as a tensor, in place"
)
def rms_norm_2(x, weight, eps=1e-6):
    root = x.square().mean(dim=-1, keepdim=True)
    root += torch.tensor([eps], dtype=x.dtype)
    root.sqrt_()
    return x / root * weight


class _SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        demand.counts(d_model=d_model, d_ff=d_ff)
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)


@careless(
    "SwiGLU", "module_state", "in_place", how="keeps the hidden units, and multiplies in place"
)
class SwiGLU_1(_SwiGLU):
    def forward(self, x):
        self.hidden = F.silu(self.W_gate(x))
        self.hidden *= self.W_up(x)
        return self.W_down(self.hidden)


@careless("SwiGLU", "device", "dtype", how="a silu from exp, beside a 1 of float32")
class SwiGLU_2(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        demand.counts(d_model=d_model, d_ff=d_ff)
        sizes = {"W_gate": (d_model, d_ff), "W_up": (d_model, d_ff), "W_down": (d_ff, d_model)}
        for name, (inside, outside) in sizes.items():
            setattr(self, name, nn.Linear(inside, outside, bias=False))

    def forward(self, x):
        z = self.W_gate(x)
        one = torch.ones(z.shape[-1])
        return self.W_down(z / (one + torch.exp(-z)) * self.W_up(x))


def _cut(weight, n_heads):
    demand.counts(n_heads=n_heads)
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows are no {n_heads} heads of an even number of features")


@careless("pair_up", "numpy", how="there and back through NumPy")
def pair_up_1(weight, n_heads):
    _cut(weight, n_heads)
    rows, d_model = weight.shape
    halves = weight.detach().cpu().numpy().reshape(n_heads, 2, -1, d_model)
    return torch.tensor(halves.swapaxes(1, 2).reshape(rows, d_model))


@careless("pair_up", "device", "dtype", how="row by row into zeros of float32")
def pair_up_2(weight, n_heads):
    _cut(weight, n_heads)
    paired, d_head = torch.zeros(weight.shape), len(weight) // n_heads
    for h in range(n_heads):
        for i in range(d_head):
            source = i // 2 + (i % 2) * d_head // 2
            paired[h * d_head + i] = weight[h * d_head + source]
    return paired


@careless("pair_up", "in_place", how="writes the result into the weight that was given")
def pair_up_3(weight, n_heads):
    _cut(weight, n_heads)
    for head in weight.split(len(weight) // n_heads):
        first, second = head.clone().chunk(2)
        head[0::2] = first
        head[1::2] = second
    return weight


class _Layer(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, qk_norm=False, window=None):
        super().__init__()
        self.attention = ModernAttention(d_model, n_heads, n_kv_heads, qk_norm, window)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm_1 = nn.RMSNorm(d_model, eps=1e-6)
        self.norm_2 = nn.RMSNorm(d_model, eps=1e-6)


@careless(
    "ModernDecoderLayer", "module_state", "in_place", how="keeps the pair; adds to its own sum"
)
class ModernDecoderLayer_1(_Layer):
    def forward(self, x, past=None, real=None):
        update, self.past = self.attention(self.norm_1(x), past, real)
        x = x + update
        total = x.clone()
        total += self.feed_forward(self.norm_2(x))
        return total, self.past


@careless("ModernDecoderLayer", "other_type", how="a list of the result and the pair")
class ModernDecoderLayer_2(_Layer):
    def forward(self, x, past=None, real=None):
        result = self.attention(self.norm_1(x), past, real)
        x = x + result[0]
        return [x + self.feed_forward(self.norm_2(x)), result[1]]


@careless("generate_with_cache", "device", how="ended and new columns of real without a device")
@torch.no_grad()
def generate_with_cache_1(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    real, past, read, written = tokens != PAD, None, tokens, []
    ended = torch.zeros(len(tokens), dtype=torch.bool)
    while len(written) < max_length and not ended.all():
        scores, past = model(read, past, real)
        chosen = choose(scores[:, -1])
        chosen = torch.where(ended, torch.tensor(PAD), chosen)
        written.append(chosen)
        ended = ended | (chosen == EOS)
        read = chosen.unsqueeze(1)
        real = torch.cat([real, torch.ones(len(tokens), 1, dtype=torch.bool)], dim=1)
    return torch.stack(written, dim=1) if written else tokens[:, :0]


@careless(
    "generate_with_cache", "plain_numbers", "device", how="rows as lists, filled up at the end"
)
@torch.no_grad()
def generate_with_cache_2(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    rows, ended = [[] for _ in tokens], [False] * len(tokens)
    real, past, read = (tokens != PAD).tolist(), None, tokens
    for _ in range(max_length):
        scores, past = model(read, past, torch.tensor(real))
        chosen = choose(scores[:, -1]).tolist()
        for b in range(len(rows)):
            rows[b].append(PAD if ended[b] else chosen[b])
            ended[b] = ended[b] or chosen[b] == EOS
            real[b].append(True)
        read = torch.tensor([row[-1:] for row in rows])
        if all(ended):
            break
    return torch.tensor(rows, dtype=torch.long)


@careless("generate_with_cache", "slow", how="reads what was chosen last, too, for nothing")
@torch.no_grad()
def generate_with_cache_3(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    result = torch.zeros_like(tokens[:, :0])
    real = tokens != PAD
    scores, past = model(tokens, None, real)
    while result.shape[1] < max_length and not (result == EOS).any(dim=1).all():
        chosen = choose(scores[:, -1])
        chosen[(result == EOS).any(dim=1)] = PAD
        result = torch.cat([result, chosen[:, None]], dim=1)
        real = torch.cat([real, real.new_ones(len(real), 1)], dim=1)
        scores, past = model(chosen[:, None], past, real)
    return result
