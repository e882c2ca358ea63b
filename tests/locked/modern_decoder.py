"""Answers to lesson 20 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.modern_decoder import (
    ModernAttention,
    SwiGLU,
)
from attention.provided import demand
from attention.provided.data.tokens import EOS, PAD
from tests.locked import right, wrong

# --- rms_norm --------------------------------------------------------------------------------


@wrong("rms_norm", cause="PyTorch's function without eps, which then takes another", kind="extreme")
def rms_norm_5(x, weight, eps=1e-6):
    return F.rms_norm(x, (x.shape[-1],), weight)


@wrong("rms_norm", cause="the mean runs along axis 1, which is the last only of a matrix")
def rms_norm_6(x, weight, eps=1e-6):
    mean_square = x.square().mean(dim=1, keepdim=True)
    return x * torch.rsqrt(mean_square + eps) * weight


@wrong("rms_norm", cause="1e-6 whatever eps was given", kind="value")
def rms_norm_7(x, weight, eps=1e-6):
    return x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() * weight


@right("rms_norm", how="the sum of squares by einsum, and the root of d beside it")
def rms_norm_9(x, weight, eps=1e-6):
    d = x.shape[-1]
    squares = torch.einsum("...i,...i->...", x, x).unsqueeze(-1)
    return weight * (x * math.sqrt(d) / (squares + d * eps).sqrt())


@right("rms_norm", how="PyTorch's function")
def rms_norm_10(x, weight, eps=1e-6):
    return F.rms_norm(x, weight.shape, weight, eps)


# --- SwiGLU ----------------------------------------------------------------------------------


class _SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        demand.counts(d_model=d_model, d_ff=d_ff)
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)


@wrong("SwiGLU", cause="multiplies the silu by what W_gate gives once more", kind="value")
class SwiGLU_5(_SwiGLU):
    def forward(self, x):
        z = self.W_gate(x)
        return self.W_down(z * F.silu(z) * self.W_up(x))


@wrong("SwiGLU", cause="one matrix for gate and up together, so the names differ", kind="state")
class SwiGLU_6(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        demand.counts(d_model=d_model, d_ff=d_ff)
        self.W_gate_up = nn.Linear(d_model, 2 * d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        gate, up = self.W_gate_up(x).chunk(2, dim=-1)
        return self.W_down(F.silu(gate) * up)


@right("SwiGLU", how="one product for gate and up, and the silu by hand")
class SwiGLU_8(_SwiGLU):
    def forward(self, x):
        both = torch.cat([self.W_gate.weight, self.W_up.weight])
        gate, up = (x @ both.T).tensor_split(2, dim=-1)
        return (gate * torch.sigmoid(gate) * up) @ self.W_down.weight.T


# --- pair_up ---------------------------------------------------------------------------------


def _cut(weight, n_heads):
    demand.counts(n_heads=n_heads)
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows are no {n_heads} heads of an even number of features")


@wrong("pair_up", cause="exchanges the heads and the halves", kind="value")
def pair_up_4(weight, n_heads):
    _cut(weight, n_heads)
    halves = weight.unflatten(0, (n_heads, 2, -1))
    return halves.transpose(0, 1).flatten(0, 2)


@wrong("pair_up", cause="every head gets the rows of head 0", kind="value")
def pair_up_5(weight, n_heads):
    _cut(weight, n_heads)
    d_head = len(weight) // n_heads
    rows = []
    for _ in range(n_heads):
        for i in range(d_head // 2):
            rows += [weight[i], weight[i + d_head // 2]]
    return torch.stack(rows)


@wrong("pair_up", cause="writes into the weight while it reads from it", kind="state")
def pair_up_6(weight, n_heads):
    _cut(weight, n_heads)
    heads = weight.view(n_heads, -1, weight.shape[1])
    first, second = heads.chunk(2, dim=1)
    heads[:, 0::2] = first.clone()
    heads[:, 1::2] = second
    return heads.flatten(0, 1)


@right("pair_up", how="an index for all rows, from a small table of numbers")
def pair_up_8(weight, n_heads):
    _cut(weight, n_heads)
    order = torch.arange(len(weight), device=weight.device).view(n_heads, 2, -1).mT
    return weight.index_select(0, order.reshape(-1))


@right("pair_up", how="row by row")
def pair_up_9(weight, n_heads):
    _cut(weight, n_heads)
    d_head, rows = len(weight) // n_heads, []
    for start in range(0, len(weight), d_head):
        for i in range(start, start + d_head // 2):
            rows.append(weight[i])
            rows.append(weight[i + d_head // 2])
    return torch.stack(rows)


# --- ModernDecoderLayer ----------------------------------------------------------------------


class _Layer(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, qk_norm=False, window=None):
        super().__init__()
        self.attention = ModernAttention(d_model, n_heads, n_kv_heads, qk_norm, window)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm_1 = nn.RMSNorm(d_model, eps=1e-6)
        self.norm_2 = nn.RMSNorm(d_model, eps=1e-6)


@right("ModernDecoderLayer", how="both updates by name, and past and real by theirs")
class ModernDecoderLayer_9(_Layer):
    def forward(self, x, past=None, real=None):
        result = self.attention(self.norm_1(x), past=past, real=real)
        middle = torch.add(x, result[0])
        return torch.add(middle, self.feed_forward(self.norm_2(middle))), result[1]


# --- generate_with_cache ---------------------------------------------------------------------


@wrong("generate_with_cache", cause="what is written counts as padding where it is PAD")
@torch.no_grad()
def generate_with_cache_4(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    real, past, read, written = tokens != PAD, None, tokens, []
    ended = torch.zeros_like(tokens[:, 0], dtype=torch.bool)
    while len(written) < max_length and not ended.all():
        scores, past = model(read, past, real)
        chosen = choose(scores[:, -1]).masked_fill(ended, PAD)
        written.append(chosen)
        ended = ended | (chosen == EOS)
        read = chosen[:, None]
        real = torch.cat([real, read != PAD], dim=1)
    return torch.stack(written, dim=1) if written else tokens[:, :0]


@wrong("generate_with_cache", cause="stacks nothing if max_length is 0", kind="crash")
@torch.no_grad()
def generate_with_cache_6(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    real, past, read, written = tokens != PAD, None, tokens, []
    ended = torch.zeros_like(tokens[:, 0], dtype=torch.bool)
    for _ in range(max_length):
        scores, past = model(read, past, real)
        chosen = choose(scores[:, -1]).masked_fill(ended, PAD)
        written.append(chosen)
        ended = ended | (chosen == EOS)
        if ended.all():
            break
        read = chosen[:, None]
        real = torch.cat([real, torch.ones_like(read, dtype=torch.bool)], dim=1)
    return torch.stack(written, dim=1)


@wrong("generate_with_cache", cause="a row that writes PAD counts as ended", kind="value")
@torch.no_grad()
def generate_with_cache_7(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    real, past, read, written = tokens != PAD, None, tokens, []
    ended = torch.zeros_like(tokens[:, 0], dtype=torch.bool)
    while len(written) < max_length and not ended.all():
        scores, past = model(read, past, real)
        chosen = choose(scores[:, -1]).masked_fill(ended, PAD)
        written.append(chosen)
        ended = (chosen == EOS) | (chosen == PAD)
        read = chosen[:, None]
        real = torch.cat([real, torch.ones_like(read, dtype=torch.bool)], dim=1)
    return torch.stack(written, dim=1) if written else tokens[:, :0]


@right(
    "generate_with_cache", how="all of real at once, a table of PAD, cut where the last row ends"
)
def generate_with_cache_10(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    B, T = tokens.shape
    real = F.pad(tokens != PAD, (0, max_length), value=True)
    result = torch.full((B, max_length), PAD, dtype=tokens.dtype, device=tokens.device)
    past, read, steps = None, tokens, 0
    with torch.no_grad():
        while steps < max_length and not (B and (result == EOS).any(dim=1).all()):
            scores, past = model(read, past, real[:, : T + steps])
            going = ~(result == EOS).any(dim=1)
            result[going, steps] = choose(scores[:, -1, :])[going].to(result.dtype)
            read = result[:, steps : steps + 1]
            steps += 1
    return result[:, :steps]


@right("generate_with_cache", how="grows a tensor of what is new; torch.where for PAD")
@torch.no_grad()
def generate_with_cache_11(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    real = tokens.ne(PAD)
    new, past = tokens[:, :0], None
    alive = torch.ones(tokens.shape[0], dtype=torch.bool, device=tokens.device)
    for _ in range(max_length):
        scores, past = model(tokens, past, real)
        tokens = torch.where(alive, choose(scores.select(1, -1)), PAD).unsqueeze(1)
        new = torch.cat((new, tokens), dim=1)
        alive = alive & tokens.squeeze(1).ne(EOS)
        if not bool(alive.any()):
            break
        real = torch.cat((real, real.new_ones(real.shape[0], 1)), dim=1)
    return new
