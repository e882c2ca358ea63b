"""Wrong and right answers to the exercises of lesson 07."""

import functools
import math

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from attention.multi_head_attention import attend
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _refuses_uneven_pieces(target):
    """With the lines that are given."""

    @functools.wraps(target)
    def answer(x, n_heads):
        if x.shape[2] % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={x.shape[2]}")
        return target(x, n_heads)

    return answer


def _refuses_uneven_groups(target):
    """With the lines that are given."""

    @functools.wraps(target)
    def answer(x, n_heads):
        if n_heads % x.shape[1]:
            raise ValueError(f"H_kv={x.shape[1]} does not divide n_heads={n_heads}")
        return target(x, n_heads)

    return answer


def _split(x, n_heads):
    return torch.stack(x.chunk(n_heads, -1), 1)


@alternative("split_heads")
@_refuses_uneven_pieces
def unflattens(x, n_heads):
    return x.unflatten(2, (n_heads, -1)).permute(0, 2, 1, 3)


@alternative("split_heads")
@_refuses_uneven_pieces
def cuts_slices(x, n_heads):
    d_head = x.shape[2] // n_heads
    return torch.stack([x[..., h * d_head : h * d_head + d_head] for h in range(n_heads)], dim=1)


@careless("split_heads")
@_refuses_uneven_pieces
def fills_heads_on_the_cpu(x, n_heads):
    B, T, d_model = x.shape
    heads = torch.zeros(B, n_heads, T, d_model // n_heads, dtype=x.dtype)
    for h, piece in enumerate(x.chunk(n_heads, dim=-1)):
        heads[:, h] = piece
    return heads


@careless("split_heads")
@_refuses_uneven_pieces
def fills_heads_in_float32(x, n_heads):
    B, T, d_model = x.shape
    heads = torch.zeros(B, n_heads, T, d_model // n_heads)
    for h, piece in enumerate(x.chunk(n_heads, dim=-1)):
        heads[:, h] = piece
    return heads


@careless("split_heads")
@_refuses_uneven_pieces
def splits_in_numpy(x, n_heads):
    return torch.from_numpy(numpy.stack(numpy.split(x.numpy(), n_heads, axis=-1), axis=1))


@careless("split_heads")
@_refuses_uneven_pieces
def splits_a_rebuilt_tensor(x, n_heads):
    return torch.tensor(x.tolist()).unflatten(-1, (n_heads, -1)).transpose(1, 2)


@alternative("merge_heads")
def concatenates(x):
    return torch.cat(list(x.unbind(1)), dim=-1)


@alternative("merge_heads")
def copies_then_views(x):
    B, H, T, d_head = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(B, T, -1)


@careless("merge_heads")
def fills_features_on_the_cpu(x):
    B, H, T, d_head = x.shape
    merged = torch.zeros(B, T, H * d_head, dtype=x.dtype)
    for h in range(H):
        merged[:, :, h * d_head : (h + 1) * d_head] = x[:, h]
    return merged


@careless("merge_heads")
def fills_features_in_float32(x):
    B, H, T, d_head = x.shape
    merged = torch.zeros(B, T, H * d_head)
    for h in range(H):
        merged[:, :, h * d_head : (h + 1) * d_head] = x[:, h]
    return merged


@careless("merge_heads")
def merges_in_numpy(x):
    return torch.from_numpy(numpy.concatenate(list(x.numpy().swapaxes(0, 1)), axis=-1))


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


def _energy(matrix):
    return torch.linalg.svdvals(matrix).square()


@alternative("captured_variance")
def with_the_full_svd(matrix):
    energy = torch.linalg.svd(matrix, full_matrices=False).S ** 2
    return energy.cumsum(-1) / matrix.square().sum((-2, -1))[..., None]


@alternative("captured_variance")
def with_eigenvalues(matrix):
    small = matrix if matrix.shape[-2] <= matrix.shape[-1] else matrix.mT
    energy = torch.linalg.eigvalsh(small @ small.mT).flip(-1).clamp(min=0)
    return torch.cumsum(energy / energy.sum(-1, keepdim=True), -1)


@careless("captured_variance")
def measures_in_numpy(matrix):
    energy = numpy.linalg.svd(matrix.numpy(), compute_uv=False) ** 2
    return torch.from_numpy(energy.cumsum(-1) / energy.sum(-1, keepdims=True))


@careless("captured_variance")
def fills_shares_one_by_one(matrix):
    energy = _energy(matrix)
    shares = torch.zeros(energy.shape)
    for i in range(energy.shape[-1]):
        shares[..., i] = energy[..., : i + 1].sum(-1) / energy.sum(-1)
    return shares


@careless("captured_variance")
def measures_in_float32(matrix):
    energy = _energy(matrix.float())
    return energy.cumsum(-1) / energy.sum(-1, keepdim=True)


@mistake(
    "share_heads",
    hint="The heads are repeated as a whole: 0, 1, 2, 0, 1, 2. Neighbours should "
    "share: 0, 0, 1, 1, 2, 2.",
)
def repeats_the_whole(x, n_heads):
    copies, rest = divmod(n_heads, x.shape[1])
    if rest:
        raise ValueError(f"{n_heads} heads cannot share {x.shape[1]}")
    return torch.cat([x] * copies, dim=1)


@alternative("share_heads")
@_refuses_uneven_groups
def expands_a_new_axis(x, n_heads):
    B, H_kv, T, d_head = x.shape
    return x[:, :, None].expand(B, H_kv, n_heads // H_kv, T, d_head).reshape(B, n_heads, T, d_head)


@alternative("share_heads")
@_refuses_uneven_groups
def picks_by_index(x, n_heads):
    return x[:, torch.arange(n_heads) // (n_heads // x.shape[1])]


@careless("share_heads")
@_refuses_uneven_groups
def fills_heads_in_a_loop(x, n_heads):
    B, H_kv, T, d_head = x.shape
    heads = torch.zeros(B, n_heads, T, d_head)
    for h in range(n_heads):
        heads[:, h] = x[:, h // (n_heads // H_kv)]
    return heads


@careless("share_heads")
@_refuses_uneven_groups
def repeats_in_numpy(x, n_heads):
    return torch.from_numpy(numpy.repeat(x.numpy(), n_heads // x.shape[1], axis=1))


def _collaborate(q, k, v, mixing, scale, dim=-1):
    scores = (q[:, None] * mixing[None, :, None]) @ k[:, None].mT / scale
    return torch.softmax(scores, dim) @ v


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
    "captured_variance: whose result is cut off from the gradient: return (energy.cumsum(dim=-1) "
    "/ energy.sum(dim=-1, keepdim=True)).detach()": "a measurement: nothing is trained through it",
}


@mistake(
    "break_share_heads",
    hint="There is only one head of keys, so the order of the copies does not matter.",
    where=lambda x, n_heads: x.shape[1] == 1,
)
def with_one_head_of_keys():
    return torch.randn(2, 1, 3, 4), 6


@mistake(
    "break_share_heads",
    hint="Every query head has keys of its own here, so nothing is repeated.",
    where=lambda x, n_heads: x.shape[1] == n_heads,
)
def with_as_many_heads_of_keys():
    return torch.randn(2, 4, 3, 5), 4


@mistake(
    "break_share_heads",
    hint="n_heads is not a multiple of the number of heads of keys: both functions refuse it.",
    where=lambda x, n_heads: n_heads % x.shape[1] != 0,
)
def with_uneven_groups():
    return torch.randn(1, 2, 3, 4), 5


@mistake(
    "break_share_heads",
    hint="All heads of x hold the same numbers, so nobody can tell which one was repeated.",
    where=lambda x, n_heads: bool((x == x[:, :1]).all()),
)
def with_equal_heads():
    return torch.ones(1, 2, 3, 4), 4


@alternative("break_share_heads")
def with_three_heads_for_six():
    return torch.arange(3.0).view(1, 3, 1, 1), 6


@alternative("break_share_heads")
def with_random_heads():
    x = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    return x.double(), 8
