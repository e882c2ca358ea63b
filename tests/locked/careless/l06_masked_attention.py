"""Careless right answers to lesson 06."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from attention.masked_attention import suspect
from tests.locked.careless import careless


@careless("padding_mask", "device", how="positions without a device")
def padding_mask_1(lengths, T):
    return (torch.arange(T)[None, :] < lengths[:, None]).unsqueeze(1)


@careless("padding_mask", "device", how="row by row into zeros without a device")
def padding_mask_2(lengths, T):
    mask = torch.zeros(len(lengths), 1, T, dtype=torch.bool)
    for b, n in enumerate(lengths):
        mask[b, 0, :n] = True
    return mask


@careless("padding_mask", "numpy", how="a comparison in NumPy")
def padding_mask_3(lengths, T):
    return torch.from_numpy(np.arange(T)[None, None, :] < lengths.numpy()[:, None, None])


@careless("padding_mask", "device", "plain_numbers", how="lists of True and False")
def padding_mask_4(lengths, T):
    return torch.tensor([[[j < n for j in range(T)]] for n in lengths.tolist()])


@careless("causal_mask", "numpy", how="NumPy's lower triangle")
def causal_mask_1(T, device=None):
    return torch.tensor(np.tri(T, dtype=bool), device=device)


@careless("causal_mask", "plain_numbers", how="lists of True and False")
def causal_mask_2(T, device=None):
    return torch.tensor([[j <= i for j in range(T)] for i in range(T)], device=device)


@careless("causal_mask", "dtype", how="a triangle of float32 compared with 0")
def causal_mask_3(T, device=None):
    return torch.ones(T, T, dtype=torch.float32, device=device).tril() > 0


@careless("local_mask", "plain_numbers", how="lists of True and False")
def local_mask_1(T, window, device=None):
    rows = [[abs(i - j) <= window for j in range(T)] for i in range(T)]
    return torch.tensor(rows, dtype=torch.bool, device=device)


@careless("local_mask", "numpy", how="a table of distances in NumPy")
def local_mask_2(T, window, device=None):
    places = np.arange(T)
    return torch.tensor(np.abs(places[:, None] - places[None, :]) <= window, device=device)


@careless("combine_masks", "device", how="begins with a scalar True without a device")
def combine_masks_1(*masks):
    result, found = torch.tensor(True), False
    for mask in masks:
        if mask is not None:
            result, found = result & mask, True
    return result if found else None


@careless("combine_masks", "dtype", how="multiplies masks as numbers of float32")
def combine_masks_2(*masks):
    result = None
    for mask in masks:
        if mask is not None:
            result = mask.float() if result is None else result * mask.float()
    return None if result is None else result > 0


@careless("combine_masks", "extra_axis", how="broadcasts first, then stacks and asks for all")
def combine_masks_3(*masks):
    masks = [mask for mask in masks if mask is not None]
    if not masks:
        return None
    return torch.stack(torch.broadcast_tensors(*masks)).all(dim=0)


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


@careless("bigbird_mask", "plain_numbers", how="blocks in lists, winners by sorting")
def bigbird_mask_1(n_blocks, block_size, n_random, seed):
    generator = torch.Generator().manual_seed(seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=generator)
    ends, rows = (0, n_blocks - 1), []
    for i in range(n_blocks):
        row = [abs(i - j) <= 1 or i in ends or j in ends for j in range(n_blocks)]
        left = [j for j in range(n_blocks) if not row[j]]
        for j in sorted(left, key=lambda j: -lottery[i, j].item())[:n_random]:
            row[j] = True
        rows.append(row)
    T = n_blocks * block_size
    return torch.tensor(
        [[rows[a // block_size][b // block_size] for b in range(T)] for a in range(T)]
    )


@careless("bigbird_mask", "numpy", how="argsort and the Kronecker product of NumPy")
def bigbird_mask_2(n_blocks, block_size, n_random, seed):
    generator = torch.Generator().manual_seed(seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=generator).numpy()
    place = np.arange(n_blocks)
    mask = np.abs(place[:, None] - place) <= 1
    mask[[0, -1]] = True
    mask[:, [0, -1]] = True
    winners = np.argsort(np.where(mask, np.inf, -lottery), axis=1)[:, :n_random]
    np.put_along_axis(mask, winners, True, axis=1)
    return torch.from_numpy(np.kron(mask, np.ones((block_size, block_size), dtype=bool)))


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
