"""Lesson 20's decoder, trained faster: the same numbers from fewer products, and less is kept.

Queries, keys and values are made in one product, gate and hidden units in another
(`normed_products`). Pairs of features are turned as complex numbers, in one pass. The
attention is PyTorch's kernel, for which heads need not be copied to share keys, and the loss never
holds the logits of more than a few tokens.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from attention.modern_decoder import ModernDecoder
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.train.speed.acceleration import LinearCrossEntropy, in_float32
from attention.train.speed.normed_products import NormedLinear, NormedSwiGLU


class FastDecoder(ModernDecoder):
    """A ModernDecoder that reads whole texts faster; whatever is unusual is left to the library."""

    def hidden(self, tokens: Tensor) -> Tensor:
        """What the last norm is to normalise, (B, T, d_model): tokens (B, T), from the beginning.

        Padding may only stand behind a text: nothing real looks at it there.
        """
        x = self.embedding(tokens)
        turns, mask = None, None
        layers: Any = self.layers
        for layer in layers:
            part = layer.attention
            if turns is None:  # alike in all layers
                turns = rotations(part, x)
                mask = window_mask(part.window, tokens.shape[1], tokens.device)
            x = x + attend_to_past(part, layer.norm_1, x, turns, mask)
            norm, parts = layer.norm_2, layer.feed_forward
            weights = (parts.W_gate.weight, parts.W_up.weight, parts.W_down.weight)
            x = NormedSwiGLU.apply(x, norm.eps, norm.weight, *weights)
        return x


def rotations(attention: Any, x: Tensor) -> Tensor:
    """The complex numbers that turn queries and keys of x (B, T, d_model).

    Returns (T, (H + H_kv) · d_head / 2).
    """
    d_head = len(attention.W_q.weight) // attention.n_heads
    wide = torch.promote_types(x.dtype, torch.float32)
    positions = torch.arange(x.shape[1], dtype=wide, device=x.device)
    return turning(positions, d_head).repeat(1, attention.n_heads + attention.n_kv_heads)


def turning(positions: Tensor, d_head: int) -> Tensor:
    """The complex numbers by which lesson 08's `rotary` turns pairs: (T, d_head / 2).

    positions  (T,)  float32, or wider
    """
    exponents = torch.arange(0, d_head, 2, dtype=positions.dtype, device=positions.device)
    angles = positions[:, None] / 10000 ** (exponents / d_head)
    return torch.complex(angles.cos(), angles.sin())


def window_mask(window: int | None, T: int, device: torch.device) -> Tensor | None:
    """Who sees whom, bool (T, T); None where all see all that came before them."""
    if window is None or window >= T:
        return None
    return torch.ones(T, T, dtype=torch.bool, device=device).tril_().triu_(1 - window)


def attend_to_past(
    attention: Any, norm: nn.RMSNorm, x: Tensor, turns: Tensor, mask: Tensor | None
) -> Tensor:
    """What a layer's attention adds to x, (B, T, d_model), with the norm in front of it."""
    W = attention
    weights = (W.W_q.weight, W.W_k.weight, W.W_v.weight)
    packed = NormedLinear.apply(x, norm.eps, norm.weight, *weights)
    d_head = len(weights[0]) // W.n_heads
    if isinstance(W.norm_q, nn.RMSNorm):
        packed = _normed_heads(W, packed, d_head)
    # (B, T, H + 2 · H_kv, d_head), in which queries and keys are turned
    packed = Turned.apply(packed, turns).unflatten(-1, (-1, d_head))
    q, k, v = packed.transpose(1, 2).split([W.n_heads, W.n_kv_heads, W.n_kv_heads], dim=1)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        causal = mask is None
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=True)

    with torch.autocast(x.device.type, enabled=False):
        short = q.dtype == torch.bfloat16 and x.device.type == "cpu"
        context = in_float32(attend, q, k, v) if short else attend(q, k, v)
    out: Tensor = W.W_o(context.transpose(1, 2).flatten(2))
    return out


