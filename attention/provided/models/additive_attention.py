"""Additive attention in one call, for whoever has written its two halves."""

import torch
from torch import Tensor


def attend(
    queries: Tensor, keys: Tensor, v: Tensor, values: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Score projected queries against projected keys, make weights, and average the values.

    queries  (B, T_q, d_attention)  already multiplied by W_q
    keys     (B, T_k, d_attention)  already multiplied by W_k
    v        (d_attention,)
    values   (B, T_k, d_v)
    lengths  (B,)                   true numbers of keys
    returns  context (B, T_q, d_v) and weights (B, T_q, T_k), exactly 0 for padding

    Queries and keys come projected, so that what stays the same is projected once.
    """
    pairs = queries.unsqueeze(2).add(keys.unsqueeze(1))  # (B, T_q, T_k, d_attention)
    scores = torch.einsum("bqka,a->bqk", pairs.tanh(), v)
    beyond = torch.arange(keys.shape[1], device=keys.device).ge(lengths[:, None])  # (B, T_k)
    weights = scores.masked_fill(beyond[:, None], -torch.inf).softmax(dim=-1)
    return torch.bmm(weights, values), weights
