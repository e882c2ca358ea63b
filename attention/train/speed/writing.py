"""A ModernDecoder writes a text faster: fewer and larger products, and a cache with room."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

GROWTH = 256  # positions by which a full cache grows


class QuickDecoder:
    """What `generate_with_cache` calls in place of a ModernDecoder that writes one text.

    Its scores are those of the model but for rounding. Queries, keys and values come of one
    product, and so do both halves of a SwiGLU; the angles of a position are computed once; keys are
    kept turned, in tensors with room for more; and only what follows the last token is scored.

    model  a ModernDecoder in float32 without a window; its weights move into larger tensors, of
           which they are parts from now on
    """

    def __init__(self, model: Any):
        self.model = model
        self.layers = [QuickLayer(layer) for layer in model.layers]
        self.table = joined(model.embedding if model.output is None else model.output)

    @torch.inference_mode()
    def __call__(
        self, tokens: Tensor, past: "Past | None" = None, real: Tensor | None = None
    ) -> tuple[Tensor, "Past"]:
        """Score what follows the last token: (1, T) -> (1, 1, vocab_size), and what is kept.

        past  what the last call gave; then T is 1
        real  is not looked at: one text has no padding
        """
        past = past or Past(self.model)
        turn = past.turn(tokens.shape[1])
        x = self.model.embedding(tokens[0])  # (T, d_model)
        for layer, keys, values in zip(self.layers, past.keys, past.values, strict=True):
            x = layer(x, turn, keys[:, : past.length], values[:, : past.length])
        return product(self.model.norm(x[-1:]), self.table)[None], past


class Past:
    """What was read: keys, turned, and values, (n_layers, H_kv, capacity, d_head) each."""

    def __init__(self, model: Any):
        one = model.layers[0].attention
        self.base, self.length = one.base, 0
        d_head = len(one.W_k.weight) // one.n_kv_heads
        shape = len(model.layers), one.n_kv_heads, 0, d_head
        self.keys = self.values = one.W_k.weight.new_empty(shape)

    def turn(self, n: int) -> Tensor:
        """Make room for n tokens; returns how far each turns, complex: (n, 1, d_head / 2)."""
        begin, self.length = self.length, self.length + n
        if (missing := self.length - self.keys.shape[2]) > 0:
            room = (0, 0, 0, missing + GROWTH)
            self.keys, self.values = F.pad(self.keys, room), F.pad(self.values, room)
        d_head, device = self.keys.shape[3], self.keys.device
        exponents = torch.arange(0, d_head, 2, device=device) / d_head
        position = torch.arange(begin, self.length, dtype=torch.float32, device=device)
        angles = position[:, None] / self.base**exponents  # (n, d_head / 2)
        return torch.polar(torch.ones_like(angles), angles)[:, None]


class QuickLayer:
    """A ModernDecoderLayer that reads one text."""

    def __init__(self, layer: Any):
        self.layer, attention, ff = layer, layer.attention, layer.feed_forward
        self.heads = joined(attention.W_q, attention.W_k, attention.W_v)
        self.outward = joined(attention.W_o)
        self.hidden, self.down = joined(ff.W_gate, ff.W_up), joined(ff.W_down)

    def __call__(self, x: Tensor, turn: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """(T, d_model) -> (T, d_model); keys and values (H_kv, P + T, d_head) are filled here."""
        layer, attention, T = self.layer, self.layer.attention, len(x)
        H, H_kv, d_head = attention.n_heads, attention.n_kv_heads, keys.shape[2]
        heads = product(layer.norm_1(x), self.heads).view(T, H + 2 * H_kv, d_head)
        q, k, v = heads.split([H, H_kv, H_kv], dim=1)  # (T, H, d_head) each
        q, k = turned(attention.norm_q(q), turn), turned(attention.norm_k(k), turn)
        keys[:, -T:], values[:, -T:] = k.transpose(0, 1), v.transpose(0, 1)
        q = q.view(T, H_kv, -1, d_head)  # a head of keys stands for a group of queries' heads
        if T == 1:  # the group is as several queries that may look at all keys
            context = F.scaled_dot_product_attention(q, keys[None], values[None]).view(1, -1)
        else:
            shape = (-1, H // H_kv, -1, -1)
            k, v = keys[:, None].expand(shape), values[:, None].expand(shape)
            context = F.scaled_dot_product_attention(q.permute(1, 2, 0, 3), k, v, is_causal=True)
            context = context.permute(2, 0, 1, 3).flatten(1)  # (T, H · d_head)
        x = x + product(context, self.outward)
        gate, up = product(layer.norm_2(x), self.hidden).chunk(2, dim=1)
        return x + product(F.silu(gate) * up, self.down)


def turned(x: Tensor, turn: Tensor) -> Tensor:
    """Turn pairs of features, (T, H, d_head), as lesson 08's `rotary` does."""
    pairs = torch.view_as_complex(x.unflatten(2, (-1, 2)))  # (T, H, d_head / 2)
    return torch.view_as_real(pairs * turn).flatten(2)


def joined(*layers: Any) -> Tensor:
    """The weights of layers side by side, (d_in, d_out) altogether; the layers keep parts of it.

    A row is what one input adds to all outputs: `product` reads it faster than rows of W.
    """
    sizes = [len(layer.weight) for layer in layers]
    whole = torch.cat([layer.weight.detach().T for layer in layers], dim=1).contiguous()
    for layer, part in zip(layers, whole.split(sizes, dim=1), strict=True):
        layer.weight.data = part.T
    return whole


def product(x: Tensor, whole: Tensor) -> Tensor:
    """x @ whole, (T, d_in) -> (T, d_out), sooner for one vector on a CPU.

    There a sum of weighted rows, as embedding_bag takes it, is all but as fast as memory is read; a
    product of matrices is not.
    """
    if len(x) > 1 or x.device.type != "cpu":
        return x @ whole
    bags = math.gcd(torch.get_num_threads(), len(whole))  # each thread adds up a part of the rows
    rows = torch.arange(len(whole)).view(bags, -1)
    sums = F.embedding_bag(rows, whole, mode="sum", per_sample_weights=x.view(bags, -1))
    return sums.sum(0, keepdim=True)
