"""Careless right answers to lesson 06."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from attention.masked_attention import suspect
from tests.locked.careless import careless


@careless("masked_attention", "device", how="scalar tensors beside where")
def masked_attention_1(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        sees = mask.any(dim=-1, keepdim=True)
        scores = torch.where(mask | ~sees, scores, torch.tensor(-math.inf))
        weights = torch.where(sees, torch.softmax(scores, dim=-1), torch.tensor(0.0))
    context = weights @ v
    return (context, weights) if return_weights else context


@careless(
    "masked_attention", "other_order", how="empty rows get equal scores, their weights times 0"
)
def masked_attention_2(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is not None:
        sees = mask.any(dim=-1, keepdim=True)
        scores = scores.masked_fill(~mask, -math.inf).masked_fill(~sees, 0.0)
        weights = torch.softmax(scores, dim=-1) * sees
    else:
        weights = torch.softmax(scores, dim=-1)
    return (weights @ v, weights) if return_weights else weights @ v


@careless("masked_attention", "device", "dtype", how="its own softmax with ones of float32")
def masked_attention_3(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    top = scores.detach().amax(dim=-1, keepdim=True)
    powers = torch.exp(scores - top.masked_fill(top == -math.inf, 0.0))
    total = powers.sum(dim=-1, keepdim=True)
    weights = powers / torch.where(total > 0, total, torch.ones(total.shape))
    context = weights @ v
    return (context, weights) if return_weights else context


@careless("leaks", "seed", "device", "dtype", how="another random future, global seed")
def leaks_1(name, x, t):
    torch.manual_seed(0)
    other = x.clone()
    other[t + 1 :] = torch.randn(len(x) - t - 1, x.shape[1])
    before, after = suspect(name, x)[: t + 1], suspect(name, other)[: t + 1]
    return not torch.allclose(before, after)


@careless("leaks", "numpy", "other_type", how="compares in NumPy, and returns NumPy's bool")
def leaks_2(name, x, t):
    generator = np.random.default_rng(0)
    other = x.detach().numpy().copy()
    other[t + 1 :] += generator.uniform(0.5, 1.5, size=other[t + 1 :].shape)
    first = suspect(name, x).detach().numpy()[: t + 1]
    second = suspect(name, torch.from_numpy(other)).numpy()[: t + 1]
    return np.any(np.abs(first - second) > 1e-6)


@careless("leaks", "device", "plain_numbers", how="adds a list of different numbers to the future")
def leaks_3(name, x, t):
    shift = torch.tensor([1.0 + 0.37 * (-1) ** f * (f + 1) / x.shape[1] for f in range(x.shape[1])])
    other = torch.cat([x[: t + 1], x[t + 1 :] + shift])
    before, after = suspect(name, x), suspect(name, other)
    return any(bool((before[i] - after[i]).abs().max() > 1e-6) for i in range(t + 1))


@careless("break_leaks", "plain_numbers", how="lists of numbers")
def break_leaks_1():
    return "B", torch.tensor([[1.0, 2], [0, 0]]), 0


@careless("break_leaks", "seed", how="random vectors with a future of zeros, global seed")
def break_leaks_2():
    torch.manual_seed(0)
    x = torch.randn(4, 3)
    x[2:] = 0
    return "C", x, 1


@careless("break_leaks", "other_type", how="the position is NumPy's int")
def break_leaks_3():
    x = torch.eye(4)
    x[2:] = 0
    return "D", x, np.int64(1)


@careless("longformer_mask", "numpy", how="marks the global positions in NumPy")
def longformer_mask_1(T, window, global_positions, device=None):
    mask = torch.ones(T, T, dtype=torch.bool, device=device).triu(-window).tril(window)
    row = torch.tensor(np.isin(np.arange(T), global_positions), device=device)
    return mask | row[None, :] | row[:, None]


@careless("longformer_mask", "plain_numbers", how="lists of True and False, entry by entry")
def longformer_mask_2(T, window, global_positions, device=None):
    rows = [
        [abs(i - j) <= window or i in global_positions or j in global_positions for j in range(T)]
        for i in range(T)
    ]
    return torch.tensor(rows, device=device)


@careless("longformer_mask", "in_place", how="position by position")
def longformer_mask_3(T, window, global_positions, device=None):
    mask = torch.ones(T, T, dtype=torch.bool, device=device).triu(-window).tril(window)
    for g in global_positions:
        mask[g] = True
        mask[:, g] = True
    return mask


@careless("sliding_window_attention", "device", how="a table of positions without a device")
def sliding_window_attention_1(q, k, v, window):
    T, width = q.shape[-2], 2 * window + 1
    k, v = F.pad(k, (0, 0, window, window)), F.pad(v, (0, 0, window, window))
    columns = [(q * k[..., c : c + T, :]).sum(dim=-1) for c in range(width)]
    scores = torch.stack(columns, dim=-1) / math.sqrt(q.shape[-1])
    place = torch.arange(T)[:, None] + torch.arange(width) - window
    scores = torch.where((place >= 0) & (place < T), scores, torch.tensor(-math.inf))
    weights = torch.softmax(scores, dim=-1)
    context = torch.zeros(v[..., :T, :].shape, dtype=v.dtype)
    for c in range(width):
        context = context + weights[..., c : c + 1] * v[..., c : c + T, :]
    return context


@careless("sliding_window_attention", "in_place", "plain_numbers", how="-inf in place, from 0.0")
def sliding_window_attention_2(q, k, v, window):
    T, width = q.shape[-2], 2 * window + 1
    k, v = F.pad(k, (0, 0, window, window)), F.pad(v, (0, 0, window, window))
    columns = []
    for c in range(width):
        column = (q * k[..., c : c + T, :]).sum(dim=-1) / q.shape[-1] ** 0.5
        before, after = max(window - c, 0), max(c - window, 0)
        column[..., :before] = -math.inf
        column[..., max(T - after, 0) :] = -math.inf
        columns.append(column)
    weights, context = torch.softmax(torch.stack(columns, dim=-1), dim=-1), 0.0
    for c, weight in enumerate(weights.unbind(-1)):
        context = context + weight.unsqueeze(-1) * v[..., c : c + T, :]
    return context
