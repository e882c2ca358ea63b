"""Run a Transformer's decoder one position at a time, with or without what it remembers."""

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attention.provided.data.tokens import BOS, PAD
from attention.provided.demand import counts

ANSWERS = "decoding"  # the lesson whose exercises this would answer: hidden in its grading
GROWTH = 16  # positions by which a full cache grows


def limits(source: Tensor, max_length: int | tuple[float, float]) -> Tensor:
    """Say how many tokens each translation may have, EOS included: (B,).

    source      (B, T_k)  ids, filled up with PAD
    max_length  a number for all rows, or (a, b) for a · length + b, with the length of each source

    Raises ValueError if that is less than 1, or if there is no source.

    >>> limits(torch.tensor([[7, 8, 9, 2], [7, 2, 0, 0]]), (1.5, 10))
    tensor([16, 13])
    """
    counts(sources=len(source))
    a, b = max_length if isinstance(max_length, tuple | list) else (0, max_length)
    most = (a * (source != PAD).sum(dim=1) + b).long()  # (B,)
    if (most < 1).any():
        raise ValueError(f"max_length={max_length} leaves no room for a single token")
    return most


class RepeatingDecoder:
    """The next token's scores for rows of tokens, all computed anew at every step.

    model    a `Transformer`
    source   (B, T_k)  ids, filled up with PAD
    beams    how many rows of tokens there are for each source: K, from 1 on
    """

    def __init__(self, model: Any, source: Tensor, beams: int = 1):
        counts(beams=beams)
        self.model, self.beams = model, beams
        self.source_mask = (source != PAD).unsqueeze(1)  # (B, 1, T_k)
        self.memory = model.encode(source, self.source_mask)  # (B, T_k, d_model)
        self.read = source.new_empty((len(source) * beams, 0))  # (B·K, T)

    def step(self, tokens: Tensor) -> Tensor:
        """Read one token per row, (B·K,), and score the next: (B·K, vocab_size).

        PAD and BOS, which are no part of a sentence, get the score -inf.
        """
        self.read = torch.cat([self.read, tokens.unsqueeze(1)], dim=1)  # (B·K, T)
        memory = self.memory.repeat_interleave(self.beams, 0)  # (B·K, T_k, d_model)
        mask = self.source_mask.repeat_interleave(self.beams, 0)  # (B·K, 1, T_k)
        return _only_words(self.model.decode(self.read, memory, None, mask)[:, -1])

    def select(self, rows: Tensor, stays: Tensor) -> None:
        """Go on with some of the rows, in another order.

        rows   (B'·K,)  the old row that each new row goes on from
        stays  (B,)     bool: the sources to which these rows belong
        """
        self.read = self.read[rows]
        if not stays.all():
            self.memory, self.source_mask = self.memory[stays], self.source_mask[stays]


class CachedDecoder(RepeatingDecoder):
    """The same scores, but only the new token passes through the layers.

    Keys and values of earlier tokens are kept, those of the source are computed once. The model's
    own layers do the work: copies of them, in which the attentions have others in their places.
    """

    def __init__(self, model: Any, source: Tensor, beams: int = 1):
        super().__init__(model, source, beams)
        self.length = 0
        self.decoder = _twin(model.decoder)
        self.decoder.layers = nn.ModuleList(_twin(layer) for layer in model.decoder.layers)
        for layer in self.decoder.layers:
            layer.attention = _PastAttention(layer.attention)
            layer.cross_attention = _SourceAttention(layer.cross_attention, self.memory, beams)

    def step(self, tokens: Tensor) -> Tensor:
        """Read one token per row, (B·K,), and score the next: (B·K, vocab_size)."""
        x = self.model.target_embedding(tokens).unsqueeze(1)  # (B·K, 1, d_model)
        x = x * math.sqrt(x.shape[2]) + _sines_and_cosines(self.length, x)
        x = self.decoder(x, self.memory, None, self.source_mask)  # (B·K, 1, d_model)
        self.length += 1
        return _only_words(self.model.generator(x[:, 0]))

    def select(self, rows: Tensor, stays: Tensor) -> None:
        """Go on with some of the rows, in another order: see `RepeatingDecoder`."""
        super().select(rows, stays)
        for layer in self.decoder.layers:
            past, source = layer.attention, layer.cross_attention
            past.keys, past.values = past.keys[rows], past.values[rows]
            if not stays.all():
                source.keys, source.values = source.keys[stays], source.values[stays]


