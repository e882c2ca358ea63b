"""Answers to lesson 20 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.modern_decoder import (
    ModernAttention,
    ModernDecoderLayer,
    SwiGLU,
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


class _FullLayer(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, eps=1e-6, **options):
        super().__init__()
        self.attention = ModernAttention(d_model, n_heads, n_kv_heads, eps=eps, **options)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm_1 = nn.RMSNorm(d_model, eps=eps)
        self.norm_2 = nn.RMSNorm(d_model, eps=eps)


@wrong("ModernDecoderLayer", cause="x is overwritten by its norm, to which the update is added")
class ModernDecoderLayer_10(_FullLayer):
    def forward(self, x, past=None, real=None):
        x = self.norm_1(x)
        update, pair = self.attention(x, past, real)
        x = x + update
        return x + self.feed_forward(self.norm_2(x)), pair


@wrong("ModernDecoderLayer", cause="the feed-forward network reads x, not the sum")
class ModernDecoderLayer_11(_FullLayer):
    def forward(self, x, past=None, real=None):
        update, pair = self.attention(self.norm_1(x), past, real)
        hidden = self.feed_forward(self.norm_2(x))
        return x + update + hidden, pair


@wrong("ModernDecoderLayer", cause="the attention is not told what is real")
class ModernDecoderLayer_12(_FullLayer):
    def forward(self, x, past=None, real=None):
        update, pair = self.attention(self.norm_1(x), past)
        x = x + update
        return x + self.feed_forward(self.norm_2(x)), pair


@right("ModernDecoderLayer", how="adds into a copy of x")
class ModernDecoderLayer_13(_FullLayer):
    def forward(self, x, past=None, real=None):
        total = x.clone()
        update, pair = self.attention(self.norm_1(x), past, real)
        total += update
        return total + self.feed_forward(self.norm_2(total)), pair


@right("ModernDecoderLayer", how="a step that normalises first, for both parts")
class ModernDecoderLayer_14(_FullLayer):
    def forward(self, x, past=None, real=None):
        pairs = []

        def attend(normed):
            result = self.attention(normed, real=real, past=past)
            pairs.append(result[1])
            return result[0]

        for norm, part in ((self.norm_1, attend), (self.norm_2, self.feed_forward)):
            x = part(norm(x)) + x
        return x, pairs[0]


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


# --- ModernAttention -----------------------------------------------------------------------------


class _Attention(nn.Module):
    def __init__(
        self,
        d_model,
        n_heads,
        n_kv_heads,
        qk_norm=False,
        window=None,
        d_head=None,
        base=10_000.0,
        eps=1e-6,
    ):
        super().__init__()
        demand.counts(d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
        demand.counts(window=1 if window is None else window)
        if d_head is None and d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_kv_heads={n_kv_heads} does not divide n_heads={n_heads}")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.window, self.base = window, base
        d_head = d_head or d_model // n_heads
        self.norm_q = nn.RMSNorm(d_head, eps=eps) if qk_norm else nn.Identity()
        self.norm_k = nn.RMSNorm(d_head, eps=eps) if qk_norm else nn.Identity()
        self.W_q = nn.Linear(d_model, n_heads * d_head, bias=False)
        self.W_k = nn.Linear(d_model, n_kv_heads * d_head, bias=False)
        self.W_v = nn.Linear(d_model, n_kv_heads * d_head, bias=False)
        self.W_o = nn.Linear(n_heads * d_head, d_model, bias=False)

    def project(self, x, past):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        return q, k, v

    def mask(self, T, positions, real):
        distance = positions[-T:, None] - positions
        mask = distance >= 0
        if self.window is not None:
            mask = mask & (distance < self.window)
        if real is not None:
            mask = mask & real[:, None, None, -len(positions) :]
        return mask

    def left(self, k, v):
        if self.window is None:
            return k, v
        return k[:, :, -self.window :], v[:, :, -self.window :]


@wrong("ModernAttention", cause="copies of the heads in turn, so neighbours do not share one")
class ModernAttention_1(_Attention):
    def forward(self, x, past=None, real=None):
        T = x.shape[1]
        q, k, v = self.project(x, past)
        positions = torch.arange(k.shape[2], device=x.device, dtype=torch.float32)
        turned = rotary(k, positions, self.base)
        q = rotary(q, positions[-T:], self.base)
        times = self.n_heads // self.n_kv_heads
        keys, values = turned.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
        context = masked_attention(q, keys, values, self.mask(T, positions, real))
        return self.W_o(merge_heads(context)), self.left(k, v)


@wrong("ModernAttention", cause="norms queries and keys after they are turned, not before")
class ModernAttention_2(_Attention):
    def forward(self, x, past=None, real=None):
        T = x.shape[1]
        q = split_heads(self.W_q(x), self.n_heads)
        k = split_heads(self.W_k(x), self.n_kv_heads)
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        positions = torch.arange(k.shape[2], device=x.device, dtype=torch.float32)
        turned = self.norm_k(rotary(k, positions, self.base))
        q = self.norm_q(rotary(q, positions[-T:], self.base))
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self.mask(T, positions, real))
        return self.W_o(merge_heads(context)), self.left(k, v)


@wrong("ModernAttention", cause="a window of one position too many: itself and `window` before it")
class ModernAttention_3(_Attention):
    def mask(self, T, positions, real):
        distance = positions[-T:, None] - positions
        mask = distance >= 0
        if self.window is not None:
            mask = mask & (distance <= self.window)
        if real is not None:
            mask = mask & real[:, None, None, -len(positions) :]
        return mask

    def forward(self, x, past=None, real=None):
        T = x.shape[1]
        q, k, v = self.project(x, past)
        positions = torch.arange(k.shape[2], device=x.device, dtype=torch.float32)
        turned = rotary(k, positions, self.base)
        q = rotary(q, positions[-T:], self.base)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self.mask(T, positions, real))
        return self.W_o(merge_heads(context)), self.left(k, v)


@wrong("ModernAttention", cause="keeps the turned keys, which are turned again at the next call")
class ModernAttention_4(_Attention):
    def forward(self, x, past=None, real=None):
        T = x.shape[1]
        q, k, v = self.project(x, past)
        positions = torch.arange(k.shape[2], device=x.device, dtype=torch.float32)
        k = rotary(k, positions, self.base)
        q = rotary(q, positions[-T:], self.base)
        keys, values = share_heads(k, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, self.mask(T, positions, real))
        return self.W_o(merge_heads(context)), self.left(k, v)


@wrong(
    "ModernAttention",
    cause="takes all columns of real, also those of keys that a window has dropped",
    kind="crash",
)
class ModernAttention_5(_Attention):
    def forward(self, x, past=None, real=None):
        T = x.shape[1]
        q, k, v = self.project(x, past)
        positions = torch.arange(k.shape[2], device=x.device, dtype=torch.float32)
        mask = self.mask(T, positions, None)
        if real is not None:
            mask = mask & real[:, None, None]
        turned = rotary(k, positions, self.base)
        q = rotary(q, positions[-T:], self.base)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        context = masked_attention(q, keys, values, mask)
        return self.W_o(merge_heads(context)), self.left(k, v)


@right("ModernAttention", how="groups of queries in an axis of their own, and a softmax by hand")
class ModernAttention_6(_Attention):
    def forward(self, x, past=None, real=None):
        B, T, _ = x.shape
        G, d_head = self.n_kv_heads, self.W_q.out_features // self.n_heads
        q = self.norm_q(self.W_q(x).view(B, T, self.n_heads, d_head)).transpose(1, 2)
        k = self.norm_k(self.W_k(x).view(B, T, G, d_head)).transpose(1, 2)
        v = self.W_v(x).view(B, T, G, d_head).transpose(1, 2)
        if past is not None:
            k, v = (torch.cat(two, dim=2) for two in zip(past, (k, v), strict=True))
        S = k.shape[2]
        place = torch.arange(S, device=x.device)
        q = rotary(q, place[S - T :].double(), self.base).unflatten(1, (G, -1))
        turned = rotary(k, place.double(), self.base)
        scores = torch.einsum("bgntd,bgsd->bgnts", q, turned) * d_head**-0.5
        hidden = place > place[S - T :, None]
        if self.window is not None:
            hidden = hidden | (place <= place[S - T :, None] - self.window)
        if real is not None:
            hidden = hidden | ~real[:, real.shape[1] - S :].view(-1, 1, 1, 1, S)
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).masked_fill(hidden, 0.0)
        context = torch.einsum("bgnts,bgsd->btgnd", weights, v).reshape(B, T, -1)
        keep = S if self.window is None else min(S, self.window)
        return self.W_o(context), (k[:, :, S - keep :], v[:, :, S - keep :])


@right("ModernAttention", how="PyTorch's attention, head by head; padding may look at itself")
class ModernAttention_7(_Attention):
    def forward(self, x, past=None, real=None):
        T, group = x.shape[1], self.n_heads // self.n_kv_heads
        q, k, v = self.project(x, past)
        S = k.shape[2]
        mask = torch.ones(S, S, dtype=torch.bool, device=x.device).tril()
        if self.window is not None:
            mask = mask.triu(1 - self.window)
        mask = mask[-T:].expand(len(x), T, S)
        if real is not None:
            itself = torch.eye(S, dtype=torch.bool, device=x.device)[-T:]
            mask = (mask & real[:, None, -S:]) | itself
        positions = torch.arange(float(S), device=x.device)
        q, turned = rotary(q, positions[-T:], self.base), rotary(k, positions, self.base)
        heads = [
            F.scaled_dot_product_attention(q[:, h], turned[:, h // group], v[:, h // group], mask)
            for h in range(self.n_heads)
        ]
        pair = (k, v) if self.window is None else (k[:, :, -self.window :], v[:, :, -self.window :])
        return self.W_o(torch.cat(heads, dim=-1)), pair


# --- ModernDecoder -------------------------------------------------------------------------------


class _Decoder(nn.Module):
    def __init__(
        self,
        vocab_size,
        d_model,
        n_heads,
        n_kv_heads,
        d_ff,
        n_layers,
        tied=True,
        eps=1e-6,
        **options,
    ):
        super().__init__()
        demand.counts(vocab_size=vocab_size, d_model=d_model, n_layers=n_layers)
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.layers = nn.ModuleList(
            ModernDecoderLayer(d_model, n_heads, n_kv_heads, d_ff, eps, **options)
            for _ in range(n_layers)
        )
        self.norm = nn.RMSNorm(d_model, eps=eps)
        self.output = None if tied else nn.Linear(d_model, vocab_size, bias=False)

    def score(self, x):
        if self.output is not None:
            return self.output(x)
        return x @ self.embedding.weight.T


@wrong("ModernDecoder", cause="multiplies the rows of the table by √d_model, as lesson 08 does")
class ModernDecoder_1(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        pairs = []
        for i, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[i], real)
            pairs.append(pair)
        return self.score(self.norm(x)), pairs


@wrong("ModernDecoder", cause="scores by the table even where the model has an output of its own")
class ModernDecoder_2(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x, pairs = self.embedding(tokens), []
        for i, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[i], real)
            pairs.append(pair)
        return self.norm(x) @ self.embedding.weight.T, pairs


@wrong("ModernDecoder", cause="takes the pairs out of the caller's list", kind="state")
class ModernDecoder_3(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x, pairs = self.embedding(tokens), []
        for layer in self.layers:
            before = past.pop(0) if past else None
            x, pair = layer(x, before, real)
            pairs.append(pair)
        return self.score(self.norm(x)), pairs


@wrong("ModernDecoder", cause="tells only the first layer which tokens are real")
class ModernDecoder_4(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x, pairs = self.embedding(tokens), []
        for i, layer in enumerate(self.layers):
            before = None if past is None else past[i]
            x, pair = layer(x, before, real) if i == 0 else layer(x, before)
            pairs.append(pair)
        return self.score(self.norm(x)), pairs


@wrong("ModernDecoder", cause="leaves out the norm after the last layer")
class ModernDecoder_5(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x, pairs = self.embedding(tokens), []
        for i, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[i], real)
            pairs.append(pair)
        return self.score(x), pairs


@right("ModernDecoder", how="layers and pasts zipped, and F.linear with whichever matrix scores")
class ModernDecoder_6(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x, kept = F.embedding(tokens, self.embedding.weight), []
        if past is None:
            past = [None] * len(self.layers)
        for layer, pair in zip(self.layers, past, strict=True):
            x, new = layer(x, past=pair, real=real)
            kept.append(new)
        scorer = self.embedding if self.output is None else self.output
        return F.linear(self.norm(x), scorer.weight), kept


@right("ModernDecoder", how="one layer after the other by a function that calls itself, and einsum")
class ModernDecoder_7(_Decoder):
    def climb(self, x, past, real, at=0):
        if at == len(self.layers):
            return x, []
        x, pair = self.layers[at](x, past[at] if past is not None else None, real)
        x, others = self.climb(x, past, real, at + 1)
        return x, [pair, *others]

    def forward(self, tokens, past=None, real=None):
        x, pairs = self.climb(self.embedding.weight[tokens], past, real)
        x = self.norm(x)
        if self.output is None:
            return torch.einsum("btd,vd->btv", x, self.embedding.weight), pairs
        return self.output(x), pairs