def _normed_heads(attention: Any, packed: Tensor, d_head: int) -> Tensor:
    """Normalise each head of queries and keys in packed, (B, T, (H + 2 · H_kv) · d_head)."""
    W = attention
    counts = [W.n_heads, W.n_kv_heads, W.n_kv_heads]
    q, k, v = packed.unflatten(-1, (-1, d_head)).split(counts, dim=2)
    q, k = (norm(x.to(norm.weight.dtype)) for norm, x in ((W.norm_q, q), (W.norm_k, k)))
    return torch.cat([q, k, v.to(q.dtype)], dim=2).flatten(2).to(v.dtype)


class Turned(torch.autograd.Function):
    """Turn the first m of n features in pairs: apply(x (B, T, n), turns (T, m / 2)).

    The gradient is turned back: nothing of x is kept.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, turns: Tensor) -> Tensor:
        """Return x as it is turned, (B, T, n)."""
        ctx.save_for_backward(turns)
        return turn_(x.clone(), turns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of x as it came in, (B, T, n)."""
        (turns,) = ctx.saved_tensors
        return turn_(grad.clone(), turns.conj().resolve_conj()), None


def turn_(x: Tensor, turns: Tensor) -> Tensor:
    """Multiply the first 2 · m numbers of x (..., n), as m complex ones, by turns (..., m)."""
    some = x[..., : 2 * turns.shape[-1]].unflatten(-1, (-1, 2))
    if x.dtype in (torch.float32, torch.float64):
        torch.view_as_complex(some).mul_(turns)
    else:  # there are no complex numbers of that precision
        some.copy_(torch.view_as_real(torch.view_as_complex(some.float()).mul_(turns)))
    return x


def prepare_decoder(model: ModernDecoder, device: torch.device) -> FastDecoder:
    """Move a ModernDecoder to a device, and make it train fast there; returns it."""
    model.__class__ = FastDecoder  # the same parameters under the same names
    fast: Any = model.to(device)
    return fast


class DecoderLoss(nn.Module):
    """The mean loss per real token of a language model.

    model      a FastDecoder
    smoothing  share of the probability that the targets spread over the vocabulary
    dtype      None, or the type of the matrix products, such as torch.bfloat16
    by_rows    work out the loss a few rows at a time; None: on a CPU, where it is faster

    Raises ValueError for a smoothing that is not from 0 to 1.
    """

    def __init__(
        self,
        model: FastDecoder,
        smoothing: float = 0.0,
        dtype: torch.dtype | None = None,
        by_rows: bool | None = None,
    ):
        super().__init__()
        demand.within(0, 1, smoothing=smoothing)
        self.model, self.smoothing, self.dtype, self.by_rows = model, smoothing, dtype, by_rows

    def forward(self, read: Tensor, target: Tensor) -> Tensor:
        """Return the loss, (): 0 if there is no real token.

        read    (B, T)  ids that the model reads, PAD only behind them; what stands behind T is left
        target  (B, T)  the id that follows each; PAD does not count
        """
        read = read[:, : target.shape[1]]
        with torch.autocast(read.device.type, self.dtype, enabled=self.dtype is not None):
            x = self.model.hidden(read)  # (B, T, d_model)
        real, table = target != PAD, self.model.embedding.weight
        rows, wanted = self.model.norm(x[real]), target[real]  # (n, d_model), (n,)
        by_rows = self.by_rows if self.by_rows is not None else read.device.type == "cpu"
        if by_rows:
            loss: Tensor = LinearCrossEntropy.apply(rows, table, wanted, self.smoothing, self.dtype)
            return loss
        with torch.autocast(read.device.type, self.dtype, enabled=self.dtype is not None):
            logits = F.linear(rows, table).to(rows.dtype)  # (n, vocab_size)
        options: Any = {"label_smoothing": self.smoothing, "reduction": "sum"}
        return F.cross_entropy(logits, wanted, **options) / max(1, len(wanted))
