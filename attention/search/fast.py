"""The vectors of `PublishedEncoder` and `sentence_vectors`, in less time.

The same weights and the same sums, except that only real tokens are multiplied: those of a batch
stand one below the other, and are filled up only while they look at one another. Queries, keys and
values come from one product. Where it is quicker, oneDNN multiplies, with weights that are brought
into its own layout once, and does GELU before a result leaves the processor's cache.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.provided.data.tokens import PAD
from attention.provided.measuring.timing import shortest
from attention.train.speed.onednn_products import keep_few_kernels, onednn

Apply = Callable[[Tensor], Tensor]  # (N, m) -> (N, n)


class FastEncoder:
    """Texts' ids to vectors, with the weights of a `PublishedEncoder`, which may not change.

    model  the library's, on the CPU; a part that somebody else wrote would be passed by
    """

    @torch.inference_mode()
    def __init__(self, model: Any):
        keep_few_kernels()
        self.embeddings = model.embeddings
        by = _packed if _packing_pays(model.encoder.layers[0].feed_forward.linear_1) else _plain
        self.layers = [_Layer(layer, by) for layer in model.encoder.layers]

    @torch.inference_mode()
    def __call__(self, ids: Tensor) -> Tensor:
        """Return the vectors of texts, (B, d_model), each of length 1: ids (B, T), with PAD."""
        real = ids != PAD  # (B, T)
        rows, places = real.nonzero(as_tuple=True)  # (N,) each, N real tokens
        parts = self.embeddings
        x = parts.words(ids[real]).add_(parts.positions(places)).add_(parts.types.weight[0])
        x = parts.norm(x)  # (N, d_model)
        mask = None if len(rows) == ids.numel() else real
        for layer in self.layers:
            x = layer(x, mask, ids.shape)
        total = x.new_zeros(len(ids), x.shape[1]).index_add_(0, rows, x)  # (B, d_model)
        return F.normalize(total, dim=-1)


class _Layer:
    """An EncoderLayer of a BERT: its weights, ready to be multiplied."""

    def __init__(self, layer: Any, by: Callable[..., Apply]):
        attention, hidden = layer.attention, layer.feed_forward
        three = (attention.W_q, attention.W_k, attention.W_v)
        weight, bias = (torch.cat([getattr(one, p) for one in three]) for p in ("weight", "bias"))
        self.heads = (3, attention.n_heads, attention.d_head)
        self.qkv, self.out = by(weight, bias), by(attention.W_o.weight, attention.W_o.bias)
        self.inner = by(hidden.linear_1.weight, hidden.linear_1.bias, gelu=True)
        self.outer = by(hidden.linear_2.weight, hidden.linear_2.bias)
        self.norm_1, self.norm_2 = layer.norm_1, layer.norm_2

    def __call__(self, x: Tensor, mask: Tensor | None, shape: torch.Size) -> Tensor:
        """Update x (N, d_model); mask (B, T) says which tokens x holds, None for all of them."""
        qkv = self.qkv(x)  # (N, 3 · d_model)
        if mask is not None:
            qkv = _filled(qkv, mask)  # (B · T, 3 · d_model)
        q, k, v = qkv.view(*shape, *self.heads).permute(2, 0, 3, 1, 4)  # (B, H, T, d_head) each
        seen = None if mask is None else mask[:, None, None]  # (B, 1, 1, T)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        context = context.transpose(1, 2).flatten(2)  # (B, T, d_model)
        context = context.flatten(0, 1) if mask is None else context[mask]  # (N, d_model)
        x = self.norm_1(self.out(context).add_(x))
        normed: Tensor = self.norm_2(self.outer(self.inner(x)).add_(x))
        return normed


def _filled(packed: Tensor, mask: Tensor) -> Tensor:
    """Rows (N, n) at their places among all of a batch, (B · T, n), with zeros at the others."""
    made = packed.new_zeros(mask.numel(), packed.shape[1])
    made[mask.flatten()] = packed
    return made


def _plain(weight: Tensor, bias: Tensor, gelu: bool = False) -> Apply:
    """A linear layer by PyTorch, with GELU behind it if wanted."""
    if gelu:
        return lambda x: F.gelu(F.linear(x, weight, bias))
    return lambda x: F.linear(x, weight, bias)


def _packed(weight: Tensor, bias: Tensor, gelu: bool = False) -> Apply:
    """The same by oneDNN, with a copy of the weights in its own layout."""
    multiply, own = onednn(), torch.ops.mkldnn._reorder_linear_weight(weight)
    after: tuple[Any, ...] = ("gelu", [], "none") if gelu else ("none", [], "")
    return lambda x: multiply(x, own, bias, *after)


def _packing_pays(layer: Any) -> bool:
    """Whether oneDNN is quicker here for a linear layer with GELU: both are tried, in 50 ms."""
    if onednn() is None or not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        return False
    x = torch.ones(256, layer.in_features)
    usual, own = (by(layer.weight, layer.bias, gelu=True) for by in (_plain, _packed))
    return shortest(lambda: own(x), least=7) < shortest(lambda: usual(x), least=7)
