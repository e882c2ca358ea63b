"""A ModernDecoder writes a text faster: fewer and larger products, and a cache with room."""

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
        table = self.model.embedding if self.model.output is None else self.model.output
        return (self.model.norm(x[-1:]) @ table.weight.T)[None], past


class Past:
    """What was read: keys, turned, and values, (n_layers, H_kv, capacity, d_head) each."""

    def __init__(self, model: Any):
        one = model.layers[0].attention
        self.n_heads, self.base, self.length = one.n_heads, one.base, 0
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
        self.inward = joined(attention.W_q, attention.W_k, attention.W_v)
        self.hidden = joined(ff.W_gate, ff.W_up)

    def __call__(self, x: Tensor, turn: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """(T, d_model) -> (T, d_model); keys and values (H_kv, P + T, d_head) are filled here."""
        layer, attention, T = self.layer, self.layer.attention, len(x)
        H, H_kv, d_head = attention.n_heads, attention.n_kv_heads, keys.shape[2]
        heads = F.linear(layer.norm_1(x), self.inward).view(T, H + 2 * H_kv, d_head)
        q, k, v = heads.split([H, H_kv, H_kv], dim=1)  # (T, H, d_head) each
        q, k = turned(attention.norm_q(q), turn), turned(attention.norm_k(k), turn)
        keys[:, -T:], values[:, -T:] = k.transpose(0, 1), v.transpose(0, 1)
        # A key stands for a group of queries: of one token, they are rows of one product.
        q = q.view(T, H_kv, -1, d_head).permute(1, 2, 0, 3)  # (H_kv, group, T, d_head)
        if T == 1:
            context = F.scaled_dot_product_attention(q[:, :, 0], keys, values).flatten()[None]
        else:
            shape = (-1, H // H_kv, -1, -1)
            k, v = keys[:, None].expand(shape), values[:, None].expand(shape)
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            context = context.permute(2, 0, 1, 3).flatten(1)
        x = x + attention.W_o(context)
        gate, up = F.linear(layer.norm_2(x), self.hidden).chunk(2, dim=1)
        return x + layer.feed_forward.W_down(F.silu(gate) * up)


def turned(x: Tensor, turn: Tensor) -> Tensor:
    """Turn pairs of features, (T, H, d_head), as lesson 08's `rotary` does."""
    pairs = torch.view_as_complex(x.unflatten(2, (-1, 2)))  # (T, H, d_head / 2)
    return torch.view_as_real(pairs * turn).flatten(2)


def joined(*layers: Any) -> Tensor:
    """The weights of linear layers, one below the other; the layers keep parts of it."""
    whole = torch.cat([layer.weight.detach() for layer in layers])
    for layer, part in zip(layers, whole.split([len(one.weight) for one in layers]), strict=True):
        layer.weight.data = part
    return whole
