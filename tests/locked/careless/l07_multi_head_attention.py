"""Careless right answers to lesson 07."""

import math

import numpy as np
import torch
from torch import nn

from attention.multi_head_attention import attend
from tests.locked.careless import careless


class _Projections(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.dropout, self.fused = dropout, fused
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)


@careless("MultiHeadAttention", "device", "dtype", how="gates of ones where none are given")
class MultiHeadAttention_1(_Projections):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        fused = self.fused and not return_weights
        heads = (self.n_heads, self.d_head)
        q = self.W_q(query).unflatten(-1, heads).transpose(1, 2)
        k = self.W_k(key).unflatten(-1, heads).transpose(1, 2)
        v = self.W_v(value).unflatten(-1, heads).transpose(1, 2)
        dropout = self.dropout if self.training else 0.0
        context, weights = attend(q, k, v, mask, dropout, fused)
        gates = torch.ones(self.n_heads) if head_mask is None else head_mask
        context = context * gates[..., None, None]
        result = self.W_o(context.transpose(1, 2).flatten(2))
        return (result, weights) if return_weights else result


@careless(
    "MultiHeadAttention", "module_state", "other_order", how="head by head; keeps the weights"
)
class MultiHeadAttention_2(_Projections):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        fused = self.fused and not return_weights
        q, k, v = self.W_q(query), self.W_k(key), self.W_v(value)
        contexts, self.weights = [], []
        for h in range(self.n_heads):
            part = slice(h * self.d_head, (h + 1) * self.d_head)
            one = (x[:, None, :, part] for x in (q, k, v))
            context, weights = attend(*one, mask, self.dropout * self.training, fused)
            if head_mask is not None:
                context = context * head_mask[..., h].reshape(-1, 1, 1, 1)
            contexts.append(context[:, 0])
            self.weights.append(weights)
        result = self.W_o(torch.cat(contexts, dim=-1))
        return (result, torch.cat(self.weights, dim=1)) if return_weights else result


@careless("collaborative_heads", "device", "dtype", how="head by head into zeros of float32")
def collaborative_heads_1(q, k, v, mixing, d_head):
    B, H, _, d_v = v.shape
    context = torch.zeros(B, H, q.shape[1], d_v)
    for h in range(H):
        scores = (q * mixing[h]) @ k.transpose(1, 2) / math.sqrt(d_head)
        context[:, h] = torch.softmax(scores, dim=-1) @ v[:, h]
    return context


@careless(
    "collaborative_heads", "other_order", "other_type", how="divides the mixing by NumPy's root"
)
def collaborative_heads_2(q, k, v, mixing, d_head):
    mixed = q.unsqueeze(1) * (mixing / np.sqrt(d_head))[None, :, None, :]
    return (mixed @ k.mT.unsqueeze(1)).softmax(dim=-1) @ v


@careless("collaborative_heads", "plain_numbers", how="feature by feature, from 0.0")
def collaborative_heads_3(q, k, v, mixing, d_head):
    scores = 0.0
    for d in range(q.shape[-1]):
        pairs = q[:, None, :, None, d] * k[:, None, None, :, d]
        scores = scores + mixing[None, :, d, None, None] * pairs
    return torch.softmax(scores / d_head**0.5, dim=-1) @ v


@careless("head_updates", "numpy", how="einsum in NumPy")
def head_updates_1(heads, W_o):
    B, H, T, d_head = heads.shape
    parts = W_o.detach().numpy().reshape(H, d_head, -1)
    return torch.from_numpy(np.einsum("bhtd,hde->bhte", heads.detach().numpy(), parts))


@careless("head_updates", "device", "dtype", how="number by number into zeros of float32")
def head_updates_2(heads, W_o):
    B, H, T, d_head = heads.shape
    updates = torch.zeros(B, H, T, W_o.shape[1])
    for h in range(H):
        for i in range(d_head):
            updates[:, h] += heads[:, h, :, i, None] * W_o[h * d_head + i]
    return updates
