"""Wrong and right answers to the exercises of lesson 07."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.multi_head_attention import attend
from autograder.checking.toolbox.registry import alternative, careless


def _split(x, n_heads):
    return torch.stack(x.chunk(n_heads, -1), 1)


class _Heads(nn.Module):
    """A right answer in small methods; a mistake overrides what it gets wrong."""

    layers = ("W_q", "W_k", "W_v", "W_o")
    average = False

    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.n_heads, self.p = n_heads, dropout
        for name in self.layers:
            setattr(self, name, nn.Linear(d_model, d_model))

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(value)

    def split(self, x):
        return _split(x, self.n_heads)

    def merge(self, x):
        return torch.cat(x.unbind(1), -1)

    def rate(self):
        return self.p if self.training else 0.0

    def attend(self, q, k, v, mask):
        return attend(q, k, v, mask, self.rate())

    def gate(self, context, head_mask):
        return context if head_mask is None else context * head_mask[..., None, None]

    def finish(self, context):
        return self.W_o(context)

    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        mask = None if mask is None else mask.unsqueeze(-3)
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        context, weights = self.attend(q, k, v, mask)
        output = self.finish(self.merge(self.gate(context, head_mask)))
        weights = weights.mean(1) if self.average else weights
        return (output, weights) if return_weights else output


@alternative("MultiHeadAttention")
class HeadAfterHead(_Heads):
    def attend(self, q, k, v, mask):
        mask = None if mask is None else mask.expand(len(q), 1, q.shape[2], k.shape[2])[:, 0]
        triples = zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True)
        one = [attend(*x, mask, self.rate()) for x in triples]
        return tuple(torch.stack(parts, 1) for parts in zip(*one, strict=True))


@alternative("MultiHeadAttention")
class SumsOverHeads(_Heads):
    """W_o cut into one slice per head: concatenating and projecting is a sum of projections."""

    def merge(self, x):
        return x

    def finish(self, context):
        slices = self.W_o.weight.unflatten(1, (self.n_heads, -1))  # (d_model, H, d_head)
        return torch.einsum("bhtd,mhd->btm", context, slices) + self.W_o.bias


@careless("MultiHeadAttention")
class MakesOnesForGates(_Heads):
    def gate(self, context, head_mask):
        gates = torch.ones(self.n_heads) if head_mask is None else head_mask
        return context * gates[..., None, None]


@careless("MultiHeadAttention")
class MakesAMaskOfOnes(_Heads):
    def attend(self, q, k, v, mask):
        ones = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
        return super().attend(q, k, v, ones if mask is None else mask)


@careless("MultiHeadAttention")
class FillsTheMergedHeads(_Heads):
    def merge(self, x):
        B, H, T, d_head = x.shape
        merged = torch.zeros(B, T, H * d_head)
        for h in range(H):
            merged[:, :, h * d_head : (h + 1) * d_head] = x[:, h]
        return merged


def _updates_in_a_loop(heads, W_o):
    d_head = heads.shape[3]
    return [heads[:, h] @ W_o[h * d_head : (h + 1) * d_head] for h in range(heads.shape[1])]


@alternative("head_updates")
def one_head_after_the_other(heads, W_o):
    return torch.stack(_updates_in_a_loop(heads, W_o), dim=1)


@alternative("head_updates")
def with_einsum(heads, W_o):
    B, H, T, d_head = heads.shape
    return torch.einsum("bhtd,hdm->bhtm", heads, W_o.reshape(H, d_head, -1))


@alternative("head_updates")
def silences_all_others(heads, W_o):
    alone = torch.eye(heads.shape[1], dtype=heads.dtype, device=heads.device)  # (H, H)
    only = heads[:, None] * alone[None, :, :, None, None]  # (B, H, H, T, d_head)
    return only.transpose(2, 3).flatten(3) @ W_o


@careless("head_updates")
def fills_updates_on_the_cpu(heads, W_o):
    B, H, T, d_head = heads.shape
    updates = torch.zeros(B, H, T, W_o.shape[1], dtype=heads.dtype)
    for h, update in enumerate(_updates_in_a_loop(heads, W_o)):
        updates[:, h] = update
    return updates


@careless("head_updates")
def fills_updates_in_float32(heads, W_o):
    B, H, T, d_head = heads.shape
    updates = torch.zeros(B, H, T, W_o.shape[1])
    for h, update in enumerate(_updates_in_a_loop(heads, W_o)):
        updates[:, h] = update
    return updates


@careless("head_updates")
def updates_in_numpy(heads, W_o):
    parts = W_o.numpy().reshape(heads.shape[1], heads.shape[3], -1)
    return torch.from_numpy(heads.numpy() @ parts)


def _collaborate(q, k, v, mixing, scale, dim=-1):
    scores = (q[:, None] * mixing[None, :, None]) @ k[:, None].mT / scale
    return torch.softmax(scores, dim) @ v


@alternative("heads_by_hand")
def block_by_block(strength):
    W_q, W_k, W_v = torch.zeros(28, 28), torch.zeros(28, 28), torch.zeros(28, 28)
    for n in range(8):
        W_q[8 + n, n] = W_q[16 + n, 14 + n] = strength * 14**0.5
        W_k[n, n] = W_k[n, 14 + n] = 1.0
    W_v[[24, 25, 26, 27], [0, 1, 2, 3]] = 1.0
    W_v[[24, 25, 26, 27], [14, 15, 16, 17]] = 1.0
    return W_q, W_k, W_v


@alternative("heads_by_hand")
def puts_two_heads_side_by_side(strength):
    name = F.pad(torch.eye(8), (0, 6))  # (8, 14)
    content = F.pad(torch.eye(4), (0, 10, 24, 0))  # (28, 14)
    factor = strength * math.sqrt(14)
    first, second = F.pad(name, (0, 0, 8, 12)), F.pad(name, (0, 0, 16, 4))
    own = F.pad(name, (0, 0, 0, 20))
    return factor * torch.cat([first, second], 1), own.repeat(1, 2), content.repeat(1, 2)


@alternative("collaborative_heads")
def mixes_the_keys(q, k, v, mixing, d_head):
    keys = k.unsqueeze(1) * mixing.unsqueeze(1)  # (B, H, T_k, d_shared)
    scores = torch.einsum("bqd,bhkd->bhqk", q, keys) * d_head**-0.5
    return torch.einsum("bhqk,bhkv->bhqv", torch.softmax(scores, -1), v)


@alternative("collaborative_heads")
def with_the_kernel(q, k, v, mixing, d_head):
    queries = q[:, None] * mixing[:, None] * math.sqrt(q.shape[-1] / d_head)
    return F.scaled_dot_product_attention(queries, k[:, None].expand(-1, len(mixing), -1, -1), v)


@careless("collaborative_heads")
def fills_contexts_head_by_head(q, k, v, mixing, d_head):
    contexts = torch.zeros(len(q), len(mixing), q.shape[1], v.shape[-1])
    for h in range(len(mixing)):
        scores = (q * mixing[h]) @ k.mT / math.sqrt(d_head)
        contexts[:, h] = torch.softmax(scores, dim=-1) @ v[:, h]
    return contexts


@careless("collaborative_heads")
def collaborates_in_float32(q, k, v, mixing, d_head):
    return _collaborate(q.float(), k.float(), v.float(), mixing.float(), math.sqrt(d_head))


@careless("collaborative_heads")
def changes_the_queries(q, k, v, mixing, d_head):
    q /= math.sqrt(d_head)
    return _collaborate(q, k, v, mixing, 1.0)


EQUIVALENT = {
    "heads_by_hand: whose result is cut off from the gradient: "
    "return (W_q.detach(), W_k.detach(), W_v.detach())": "only a number comes in, without gradient",
}
