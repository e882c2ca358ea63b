"""Wrong and right answers to the exercises of lesson 20."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.modern_decoder import (
    ModernAttention,
    ModernDecoder,
    ModernDecoderLayer,
    SwiGLU,
)
from attention.multi_head_attention import merge_heads, share_heads, split_heads
from attention.provided import demand
from attention.provided.data.tokens import EOS, PAD
from attention.tokens_and_positions import rotary
from autograder.checking.toolbox.registry import alternative, careless


@alternative("rms_norm")
def asks_pytorch(x, weight, eps=1e-6):
    return F.rms_norm(x, weight.shape, weight, eps)


@alternative("rms_norm")
def adds_up_features(x, weight, eps=1e-6):
    total = sum(x[..., i] ** 2 for i in range(x.shape[-1]))
    root = torch.sqrt(total / x.shape[-1] + eps)
    return x / root[..., None] * weight


@alternative("rms_norm")
def takes_a_norm(x, weight, eps=1e-6):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return weight * x * (length**2 / x.size(-1) + eps) ** -0.5


@careless("rms_norm")
def takes_each_vector_alone(x, weight, eps=1e-6):
    rows = [row / math.sqrt(row.square().mean().item() + eps) for row in x.reshape(-1, len(weight))]
    return torch.stack(rows).view(x.shape) * weight


@careless("rms_norm")
def squares_on_the_cpu(x, weight, eps=1e-6):
    total = torch.zeros(*x.shape[:-1], 1)
    total = total + (x * x).mean(dim=-1, keepdim=True)
    return x / (total + eps).sqrt() * weight


@careless("rms_norm")
def writes_into_x(x, weight, eps=1e-6):
    x /= (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return x * weight


@alternative("SwiGLU")
class MultipliesByTheSigmoid(SwiGLU):
    def forward(self, x):
        gate = self.W_gate(x)
        return self.W_down(gate * torch.sigmoid(gate) * self.W_up(x))


@alternative("SwiGLU")
class HasASiluOfItsOwn(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.activation = nn.SiLU()

    def forward(self, x):
        up = x @ self.W_up.weight.T
        return torch.matmul(up * self.activation(x @ self.W_gate.weight.T), self.W_down.weight.T)


@careless("SwiGLU")
class AddsUnitsOnTheCpu(SwiGLU):
    def forward(self, x):
        hidden = torch.zeros(*x.shape[:-1], self.W_up.out_features, dtype=x.dtype)
        hidden += F.silu(self.W_gate(x)) * self.W_up(x)
        return self.W_down(hidden)


@careless("SwiGLU")
class RaisesEToTheNumber(SwiGLU):
    def forward(self, x):
        z = self.W_gate(x)
        return self.W_down(z * torch.exp(z) / (1 + torch.exp(z)) * self.W_up(x))


class _Attention(ModernAttention):
    """The right answer in small methods, of which another one overrides what it does otherwise."""

    def project(self, x, past):
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))
        v = split_heads(self.W_v(x), self.n_kv_heads)
        if past is None:
            return q, k, v
        return q, torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)

    def positions(self, x, T, n):
        position = torch.arange(n, dtype=torch.float32, device=x.device)
        return position[n - T :], position

    def places(self, q, n):
        return torch.arange(n, device=q.device)

    def hide(self, mask, real, T, n):
        return mask if real is None else mask & real[:, None, None, -n:]

    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        place = self.places(q, n)
        before = place[n - T :, None] - place
        mask = before >= 0
        mask = mask if self.window is None else mask & (before < self.window)
        return self.hide(mask, real, T, n)

    def share(self, x):
        return share_heads(x, self.n_heads)

    def attend(self, q, k, v, mask):
        return masked_attention(q, k, v, mask)

    def forward(self, x, past=None, real=None):
        q, k, v = self.project(x, past)
        of_queries, of_keys = self.positions(x, q.shape[2], k.shape[2])
        q, turned = rotary(q, of_queries, self.base), rotary(k, of_keys, self.base)
        context = self.attend(q, self.share(turned), self.share(v), self.mask(q, k, real))
        kept = slice(-self.window if self.window else None, None)
        return self.W_o(merge_heads(context)), (k[:, :, kept], v[:, :, kept])


@alternative("ModernAttention")
class TakesTheFusedAttention(_Attention):
    def share(self, x):
        return x.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1)

    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@alternative("ModernAttention")
class ExpandsHeads(_Attention):
    def share(self, x):
        B, H_kv, n, d_head = x.shape
        groups = self.n_heads // H_kv
        return x[:, :, None].expand(B, H_kv, groups, n, d_head).reshape(B, -1, n, d_head)

    def attend(self, q, k, v, mask):
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[3] ** 0.5
        weights = scores.masked_fill(~mask, -1e9).softmax(-1)
        return torch.einsum("bhij,bhjd->bhid", weights, v)


@alternative("ModernAttention")
class CountsFromAnywhere(_Attention):
    def positions(self, x, T, n):
        position = torch.arange(7, 7 + n, dtype=torch.float64, device=x.device)
        return position[n - T :], position


@alternative("ModernAttention")
class HidesPaddingTwice(_Attention):
    def hide(self, mask, real, T, n):
        if real is None:
            return mask
        real = real[:, real.shape[1] - n :]
        return mask & real[:, None, None, :] & real[:, None, n - T :, None]


@alternative("ModernAttention")
class LetsPaddingSeeItself(_Attention):
    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        causal = torch.ones(T, n, dtype=torch.bool, device=q.device).tril(n - T)
        if self.window is not None:
            causal = causal.triu(n - T - self.window + 1)
        if real is None:
            return causal
        itself = torch.zeros_like(causal)
        itself[range(T), range(n - T, n)] = True
        return causal & real[:, None, None, -n:] | itself


@alternative("ModernAttention")
class GoesHeadByHead(_Attention):
    def forward(self, x, past=None, real=None):
        q, k, v = self.project(x, past)
        mask, group, heads = self.mask(q, k, real), self.n_heads // self.n_kv_heads, []
        of_queries, of_keys = self.positions(x, q.shape[2], k.shape[2])
        for h in range(self.n_heads):
            query = rotary(q[:, h], of_queries, self.base)
            key = rotary(k[:, h // group], of_keys, self.base)
            seen = mask if mask.dim() == 2 else mask[:, 0]
            heads.append(masked_attention(query, key, v[:, h // group], seen))
        output = self.W_o(torch.cat(heads, dim=-1))
        if self.window is not None and k.shape[2] > self.window:
            k, v = k[:, :, k.shape[2] - self.window :], v[:, :, v.shape[2] - self.window :]
        return output, (k, v)


@careless("ModernAttention")
class CountsPositionsOnTheCpu(_Attention):
    def positions(self, x, T, n):
        position = torch.arange(n, dtype=torch.float32)
        return position[n - T :], position


@careless("ModernAttention")
class CountsInTheDtypeOfX(_Attention):
    def positions(self, x, T, n):
        position = torch.arange(n, dtype=x.dtype, device=x.device)
        return position[n - T :], position


@careless("ModernAttention")
class MasksOnTheCpu(_Attention):
    def places(self, q, n):
        return torch.arange(n)


def _fits(weight, n_heads):
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows are no {n_heads} heads of an even number of features")


@alternative("pair_up")
def goes_row_by_row(weight, n_heads):
    _fits(weight, n_heads)
    d_head, rows = len(weight) // n_heads, []
    for first in range(0, len(weight), d_head):
        for i in range(first, first + d_head // 2):
            rows.extend([i, i + d_head // 2])
    return weight[rows]


@alternative("pair_up")
def writes_to_every_second_row(weight, n_heads):
    _fits(weight, n_heads)
    heads = []
    for head in weight.chunk(n_heads):
        first, second = head.chunk(2)
        paired = torch.empty_like(head)
        paired[0::2], paired[1::2] = first, second
        heads.append(paired)
    return torch.cat(heads)


@alternative("pair_up")
def stacks_the_halves(weight, n_heads):
    _fits(weight, n_heads)
    first, second = weight.reshape(n_heads, 2, -1, weight.shape[1]).unbind(1)
    return torch.stack([first, second], 2).reshape(weight.shape)


@careless("pair_up")
def gathers_on_the_cpu(weight, n_heads):
    _fits(weight, n_heads)
    paired = torch.empty(weight.shape, dtype=weight.dtype)
    heads = weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    paired[:] = heads
    return paired


@careless("pair_up")
def moves_rows_in_place(weight, n_heads):
    _fits(weight, n_heads)
    paired = weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    weight[:] = paired
    return weight


@careless("pair_up")
def makes_floats(weight, n_heads):
    _fits(weight, n_heads)
    paired = torch.zeros(weight.shape, device=weight.device)
    paired[:] = weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    return paired


@alternative("ModernDecoderLayer")
class TakesItApart(ModernDecoderLayer):
    def forward(self, x, past=None, real=None):
        result = self.attention(self.norm_1(x), past=past, real=real)
        middle = x + result[0]
        return [self.feed_forward(self.norm_2(middle)) + middle, result[1]]


@alternative("ModernDecoderLayer")
class AddsToACopy(ModernDecoderLayer):
    def forward(self, x, past=None, real=None):
        stream = x.clone()
        update, pair = self.attention(self.norm_1(stream), past, real)
        stream = stream + update
        stream = stream + self.feed_forward(self.norm_2(stream))
        return stream, pair


@careless("ModernDecoderLayer")
class DropsTheAxisOfOneText(ModernDecoderLayer):
    def forward(self, x, past=None, real=None):
        x, pair = super().forward(x, past, real)
        return (x.squeeze(0) if len(x) == 1 else x), pair


@careless("ModernDecoderLayer")
class AddsUpOnTheCpu(ModernDecoderLayer):
    def forward(self, x, past=None, real=None):
        stream = torch.zeros(x.shape, dtype=x.dtype)
        stream = stream + x
        update, pair = self.attention(self.norm_1(x), past, real)
        stream = stream + update
        return stream + self.feed_forward(self.norm_2(stream)), pair


@alternative("ModernDecoder")
class ZipsLayersAndPast(ModernDecoder):
    def forward(self, tokens, past=None, real=None):
        x, kept = F.embedding(tokens, self.embedding.weight), []
        for layer, pair in zip(self.layers, past or [None] * len(self.layers), strict=True):
            x, pair = layer(x, past=pair, real=real)
            kept += [pair]
        score = self.output or functools.partial(F.linear, weight=self.embedding.weight)
        return score(self.norm(x)), tuple(kept)


@alternative("ModernDecoder")
class ScoresWithEinsum(ModernDecoder):
    def forward(self, tokens, past=None, real=None):
        x, kept = self.embedding.weight[tokens], []
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[number], real)
            kept.append(pair)
        rows = self.embedding.weight if self.output is None else self.output.weight
        return torch.einsum("btd,vd->btv", self.norm(x), rows), kept


@careless("ModernDecoder")
class ScoresOnTheCpu(ModernDecoder):
    def forward(self, tokens, past=None, real=None):
        scores, kept = super().forward(tokens, past, real)
        return torch.zeros(scores.shape, dtype=scores.dtype).add_(scores), kept


@careless("ModernDecoder")
class DropsAxesOfOne(ModernDecoder):
    def forward(self, tokens, past=None, real=None):
        scores, kept = super().forward(tokens, past, real)
        return (scores.squeeze(1) if scores.shape[:2] == (1, 1) else scores), kept


@alternative("generate_with_cache")
@torch.no_grad()
def reads_the_prompt_token_by_token(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    real, past, P = tokens != PAD, None, tokens.shape[1]
    if max_length == 0:
        return tokens[:, :0]
    for t in range(P):
        scores, past = model(tokens[:, t : t + 1], past, real[:, : t + 1])
    ended = torch.zeros_like(tokens[:, 0]).bool()
    while True:
        token = torch.where(ended, PAD, choose(scores[:, -1]))
        tokens = torch.cat([tokens, token.unsqueeze(1)], dim=-1)
        ended = ended | token.eq(EOS)
        if tokens.shape[1] == P + max_length or bool(ended.all()):
            return tokens[:, P:]
        real = torch.cat([real, real.new_ones(len(real), 1)], dim=-1)
        scores, past = model(token.unsqueeze(1), past, real)


@alternative("generate_with_cache")
def fills_a_table(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    written = torch.full((len(tokens), max_length), PAD, device=tokens.device)
    going, read, past = set(range(len(tokens))), tokens, None
    real = tokens.ne(PAD)
    for t in range(max_length):
        scores, past = model(read, past=past, real=real)
        chosen = choose(scores[:, -1, :])
        for row in list(going):
            written[row, t] = chosen[row]
            if chosen[row].item() == EOS:
                going.remove(row)
        if not going:
            return written[:, : t + 1]
        read = written[:, t : t + 1]
        real = torch.cat([real, read >= 0], dim=1)
    return written


@torch.no_grad()
def _write(model, tokens, choose, max_length, more):
    """The right answer; ``more`` says of the new tokens which are real."""
    demand.counts(0, max_length=max_length)
    read, past, real, written = tokens, None, tokens != PAD, []
    ended = torch.zeros_like(tokens[:, 0]).bool()
    while len(written) < max_length and not ended.all():
        scores, past = model(read, past, real)
        written.append(choose(scores[:, -1]).masked_fill(ended, PAD))
        ended = ended | (written[-1] == EOS)
        read = written[-1][:, None]
        real = torch.cat([real, more(read)], 1)
    return torch.stack(written, 1) if written else tokens[:, :0]


@careless("generate_with_cache")
def takes_a_written_pad_for_padding(model, tokens, choose, max_length):
    return _write(model, tokens, choose, max_length, lambda read: read != PAD)


@careless("generate_with_cache")
def says_what_is_real_on_the_cpu(model, tokens, choose, max_length):
    return _write(
        model, tokens, choose, max_length, lambda read: torch.ones(read.shape, dtype=torch.bool)
    )


@careless("generate_with_cache")
def stacks_nothing(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    read, past, real, written = tokens, None, tokens != PAD, []
    ended = torch.zeros_like(tokens[:, 0]).bool()
    while len(written) < max_length and not ended.all():
        scores, past = model(read, past, real)
        chosen = choose(scores[:, -1]).masked_fill(ended, PAD)
        written.append(chosen)
        ended |= chosen == EOS
        read = chosen[:, None]
        real = torch.cat([real, torch.ones_like(read).bool()], 1)
    return torch.stack(written, 1)


EQUIVALENT = {
    "ModernDecoder: without `strict` in one call of `zip`: for layer, before in zip(self.layers, "
    "pasts): x, pair = layer(x, before, real) kept.append(pair)": (
        "there are as many pasts as layers"
    ),
    "ModernDecoder: with False once where True belongs: for layer, before in zip(self.layers, "
    "pasts, strict=False): x, pair = layer(x, before, real) kept.append(pair)": (
        "there are as many pasts as layers"
    ),
    "ModernAttention: with two arguments of one call of `promote_types` exchanged: wide = "
    "torch.promote_types(torch.float32, x.dtype)": "the wider of two is the same either way",
    "ModernAttention: without `dtype` in one call of `arange`: position = torch.arange(n, "
    "device=x.device)": "whole numbers make angles in float32, too",
    "generate_with_cache: with one whole number off by one: ended = torch.zeros_like(tokens[:, "
    "-1], dtype=torch.bool)": "one column is as good as another: only its form counts",
    "generate_with_cache: whose result is cut off from the gradient: return torch.stack(new, "
    "dim=1).detach() if new else tokens[:, :0].detach()": "ids have no gradient",
}
