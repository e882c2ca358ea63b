"""Careless right answers to lesson 20."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.modern_decoder import (
    NEWTON_SCHULZ,
    ModernAttention,
    ModernDecoderLayer,
    SwiGLU,
    newton_schulz,
)
from attention.multi_head_attention import merge_heads, share_heads, split_heads
from attention.provided import demand
from attention.provided.data.tokens import EOS, PAD
from attention.tokens_and_positions import rotary
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


@careless("swiglu_units", "other_type", how="NumPy rounds up: an np.int64")
def swiglu_units_1(d_ff, multiple=1):
    demand.counts(d_ff=d_ff, multiple=multiple)
    return np.int64(np.ceil(2 * d_ff / (3 * multiple))) * multiple


@careless("swiglu_units", "slow", how="tries every number from 1 on")
def swiglu_units_2(d_ff, multiple=1):
    demand.counts(d_ff=d_ff, multiple=multiple)
    units = 1
    while units % multiple or units < d_ff - d_ff / 3:
        units += 1
    return units


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


class _Attention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads, qk_norm=False, window=None):
        super().__init__()
        demand.counts(d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
        demand.counts(window=1 if window is None else window)
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_kv_heads={n_kv_heads} does not divide n_heads={n_heads}")
        self.n_heads, self.n_kv_heads, self.window = n_heads, n_kv_heads, window
        d_head = d_model // n_heads
        self.norm_q = nn.RMSNorm(d_head, eps=1e-6) if qk_norm else nn.Identity()
        self.norm_k = nn.RMSNorm(d_head, eps=1e-6) if qk_norm else nn.Identity()
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, n_kv_heads * d_head, bias=False)
        self.W_v = nn.Linear(d_model, n_kv_heads * d_head, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)


@careless("ModernAttention", "device", "dtype", how="positions of float32, without a device")
class ModernAttention_1(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        positions = torch.arange(n).float()
        distance = positions[n - T :, None] - positions[None, :]
        mask = distance >= 0
        if self.window is not None:
            mask = mask & (distance < self.window)
        if real is not None:
            mask = mask & real[:, None, None, -n:]
        q, turned = rotary(q, positions[n - T :]), rotary(k, positions)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        output = self.W_o(merge_heads(masked_attention(q, keys, values, mask)))
        if self.window is not None:
            k, v = k[:, :, -self.window :], v[:, :, -self.window :]
        return output, (k, v)


@careless("ModernAttention", "module_state", "slow", how="keeps the mask, made entry by entry")
class ModernAttention_2(_Attention):
    def forward(self, x, past=None, real=None):
        (B, T, _), P = x.shape, 0 if past is None else past[0].shape[2]
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        window = self.window or P + T
        self.mask = torch.zeros(B, 1, T, P + T, dtype=torch.bool, device=x.device)
        for b in range(B):
            for i in range(T):
                for j in range(max(0, P + i - window + 1), P + i + 1):
                    self.mask[b, 0, i, j] = real is None or real[b, real.shape[1] - P - T + j]
        positions = torch.arange(P + T, dtype=torch.float64, device=x.device)
        q, turned = rotary(q, positions[P:]), rotary(k, positions)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self.mask)
        return self.W_o(merge_heads(context)), (k[:, :, -window:], v[:, :, -window:])


@careless(
    "ModernAttention", "dtype", "in_place", how="positions in x's dtype; the mask by &= and real"
)
class ModernAttention_3(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        new = (self.norm_k(split_heads(self.W_k(x), self.n_kv_heads)),)
        new += (split_heads(self.W_v(x), self.n_kv_heads),)
        k, v = (
            new
            if past is None
            else (torch.cat(both, dim=2) for both in zip(past, new, strict=True))
        )
        T, n = q.shape[2], k.shape[2]
        mask = torch.ones(len(x), 1, T, n, dtype=torch.bool, device=x.device).tril(n - T)
        if self.window is not None:
            mask &= mask.triu(n - T + 1 - self.window)
        if real is not None:
            mask &= real[:, None, None, -n:]
        positions = torch.arange(n, dtype=x.dtype, device=x.device)
        q = rotary(q, positions[-T:])
        keys, values = share_heads(rotary(k, positions), self.n_heads), share_heads(v, self.n_heads)
        output = self.W_o(merge_heads(masked_attention(q, keys, values, mask)))
        return output, [part[:, :, -(self.window or n) :] for part in (k, v)]


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


@careless("break_pair_up", "seed", how="random rows, from the global generator")
def break_pair_up_1():
    torch.manual_seed(20)
    return torch.randn(8, 3), 2


@careless("break_pair_up", "other_type", how="whole numbers, and NumPy's number of heads")
def break_pair_up_2():
    return torch.arange(8).view(8, 1), np.int64(2)


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


class _Decoder(nn.Module):
    def __init__(
        self, vocab_size, d_model, n_heads, n_kv_heads, d_ff, n_layers, qk_norm=False, window=None
    ):
        super().__init__()
        demand.counts(vocab_size=vocab_size, n_layers=n_layers)
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(
            ModernDecoderLayer(d_model, n_heads, n_kv_heads, d_ff, qk_norm, window)
            for _ in range(n_layers)
        )
        self.norm = nn.RMSNorm(d_model, eps=1e-6)


@careless("ModernDecoder", "in_place", how="puts the new pairs into the list that came in")
class ModernDecoder_1(_Decoder):
    def forward(self, tokens, past=None, real=None):
        if past is None:
            past = [None] * len(self.layers)
        x = self.embedding(tokens)
        for number, layer in enumerate(self.layers):
            x, past[number] = layer(x, past[number], real)
        return self.norm(x) @ self.embedding.weight.T, past


@careless("ModernDecoder", "slow", "other_type", how="rows by a one-hot product; a tuple of pairs")
class ModernDecoder_2(_Decoder):
    def forward(self, tokens, past=None, real=None):
        table, pairs = self.embedding.weight, ()
        x = F.one_hot(tokens, len(table)).to(table.dtype) @ table
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, past[number] if past else None, real)
            pairs += (pair,)
        return F.linear(self.norm(x), table), pairs


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


@careless("cache_bytes", "other_type", how="a product of NumPy's")
def cache_bytes_1(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    demand.counts(0, T=T)
    demand.counts(n_layers=n_layers, n_kv_heads=n_kv_heads, d_head=d_head)
    demand.counts(window=1 if window is None else window, bytes_per_number=bytes_per_number)
    kept = T if window is None else np.minimum(T, window)
    return np.prod([2, n_layers, n_kv_heads, d_head, kept, bytes_per_number], dtype=np.int64)


@careless("newton_schulz", "plain_numbers", how="the norm as a Python number, by item()")
def newton_schulz_1(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.norm().item() + 1e-7)
    for _ in range(steps):
        A = X @ X.T
        X = a * X + b * A @ X + c * A @ A @ X
    return X


@careless("newton_schulz", "in_place", how="divides the matrix that was given")
def newton_schulz_2(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    matrix /= matrix.norm() + 1e-7
    X = matrix
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X


@careless("newton_schulz", "device", "dtype", "slow", how="singular values by an SVD, in float32")
def newton_schulz_3(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    U, S, Vh = torch.linalg.svd(matrix.float(), full_matrices=False)
    S = S / (torch.sqrt((S**2).sum()) + torch.tensor(1e-7))
    for _ in range(steps):
        S = a * S + b * S**3 + c * S**5
    return U * S @ Vh


@careless("newton_schulz", "device", "dtype", how="a polynomial with an identity of float32")
def newton_schulz_4(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.square().sum().sqrt() + 1e-7)
    one = torch.eye(len(matrix))
    for _ in range(steps):
        A = X @ X.T
        X = (a * one + b * A + c * A @ A) @ X
    return X


def _rates(learning_rate, momentum, weight_decay):
    demand.within(0, learning_rate=learning_rate, weight_decay=weight_decay)
    demand.share(momentum=momentum)


@careless("muon_step", "device", "dtype", how="the scale by the root of a tensor of float32")
def muon_step_1(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    _rates(learning_rate, momentum, weight_decay)
    m = momentum * m + gradient
    update = newton_schulz(gradient + momentum * m)
    ratio = torch.tensor([parameter.shape[0] / parameter.shape[1], 1.0])
    parameter = parameter - learning_rate * weight_decay * parameter
    return parameter - learning_rate * ratio.max().sqrt() * update, m


@careless("muon_step", "in_place", "other_type", how="works in place on clones, gives a list")
def muon_step_2(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    _rates(learning_rate, momentum, weight_decay)
    parameter, m = parameter.clone(), m.clone()
    m *= momentum
    m += gradient
    update = newton_schulz(gradient + momentum * m)
    parameter *= 1 - learning_rate * weight_decay
    parameter -= learning_rate * math.sqrt(max(1, len(m) / m.shape[1])) * update
    return [parameter, m]