def _sines_and_cosines(position: int, x: Tensor) -> Tensor:
    """What lesson 08 adds to the vectors (B, 1, d_model) of a position, (d_model,)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    exponents = torch.arange(0, x.shape[2], 2, dtype=wide, device=x.device) / x.shape[2]
    angles = position / 10000**exponents  # (d_model / 2,)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten().to(x.dtype)


def _only_words(logits: Tensor) -> Tensor:
    """Scores in float32, in which PAD and BOS cannot win."""
    logits = logits.float()
    logits[:, [PAD, BOS]] = -math.inf
    return logits


def _twin(module: Any) -> Any:
    """A copy with the same parts, in which a part can be replaced."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin


class _PastAttention(nn.Module):
    """Self-attention of one new position over itself and all before, whose keys it has kept."""

    def __init__(self, attention: Any):
        super().__init__()
        self.attention, self.length = attention, 0
        self.keys: Tensor | None = None  # (B·K, H, capacity, d_head)
        self.values: Tensor | None = None

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Read (B·K, 1, d_model). The mask is not needed: no future is there."""
        W, heads = self.attention, (self.attention.n_heads, self.attention.d_head)
        k = W.W_k(key).unflatten(2, heads).transpose(1, 2)  # (B·K, H, 1, d_head)
        v = W.W_v(value).unflatten(2, heads).transpose(1, 2)  # (B·K, H, 1, d_head)
        if self.keys is None or self.values is None:
            self.keys, self.values = k[:, :, :0], v[:, :, :0]
        if self.length == self.keys.shape[2]:
            space = (0, 0, 0, GROWTH)
            self.keys = nn.functional.pad(self.keys, space)
            self.values = nn.functional.pad(self.values, space)
        self.keys[:, :, self.length], self.values[:, :, self.length] = k[:, :, 0], v[:, :, 0]
        self.length += 1
        k, v = self.keys[:, :, : self.length], self.values[:, :, : self.length]
        q = W.W_q(query).unflatten(2, heads).transpose(1, 2)  # (B·K, H, 1, d_head)
        context = scaled_dot_product_attention(q, k, v)  # (B·K, H, 1, d_head)
        return W.W_o(context.transpose(1, 2).flatten(2))


class _SourceAttention(nn.Module):
    """Cross-attention whose keys and values are computed once for each source.

    The K beams of a source look at the same keys, so they are K queries of one sequence.
    """

    def __init__(self, attention: Any, memory: Tensor, beams: int):
        super().__init__()
        self.attention, self.beams = attention, beams
        heads = attention.n_heads, attention.d_head
        self.keys = attention.W_k(memory).unflatten(2, heads).transpose(1, 2)  # (B, H, T_k, d_head)
        self.values = attention.W_v(memory).unflatten(2, heads).transpose(1, 2)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Let (B·K, 1, d_model) look at the sources, under the mask (B, 1, T_k)."""
        W, heads = self.attention, (self.attention.n_heads, self.attention.d_head)
        query = query.view(-1, self.beams, query.shape[2])  # (B, K, d_model)
        q = W.W_q(query).unflatten(2, heads).transpose(1, 2)  # (B, H, K, d_head)
        context = scaled_dot_product_attention(q, self.keys, self.values, mask.unsqueeze(1))
        output = W.W_o(context.transpose(1, 2).flatten(2))  # (B, K, d_model)
        return output.view(-1, 1, output.shape[2])
