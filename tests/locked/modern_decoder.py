"""Answers to lesson 20 that were written without a look at its checks."""

import math

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


# --- swiglu_units ----------------------------------------------------------------------------


@wrong("swiglu_units", cause="a division by / makes it a float", kind="type")
def swiglu_units_5(d_ff, multiple=1):
    demand.counts(d_ff=d_ff, multiple=multiple)
    return -(-(2 * d_ff / 3) // multiple) * multiple


@wrong("swiglu_units", cause="takes d_ff for d_model: 2/3 of four times as much", kind="value")
def swiglu_units_7(d_ff, multiple=1):
    demand.counts(d_ff=d_ff, multiple=multiple)
    hidden = 4 * d_ff
    return -(-2 * hidden // (3 * multiple)) * multiple


@right("swiglu_units", how="math.ceil of a quotient, as the hint says")
def swiglu_units_8(d_ff, multiple=1):
    demand.counts(d_ff=d_ff, multiple=multiple)
    return math.ceil(2 * d_ff / 3 / multiple) * multiple


@right("swiglu_units", how="adds multiples until there are enough")
def swiglu_units_9(d_ff, multiple=1):
    demand.counts(d_ff=d_ff, multiple=multiple)
    units = multiple
    while 3 * units < 2 * d_ff:
        units += multiple
    return units


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


# --- ModernAttention -------------------------------------------------------------------------


def _places(n, x):
    wide = torch.promote_types(x.dtype, torch.float32)
    return torch.arange(n, dtype=wide, device=x.device)


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

    def _mask(self, T, n, real, x):
        """Right: every answer that uses it is wrong in something else."""
        i = torch.arange(n, device=x.device)
        before = i[-T:, None] - i
        mask = before >= 0
        if self.window is not None:
            mask = mask & (before < self.window)
        return mask if real is None else mask & real[:, None, None, -n:]

    def _kept(self, k, v):
        if self.window is None:
            return k, v
        return k[:, :, -self.window :], v[:, :, -self.window :]


@wrong("ModernAttention", cause="stage 1: query heads 0 and 2 share a head, not neighbours")
class ModernAttention_1(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places, times = _places(n, x), self.n_heads // self.n_kv_heads
        keys = rotary(k, places).repeat(1, times, 1, 1)
        values = v.repeat(1, times, 1, 1)
        context = masked_attention(rotary(q, places[-T:]), keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="stage 1: the values are turned, too", kind="value")
class ModernAttention_2(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        T, n = x.shape[1], k.shape[2]
        places = _places(n, x)
        q = rotary(q, places[n - T :])
        keys, values = (share_heads(rotary(part, places), self.n_heads) for part in (k, v))
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="stage 1: turns whole vectors, before they are cut into heads")
class ModernAttention_3(_Attention):
    def forward(self, x, past=None, real=None):
        P, T = 0 if past is None else past[0].shape[2], x.shape[1]
        places = _places(P + T, x)
        q = self.norm_q(split_heads(rotary(self.W_q(x), places[P:]), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        turned = split_heads(rotary(merge_heads(k), places), self.n_kv_heads)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, P + T, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="keeps keys and values as they are once shared", kind="shape")
class ModernAttention_4(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        k, v = share_heads(k, self.n_heads), share_heads(v, self.n_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        context = masked_attention(q, turned, v, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="stage 2: the queries are turned first, then normed", kind="value")
class ModernAttention_5(_Attention):
    def forward(self, x, past=None, real=None):
        q = split_heads(self.W_q(x), self.n_heads)
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        q, turned = self.norm_q(rotary(q, places[-T:])), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="stage 2: norm_q for the keys as well", kind="value")
class ModernAttention_6(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_q(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        keys = share_heads(rotary(k, places), self.n_heads)
        values = share_heads(v, self.n_heads)
        mask = self._mask(T, n, real, x)
        context = masked_attention(rotary(q, places[-T:]), keys, values, mask)
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="keeps keys in front of their norm, and norms all at every call")
class ModernAttention_7(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = split_heads(self.W_k(x), self.n_kv_heads)
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(self.norm_k(k), places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="stage 3: sees window positions before itself, one too many")
class ModernAttention_8(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        distance = places[-T:, None] - places
        mask = distance >= 0
        if self.window is not None:
            mask &= distance <= self.window
        if real is not None:
            mask = mask & real[:, None, None, -n:]
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        return self.W_o(merge_heads(masked_attention(q, keys, values, mask))), self._kept(k, v)


@wrong("ModernAttention", cause="keeps window - 1 positions, all that one more needs", kind="shape")
class ModernAttention_9(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        first = 0 if self.window is None else max(0, n - self.window + 1)
        return self.W_o(merge_heads(context)), (k[:, :, first:], v[:, :, first:])


@wrong("ModernAttention", cause="keeps all positions, whatever the window", kind="shape")
class ModernAttention_10(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), (k, v)


@wrong("ModernAttention", cause="stage 4: turns the new keys alone and keeps them turned")
class ModernAttention_11(_Attention):
    def forward(self, x, past=None, real=None):
        T, P = x.shape[1], 0 if past is None else past[0].shape[2]
        places = _places(P + T, x)[P:]
        q = rotary(self.norm_q(split_heads(self.W_q(x), self.n_heads)), places)
        k = rotary(self.norm_k(split_heads(self.W_k(x), self.n_kv_heads)), places)
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        keys, values = share_heads(k, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, P + T, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="no new name: the keys that it returns are turned", kind="value")
class ModernAttention_12(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        q, k = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(k, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="stage 4: with a past, queries are turned as if they came first")
class ModernAttention_13(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        q, turned = rotary(q, _places(T, x)), rotary(k, _places(n, x))
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="stage 4: a triangle from the corner: new ones see the oldest only")
class ModernAttention_14(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        mask = torch.ones(T, n, dtype=torch.bool, device=x.device).tril()
        if self.window is not None:
            mask = mask.triu(1 - self.window)
        if real is not None:
            mask = mask & real[:, None, None, -n:]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        return self.W_o(merge_heads(masked_attention(q, keys, values, mask))), self._kept(k, v)


@wrong("ModernAttention", cause="stage 4: returns the new keys and values without the past's")
class ModernAttention_15(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        keys, values = k, v
        if past is not None:
            keys, values = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], keys.shape[2]
        places = _places(n, x)
        q, keys = rotary(q, places[-T:]), rotary(keys, places)
        keys, values = share_heads(keys, self.n_heads), share_heads(values, self.n_heads)
        context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@wrong("ModernAttention", cause="window, past, padding together: the oldest columns of real")
class ModernAttention_16(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        mask = self._mask(T, n, None, x)
        if real is not None:
            mask = mask & real[:, None, None, :n]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        return self.W_o(merge_heads(masked_attention(q, keys, values, mask))), self._kept(k, v)


@wrong("ModernAttention", cause="stage 4: padding in the past is seen, only new padding is not")
class ModernAttention_17(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        mask = self._mask(T, n, None, x)
        if real is not None:
            new = F.pad(real[:, -T:], (n - T, 0), value=True)
            mask = mask & new[:, None, None]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        return self.W_o(merge_heads(masked_attention(q, keys, values, mask))), self._kept(k, v)


@wrong("ModernAttention", cause="stage 4: the axis of real is that of the queries: keys are seen")
class ModernAttention_18(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        mask = self._mask(T, n, None, x)
        if real is not None:
            mask = mask & real[:, None, -T:, None]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        return self.W_o(merge_heads(masked_attention(q, keys, values, mask))), self._kept(k, v)


@wrong("ModernAttention", cause="stage 4: is_causal, which lays the first query on the first key")
class ModernAttention_19(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]
        places = _places(n, x)
        q, turned = rotary(q, places[-T:]), rotary(k, places)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        if self.window is None and real is None:
            context = F.scaled_dot_product_attention(q, keys, values, is_causal=True)
        else:
            context = masked_attention(q, keys, values, self._mask(T, n, real, x))
        return self.W_o(merge_heads(context)), self._kept(k, v)


@right("ModernAttention", how="groups as an axis, by einsum; pairs are turned as complex numbers")
class ModernAttention_20(_Attention):
    def _turn(self, x, places):
        d = x.shape[-1]
        speeds = 10000 ** (-_places(d // 2, x) * 2 / d)
        angles = torch.outer(places, speeds)
        pairs = x.to(places.dtype).unflatten(-1, (-1, 2)).contiguous()
        turned = torch.view_as_complex(pairs) * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)

    def forward(self, x, past=None, real=None):
        B, T, _ = x.shape
        groups = self.n_kv_heads
        q = self.norm_q(self.W_q(x).view(B, T, groups, self.n_heads // groups, -1))
        k = self.norm_k(self.W_k(x).view(B, T, groups, -1)).transpose(1, 2)
        v = self.W_v(x).view(B, T, groups, -1).transpose(1, 2)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=-2), torch.cat([past[1], v], dim=-2)
        n = k.shape[-2]
        places = _places(n, x)
        q = self._turn(q.permute(0, 2, 3, 1, 4), places[n - T :])
        scores = torch.einsum("bgrtd,bgsd->bgrts", q, self._turn(k, places)) / q.shape[-1] ** 0.5
        hidden = ~self._mask(T, n, real, x)
        if real is not None:
            hidden = hidden.unsqueeze(1)
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(dim=-1)
        context = torch.einsum("bgrts,bgsd->btgrd", weights.masked_fill(hidden, 0.0), v)
        return self.W_o(context.flatten(2)), self._kept(k, v)


@right("ModernAttention", how="head by head; of the past only what the window can still see")
class ModernAttention_21(_Attention):
    def forward(self, x, past=None, real=None):
        keys, values = self.W_k(x).split(self.W_k.out_features // self.n_kv_heads, dim=-1), None
        keys = torch.stack([self.norm_k(key) for key in keys], dim=1)
        values = torch.stack(self.W_v(x).chunk(self.n_kv_heads, dim=-1), dim=1)
        if past is not None:
            keys = torch.cat((past[0], keys), dim=2)
            values = torch.cat((past[1], values), dim=2)
        T, n, outputs = x.shape[1], keys.shape[2], []
        mask = torch.ones(T, n, dtype=torch.bool, device=x.device).tril(n - T)
        if self.window is not None:
            mask = mask.triu(n - T - self.window + 1)
        if real is not None:
            mask = mask & real[:, None, real.shape[1] - n :]
        places = _places(n, x) - (n - 1)
        for head, query in enumerate(self.W_q(x).chunk(self.n_heads, dim=-1)):
            shared = head * self.n_kv_heads // self.n_heads
            query = rotary(self.norm_q(query), places[n - T :])
            key = rotary(keys[:, shared], places)
            outputs.append(masked_attention(query, key, values[:, shared], mask))
        first = max(n - (self.window or n), 0)
        return self.W_o(torch.cat(outputs, dim=-1)), (keys[:, :, first:], values[:, :, first:])


@right(
    "ModernAttention", how="PyTorch's attention, in which each position, padding too, sees itself"
)
class ModernAttention_22(_Attention):
    def forward(self, x, past=None, real=None):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        P = 0
        if past is not None:
            P = past[0].size(2)
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        query, key = (
            torch.arange(P, k.size(2), device=x.device),
            torch.arange(k.size(2), device=x.device),
        )
        mask = query.unsqueeze(1) >= key
        if self.window is not None:
            mask = mask & (key > query.unsqueeze(1) - self.window)
        mask = mask.expand(len(x), 1, -1, -1)
        if real is not None:
            itself = query.unsqueeze(1) == key
            mask = mask & real[:, -k.size(2) :].unsqueeze(1).unsqueeze(2) | itself
        places = _places(k.size(2), x)
        context = F.scaled_dot_product_attention(
            rotary(q, places[P:]),
            share_heads(rotary(k, places), self.n_heads),
            share_heads(v, self.n_heads),
            attn_mask=mask,
        )
        return self.W_o(merge_heads(context)), self._kept(k, v)


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


# --- break_pair_up ---------------------------------------------------------------------------


@wrong("break_pair_up", cause="6 rows make no 2 heads of an even number of features", kind="error")
def break_pair_up_3():
    return torch.arange(12.0).view(6, 2), 2


@wrong("break_pair_up", cause="the weight without the number of heads", kind="type")
def break_pair_up_5():
    return torch.arange(8.0).view(8, 1)


@right("break_pair_up", how="three heads, and columns that all tell the rows apart")
def break_pair_up_6():
    return torch.linspace(-1, 1, 60).reshape(12, 5), 3


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


# --- ModernDecoder ---------------------------------------------------------------------------


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


@wrong("ModernDecoder", cause="each layer gets the pair of the layer before it as its past")
class ModernDecoder_3(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x = self.embedding(tokens)
        pair = None if past is None else past[0]
        kept = []
        for layer in self.layers:
            x, pair = layer(x, pair, real)
            kept.append(pair)
        return self.norm(x) @ self.embedding.weight.T, kept


@wrong("ModernDecoder", cause="stage 2: the list begins with the pair of the last layer")
class ModernDecoder_5(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x = self.embedding(tokens)
        kept = []
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[number], real)
            kept.insert(0, pair)
        return self.norm(x) @ self.embedding.weight.T, kept


@right("ModernDecoder", how="layers and their pasts side by side, and the scores by einsum")
class ModernDecoder_9(_Decoder):
    def forward(self, tokens, past=None, real=None):
        table, new = self.embedding.weight, []
        x = table[tokens]
        for layer, pair in zip(self.layers, past or [None] * len(self.layers), strict=True):
            x, pair = layer(x, past=pair, real=real)
            new += [pair]
        return torch.einsum("btd,vd->btv", self.norm(x), table), new


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


# --- cache_bytes -----------------------------------------------------------------------------


def _sizes(T, n_layers, n_kv_heads, d_head, window, bytes_per_number):
    demand.counts(0, T=T)
    demand.counts(n_layers=n_layers, n_kv_heads=n_kv_heads, d_head=d_head)
    demand.counts(window=1 if window is None else window, bytes_per_number=bytes_per_number)


@wrong("cache_bytes", cause="counts bits and divides by 8: a float", kind="type")
def cache_bytes_5(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    _sizes(T, n_layers, n_kv_heads, d_head, window, bytes_per_number)
    kept = T if window is None else min(T, window)
    bits = 2 * n_layers * n_kv_heads * d_head * kept * bytes_per_number * 8
    return bits / 8


@wrong("cache_bytes", cause="only the keys are cut to the window, the values are not", kind="value")
def cache_bytes_6(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    _sizes(T, n_layers, n_kv_heads, d_head, window, bytes_per_number)
    keys = n_kv_heads * d_head * (T if window is None else min(T, window))
    values = n_kv_heads * d_head * T
    return n_layers * (keys + values) * bytes_per_number


@right("cache_bytes", how="adds up, layer by layer and position by position")
def cache_bytes_7(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    _sizes(T, n_layers, n_kv_heads, d_head, window, bytes_per_number)
    positions = range(T)
    if window is not None:
        positions = positions[-window:]
    one = math.prod((2, n_kv_heads, d_head, bytes_per_number))
    return sum(len(positions) * one for _ in range(n_layers))


# --- newton_schulz ---------------------------------------------------------------------------


@wrong("newton_schulz", cause="X is multiplied by a first, and then used for the other terms")
def newton_schulz_5(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.norm() + 1e-7)
    for _ in range(steps):
        A = X @ X.T
        X = a * X
        X = X + b * A @ X + c * A @ A @ X
    return X


@wrong("newton_schulz", cause="A is computed once, before the steps", kind="value")
def newton_schulz_6(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.norm() + 1e-7)
    A = X @ X.T
    B = b * A + c * A @ A
    for _ in range(steps):
        X = a * X + B @ X
    return X


@wrong("newton_schulz", cause="a tall matrix is laid on its side and comes back so", kind="shape")
def newton_schulz_7(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.norm() + 1e-7)
    if X.shape[0] > X.shape[1]:
        X = X.T
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X


@right("newton_schulz", how="a tall matrix is laid on its side, as published, and set up again")
def newton_schulz_9(matrix, steps=5):
    demand.counts(0, steps=steps)
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.norm() + 1e-7)
    tall = X.size(0) > X.size(1)
    X = X.mT if tall else X
    for _ in range(steps):
        A = X @ X.mT
        X = a * X + (b * A + c * (A @ A)) @ X
    return X.mT if tall else X


@right("newton_schulz", how="from the right: X times a polynomial of XᵀX; the norm by a sum")
def newton_schulz_10(matrix, steps=5):
    demand.counts(0, steps=steps)
    X = matrix / (torch.sqrt(torch.sum(matrix * matrix)) + 1e-7)
    one = torch.eye(X.shape[1], dtype=X.dtype, device=X.device)
    for _ in range(steps):
        A = torch.einsum("mi,mj->ij", X, X)
        power, total = one, torch.zeros_like(one)
        for factor in NEWTON_SCHULZ:
            total = total + factor * power
            power = power @ A
        X = X @ total
    return X


# --- muon_step -------------------------------------------------------------------------------


def _rates(learning_rate, momentum, weight_decay):
    demand.within(0, learning_rate=learning_rate, weight_decay=weight_decay)
    demand.share(momentum=momentum)


@wrong("muon_step", cause="m is a mean: the gradient counts 1 - momentum, as in Adam", kind="value")
def muon_step_2(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    _rates(learning_rate, momentum, weight_decay)
    m = momentum * m + (1 - momentum) * gradient
    update = newton_schulz((1 - momentum) * gradient + momentum * m)
    scale = math.sqrt(max(1, parameter.shape[0] / parameter.shape[1]))
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * scale * update, m


@wrong("muon_step", cause="shrinks last, so that the update shrinks, too", kind="value")
def muon_step_7(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    _rates(learning_rate, momentum, weight_decay)
    m = momentum * m + gradient
    update = newton_schulz(gradient + momentum * m)
    scale = max(1, parameter.shape[0] / parameter.shape[1]) ** 0.5
    parameter = parameter - learning_rate * scale * update
    return parameter * (1 - learning_rate * weight_decay), m


@wrong("muon_step", cause="writes into the parameter and the sum that were given", kind="state")
def muon_step_8(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    _rates(learning_rate, momentum, weight_decay)
    m.mul_(momentum).add_(gradient)
    update = newton_schulz(gradient + momentum * m)
    scale = max(1, parameter.size(0) / parameter.size(1)) ** 0.5
    parameter.mul_(1 - learning_rate * weight_decay)
    parameter.sub_(update, alpha=learning_rate * scale)
    return parameter, m


@right("muon_step", how="lerp and addcmul's relatives; the scale by an if")
def muon_step_9(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    _rates(learning_rate, momentum, weight_decay)
    total = torch.add(gradient, m, alpha=momentum)
    step = newton_schulz(torch.add(gradient, total, alpha=momentum))
    rows, columns = parameter.shape
    if rows > columns:
        step = step * math.sqrt(rows / columns)
    shrunk = torch.lerp(parameter, torch.zeros_like(parameter), learning_rate * weight_decay)
    return torch.sub(shrunk, step, alpha=learning_rate), total
