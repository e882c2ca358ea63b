"""Lesson 20's decoder, which reads a text on and on, in less time: for those who write with it.

The weights are brought together once, column after column: those of queries, keys and values, those
of gate and hidden units, and with each what the norm in front of it multiplies by. Keys are kept as
they are turned, in a buffer that grows by doubling, so that a step turns and copies nothing but
what is new.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.train.speed.decoder import turn_, turning
from attention.train.speed.onednn_products import keep_few_kernels, product

ROOM = 64  # positions of a new buffer, at least
FEW = 16  # tokens at a time: for them, PyTorch's own products are quicker everywhere


class Past:
    """Turned keys, and values, of what was read: a buffer, and how it is filled.

    buffer   (n_layers, 2, B, H_kv, capacity, d_head)
    held     how many positions of it are filled
    dropped  how many positions before them are no longer there, since no window reaches them
    """

    def __init__(self, buffer: Tensor):
        self.buffer, self.held, self.dropped = buffer, 0, 0

    def make_room(self, T: int, window: int | None) -> None:
        """See to it that T more positions fit."""
        if self.held + T <= self.buffer.shape[4]:
            return
        first = 0 if window is None else max(0, self.held - window + 1)
        old = self.buffer[..., first : self.held, :]
        self.held, self.dropped = self.held - first, self.dropped + first
        capacity = max(ROOM, 2 * (self.held + T))
        self.buffer = old.new_empty(*old.shape[:4], capacity, old.shape[5])
        self.buffer[..., : self.held, :] = old


class CachedDecoder:
    """Called as a ModernDecoder, of which it has copies of the weights: they may not change.

    model  the library's; a part that somebody else wrote would be passed by

    It scores what follows the last of the new tokens, and no other. The past that it returns is
    the one that it was given, read on: whoever needs the old one copies it.
    """

    @torch.inference_mode()
    def __init__(self, model: Any):
        keep_few_kernels()
        self.table, self.norm = model.embedding.weight.detach(), model.norm
        self.columns = _by_columns(self.table)
        self.layers = [_Layer(layer) for layer in model.layers]
        self.turns = self.table.new_empty((0, self.layers[0].d_head // 2), dtype=torch.complex64)

    @torch.inference_mode()
    def __call__(
        self, tokens: Tensor, past: Past | None = None, real: Tensor | None = None
    ) -> tuple[Tensor, Past]:
        """Score what follows the last token: (B, 1, vocab_size), and the past for the next call.

        tokens  (B, T)  ids of the new tokens
        past    None, or what the last call gave
        real    None, or bool (B, P + T): False = padding among all tokens so far, these included
        """
        T, layer = tokens.shape[1], self.layers[0]
        if past is None:
            shape = (len(self.layers), 2, len(tokens), layer.n_kv_heads, 0, layer.d_head)
            past = Past(self.table.new_empty(shape))
        past.make_room(T, layer.window)
        begin = past.dropped + past.held
        turns = self._turns(begin + T)[begin:].repeat(1, layer.n_heads + layer.n_kv_heads)
        past.held += T
        mask, first = self._mask(past, T, real)
        multiply = product if tokens.numel() > FEW else F.linear
        x = F.embedding(tokens, self.table)  # (B, T, d_model)
        for number, layer in enumerate(self.layers):
            x = layer(x, past.buffer[number, ..., : past.held, :], first, turns, mask, multiply)
        return multiply(self.norm(x[:, -1:]), self.columns), past

    def _turns(self, n: int) -> Tensor:
        """What turns the first n positions, (n, d_head / 2)."""
        if n > len(self.turns):
            positions = torch.arange(max(ROOM, 2 * n), device=self.table.device)
            exact = turning(positions.double(), self.layers[0].d_head)
            self.turns = exact.to(torch.complex64)
        return self.turns[:n]

    def _mask(self, past: Past, T: int, real: Tensor | None) -> tuple[Tensor | None, int]:
        """Who sees whom among the last T, bool (B or 1, 1, T, n - first), and the first key seen.

        None: all that are there, and of several new ones those that came before.
        """
        n, window = past.held, self.layers[0].window
        first = 0 if window is None else max(0, n - T - window + 1)
        if real is not None and real.all():
            real = None
        if real is None and (T == 1 or (n == T and (window is None or window >= T))):
            return None, first
        places = torch.arange(first, n, device=self.table.device)
        before = places[-T:, None] - places  # (T, n - first)
        mask = (before >= 0)[None]
        if window is not None:
            mask = mask & (before < window)
        if real is not None:  # who is padding sees itself: what it sees is of no use, but a number
            mask = mask & (real[:, None, first - n :] | (before == 0))
        return mask[:, None], first


class _Layer:
    """A ModernDecoderLayer: its weights, ready to be multiplied."""

    def __init__(self, layer: Any):
        part, hidden = layer.attention, layer.feed_forward
        self.n_heads, self.n_kv_heads, self.window = part.n_heads, part.n_kv_heads, part.window
        self.d_head = len(part.W_q.weight) // part.n_heads
        self.norm_q, self.norm_k = part.norm_q, part.norm_k
        self.with_norms = isinstance(part.norm_q, nn.RMSNorm)
        self.eps = layer.norm_1.eps, layer.norm_2.eps
        self.qkv = _joined(layer.norm_1, part.W_q, part.W_k, part.W_v)
        self.inner = _joined(layer.norm_2, hidden.W_gate, hidden.W_up)
        self.out, self.outer = _by_columns(part.W_o.weight), _by_columns(hidden.W_down.weight)

    def __call__(
        self,
        x: Tensor,
        kept: Tensor,
        first: int,
        turns: Tensor,
        mask: Tensor | None,
        multiply: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        """Update x (B, T, d_model), whose keys and values go to the end of `kept`."""
        B, T, d_model = x.shape
        packed = multiply(F.rms_norm(x, (d_model,), eps=self.eps[0]), self.qkv)
        if self.with_norms:
            self._norm(packed.unflatten(2, (-1, self.d_head)))
        packed = turn_(packed, turns)
        q, new = packed.split([d_model, packed.shape[2] - d_model], dim=2)
        new = new.unflatten(2, (2, self.n_kv_heads, self.d_head))  # (B, T, 2, H_kv, d_head)
        kept[..., -T:, :] = new.permute(2, 0, 3, 1, 4)
        keys, values = kept[..., first:, :]  # (B, H_kv, n, d_head) each
        if T == 1:  # the heads of a group are as good as several queries of one head
            q = q.view(B, self.n_kv_heads, -1, self.d_head)
            context = F.scaled_dot_product_attention(q, keys, values, mask)
            context = context.reshape(B, 1, d_model)
        else:
            q = q.unflatten(2, (-1, self.d_head)).transpose(1, 2)  # (B, H, T, d_head)
            causal = mask is None
            context = F.scaled_dot_product_attention(
                q, keys, values, mask, is_causal=causal, enable_gqa=True
            )
            context = context.transpose(1, 2).flatten(2)  # (B, T, d_model)
        x = x + multiply(context, self.out)
        hidden = multiply(F.rms_norm(x, (d_model,), eps=self.eps[1]), self.inner)
        gate, up = hidden.chunk(2, dim=2)
        return x.add_(multiply(F.silu(gate).mul_(up), self.outer))

    def _norm(self, heads: Tensor) -> None:
        """Normalise queries and keys in place: heads (B, T, H + 2 · H_kv, d_head)."""
        q, k = heads[:, :, : self.n_heads], heads[:, :, self.n_heads : -self.n_kv_heads]
        q.copy_(self.norm_q(q))
        k.copy_(self.norm_k(k))


def _joined(norm: nn.RMSNorm, *layers: nn.Linear) -> Tensor:
    """Weights of layers behind a norm, one below the other, with its own in them: (n, d_model)."""
    return _by_columns(torch.cat([layer.weight for layer in layers]) * norm.weight)


def _by_columns(weight: Tensor) -> Tensor:
    """The same numbers, stored column after column: a few rows are multiplied sooner by them."""
    return weight.detach().T.contiguous().T
