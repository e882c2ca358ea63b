"""Additive attention in one call, for whoever has written its two halves."""

import torch
from torch import Tensor


def attend(
    queries: Tensor, keys: Tensor, v: Tensor, values: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Score projected queries against projected keys, share out the weights, average the values.

    queries  (B, T_q, d_attention)  already multiplied by W_q
    keys     (B, T_k, d_attention)  already multiplied by W_k
    v        (d_attention,)
    values   (B, T_k, d_v)
    lengths  (B,)                   true numbers of keys
    returns  context (B, T_q, d_v), weights (B, T_q, T_k); a key beyond the length weighs exactly 0
    """
    pairs = queries.unsqueeze(2).add(keys.unsqueeze(1))  # (B, T_q, T_k, d_attention)
    scores = torch.einsum("bqka,a->bqk", pairs.tanh(), v)
    return share_out(scores, values, lengths)


def share_out(scores: Tensor, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Make weights of scores (B, T_q, T_k), none for padding; returns context and weights."""
    last = scores.shape[-1] - 1
    beyond = torch.arange(last + 1, device=scores.device).gt(lengths[:, None] - 1)  # (B, T_k)
    weights = scores.masked_fill(beyond[:, None], -torch.inf).softmax(dim=-1)
    return torch.bmm(weights, values), weights
