"""Answers to lesson 06 that were written without a look at its checks."""

import math
from functools import reduce

import torch
from torch.nn import functional as F

from attention.masked_attention import suspect
from tests.locked import right, wrong

# --- padding_mask ----------------------------------------------------------------------------


@wrong("padding_mask", cause="makes the positions on the CPU", kind="device")
def padding_mask_5(lengths, T):
    return (torch.arange(T) < lengths[:, None])[:, None]


@right("padding_mask", how="fills row by row")
def padding_mask_8(lengths, T):
    mask = torch.zeros(len(lengths), 1, T, dtype=torch.bool, device=lengths.device)
    for row, n in zip(mask, lengths.tolist(), strict=True):
        row[:, :n] = True
    return mask


# --- causal_mask -----------------------------------------------------------------------------


@wrong("causal_mask", cause="ignores the device", kind="device")
def causal_mask_6(T, device=None):
    return torch.tril(torch.ones(T, T, dtype=torch.bool))


@right("causal_mask", how="not the upper triangle")
def causal_mask_7(T, device=None):
    return ~torch.ones((T, T), device=device).triu(1).bool()


@right("causal_mask", how="compares positions; the result is a transposed view")
def causal_mask_8(T, device=None):
    i = torch.arange(T, device=device)
    return (i[:, None] <= i[None, :]).T


# --- local_mask ------------------------------------------------------------------------------


@wrong("local_mask", cause="makes the mask on the CPU, whatever device is asked for", kind="device")
def local_mask_5(T, window, device=None):
    i = torch.arange(T)
    return (i[:, None] - i[None, :]).abs() <= window


@wrong("local_mask", cause="the neighbourhood wraps around at the ends", kind="value")
def local_mask_6(T, window, device=None):
    i = torch.arange(T, device=device)
    gap = (i[:, None] - i).abs()
    return torch.minimum(gap, T - gap) <= window


@right("local_mask", how="a band cut out by tril and triu")
def local_mask_7(T, window, device=None):
    everything = torch.ones(T, T, dtype=torch.bool, device=device)
    return everything.tril(window).triu(-window)


@right("local_mask", how="one slice per row")
def local_mask_8(T, window, device=None):
    mask = torch.zeros(T, T, dtype=torch.bool, device=device)
    for i in range(T):
        mask[i, max(0, i - window) : i + window + 1] = True
    return mask


# --- longformer_mask -------------------------------------------------------------------------


@wrong("longformer_mask", cause="forgets the window: only global positions", kind="value")
def longformer_mask_4(T, window, global_positions, device=None):
    mask = torch.eye(T, dtype=torch.bool, device=device)
    for g in global_positions:
        mask[g] = True
        mask[:, g] = True
    return mask


@wrong(
    "longformer_mask",
    cause="makes the mask on the CPU, whatever device is asked for",
    kind="device",
)
def longformer_mask_5(T, window, global_positions, device=None):
    i = torch.arange(T)
    mask = (i[:, None] - i).abs() <= window
    mask[global_positions, :] = True
    mask[:, global_positions] = True
    return mask


@wrong("longformer_mask", cause="takes only the first of the global positions", kind="value")
def longformer_mask_6(T, window, global_positions, device=None):
    i = torch.arange(T, device=device)
    mask = (i[:, None] - i).abs() <= window
    for g in global_positions:
        mask[g, :] = True
        mask[:, g] = True
        return mask
    return mask


@wrong("longformer_mask", cause="takes the positions out of the caller's list", kind="state")
def longformer_mask_7(T, window, global_positions, device=None):
    i = torch.arange(T, device=device)
    mask = (i[:, None] - i).abs() <= window
    while global_positions:
        g = global_positions.pop()
        mask[g, :] = True
        mask[:, g] = True
    return mask


@right("longformer_mask", how="or of three tables, made of a row of bools")
def longformer_mask_8(T, window, global_positions, device=None):
    i = torch.arange(T, device=device)
    near = (i.unsqueeze(0) - i.unsqueeze(1)).abs() <= window
    is_global = torch.tensor([j in set(global_positions) for j in range(T)], device=device)
    return near | is_global.unsqueeze(0) | is_global.unsqueeze(1)


# --- bigbird_mask ----------------------------------------------------------------------------


@wrong("bigbird_mask", cause="always draws one random block, whatever n_random says", kind="value")
def bigbird_mask_4(n_blocks, block_size, n_random, seed):
    generator = torch.Generator().manual_seed(seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=generator)
    block = torch.arange(n_blocks)
    sees = (block[:, None] - block).abs() <= 1
    sees[[0, -1], :] = True
    sees[:, [0, -1]] = True
    winner = lottery.masked_fill(sees, -1.0).argmax(dim=1, keepdim=True)
    sees = sees.scatter(1, winner, True)
    return sees.repeat_interleave(block_size, 0).repeat_interleave(block_size, 1)


@wrong("bigbird_mask", cause="random blocks are drawn per column: topk along dim 0", kind="value")
def bigbird_mask_6(n_blocks, block_size, n_random, seed):
    generator = torch.Generator().manual_seed(seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=generator)
    block = torch.arange(n_blocks)
    sees = (block[:, None] - block).abs() <= 1
    sees[[0, -1], :] = True
    sees[:, [0, -1]] = True
    winners = lottery.masked_fill(sees, -1.0).topk(n_random, dim=0).indices
    sees = sees.scatter(0, winners, True)
    return sees.repeat_interleave(block_size, 0).repeat_interleave(block_size, 1)


@wrong(
    "bigbird_mask",
    cause="draws before the end blocks are global, so a draw may be spent on one of them",
    kind="value",
)
def bigbird_mask_7(n_blocks, block_size, n_random, seed):
    generator = torch.Generator().manual_seed(seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=generator)
    block = torch.arange(n_blocks)
    sees = (block[:, None] - block).abs() <= 1
    winners = lottery.masked_fill(sees, -1.0).topk(n_random, dim=1).indices
    sees = sees.scatter(1, winners, True)
    sees[[0, -1], :] = True
    sees[:, [0, -1]] = True
    return sees.repeat_interleave(block_size, 0).repeat_interleave(block_size, 1)


@right("bigbird_mask", how="plain lists and sorting, widened by indexing")
def bigbird_mask_9(n_blocks, block_size, n_random, seed):
    generator = torch.Generator().manual_seed(seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=generator)
    last = n_blocks - 1
    table = []
    for i, numbers in enumerate(lottery.tolist()):
        seen = {j for j in range(n_blocks) if abs(i - j) < 2 or j in (0, last) or i in (0, last)}
        unseen = sorted(set(range(n_blocks)) - seen, key=lambda j: -numbers[j])
        seen.update(unseen[:n_random])
        table.append([j in seen for j in range(n_blocks)])
    block_of = torch.arange(n_blocks * block_size) // block_size
    return torch.tensor(table)[block_of][:, block_of]


@right("bigbird_mask", how="ranks from argsort, widened by kron")
def bigbird_mask_10(n_blocks, block_size, n_random, seed):
    generator = torch.Generator().manual_seed(seed)
    lottery = torch.rand(n_blocks, n_blocks, generator=generator)
    i = torch.arange(n_blocks)
    is_end = (i == 0) | (i == n_blocks - 1)
    sees = ((i[:, None] - i).abs() <= 1) | is_end[:, None] | is_end
    rank = (lottery - 2.0 * sees).argsort(dim=1, descending=True).argsort(dim=1)
    sees = sees | (rank < n_random)
    return torch.kron(sees.int(), torch.ones(block_size, block_size, dtype=torch.int)).bool()


# --- combine_masks ---------------------------------------------------------------------------


@wrong("combine_masks", cause="None is not left out, and & fails on it", kind="crash")
def combine_masks_3(*masks):
    combined = masks[0]
    for mask in masks[1:]:
        combined = combined & mask
    return combined


@wrong("combine_masks", cause="without any mask it returns True instead of None", kind="type")
def combine_masks_4(*masks):
    combined = torch.tensor(True)
    for mask in masks:
        if mask is not None:
            combined = combined & mask
    return combined


@wrong("combine_masks", cause="stack needs equal shapes and does not broadcast", kind="crash")
def combine_masks_6(*masks):
    masks = [mask for mask in masks if mask is not None]
    if not masks:
        return None
    return torch.stack(masks).all(dim=0)


@wrong("combine_masks", cause="multiplies numbers: the result is float, not bool", kind="dtype")
def combine_masks_7(*masks):
    combined = None
    for mask in masks:
        if mask is not None:
            mask = mask.float()
            combined = mask if combined is None else combined * mask
    return combined


@wrong("combine_masks", cause="a None anywhere makes the whole result None", kind="value")
def combine_masks_8(*masks):
    if any(mask is None for mask in masks):
        return None
    return reduce(torch.logical_and, masks)


@right("combine_masks", how="reduce with logical_and")
def combine_masks_9(*masks):
    given = [mask for mask in masks if mask is not None]
    return reduce(torch.logical_and, given) if given else None


@right("combine_masks", how="recursion")
def combine_masks_10(*masks):
    if not masks:
        return None
    first, rest = masks[0], combine_masks_10(*masks[1:])
    if first is None:
        return rest
    return first if rest is None else torch.bitwise_and(first, rest)


# --- masked_attention ------------------------------------------------------------------------


@wrong(
    "masked_attention",
    cause="repairs the context but returns weights that are NaN in empty rows",
    kind="value",
)
def masked_attention_4(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    context = (weights @ v).nan_to_num(0.0)
    return (context, weights) if return_weights else context


@wrong("masked_attention", cause="fails without a mask: None has no inverse", kind="crash")
def masked_attention_7(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    hidden = ~mask & mask.any(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    context = weights @ v
    return (context, weights) if return_weights else context


@wrong(
    "masked_attention",
    cause="the weights of empty rows are not erased: such a query sees everything",
    kind="value",
)
def masked_attention_8(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is not None:
        hidden = ~mask & mask.any(dim=-1, keepdim=True)
        scores = scores.masked_fill(hidden, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    context = weights @ v
    return (context, weights) if return_weights else context


@wrong(
    "masked_attention", cause="opens the first key of empty rows in the caller's mask", kind="state"
)
def masked_attention_9(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        empty = ~mask.any(dim=-1, keepdim=True)
        mask[..., :1] |= empty
        weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
        weights = weights.masked_fill(empty, 0.0)
    context = weights @ v
    return (context, weights) if return_weights else context


@right("masked_attention", how="masked_fill, softmax, nan_to_num on the weights")
def masked_attention_10(q, k, v, mask=None, return_weights=False):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1).nan_to_num(nan=0.0)
    context = weights @ v
    return (context, weights) if return_weights else context


@right("masked_attention", how="exponentials written out, a sum of 0 replaced by 1")
def masked_attention_11(q, k, v, mask=None, return_weights=False):
    scores = torch.einsum("...qd,...kd->...qk", q / math.sqrt(q.shape[-1]), k)
    if mask is None:
        mask = torch.ones((), dtype=torch.bool, device=q.device)
    top = torch.where(mask, scores, -math.inf).amax(dim=-1, keepdim=True).detach()
    top = torch.where(top.isinf(), 0.0, top)
    shifted = torch.where(mask, scores - top, 0.0)
    powers = torch.where(mask, shifted.exp(), 0.0)
    total = powers.sum(dim=-1, keepdim=True)
    weights = powers / torch.where(total == 0, 1.0, total)
    if return_weights:
        return weights @ v, weights
    return weights @ v


# --- leaks -----------------------------------------------------------------------------------


@wrong(
    "leaks",
    cause="knows the layers by name and runs nothing, so x and t play no role",
    kind="value",
)
def leaks_7(name, x, t):
    return name in ("B", "C", "D", "F", "G")


@right("leaks", how="random numbers for the future, and the largest difference")
def leaks_9(name, x, t):
    generator = torch.Generator().manual_seed(0)
    past, future = x[: t + 1], x[t + 1 :]
    noise = 3 * torch.randn(future.shape, generator=generator, dtype=x.dtype)
    changed = suspect(name, torch.cat([past, future + noise]))
    difference = changed[: t + 1] - suspect(name, x)[: t + 1]
    return bool(difference.abs().max() > 1e-6 * (1 + x.abs().max()))


# --- sliding_window_attention ----------------------------------------------------------------


@wrong(
    "sliding_window_attention",
    cause="hides one row too few at the end: the last queries see padding",
    kind="value",
)
def sliding_window_attention_5(q, k, v, window):
    T, width = q.shape[-2], 2 * window + 1
    k, v = F.pad(k, (0, 0, window, window)), F.pad(v, (0, 0, window, window))
    scores = [(q * k[..., c : c + T, :]).sum(dim=-1) for c in range(width)]
    scores = torch.stack(scores, dim=-1) / math.sqrt(q.shape[-1])
    position = torch.arange(T, device=q.device)[:, None] + torch.arange(width, device=q.device)
    outside = (position < window) | (position > T + window)
    weights = torch.softmax(scores.masked_fill(outside, -math.inf), dim=-1)
    return sum(weights[..., c, None] * v[..., c : c + T, :] for c in range(width))


@wrong(
    "sliding_window_attention", cause="slices the first axis: wrong with leading axes", kind="size"
)
def sliding_window_attention_6(q, k, v, window):
    T, width = len(q), 2 * window + 1
    k, v = F.pad(k, (0, 0, window, window)), F.pad(v, (0, 0, window, window))
    scores = torch.stack([(q * k[c : c + T]).sum(dim=1) for c in range(width)], dim=1)
    scores = scores / math.sqrt(q.shape[1])
    position = torch.arange(T, device=q.device)[:, None] + torch.arange(width, device=q.device)
    outside = (position < window) | (position >= T + window)
    weights = torch.softmax(scores.masked_fill(outside, -math.inf), dim=1)
    return sum(weights[:, c, None] * v[c : c + T] for c in range(width))


@wrong(
    "sliding_window_attention",
    cause="looks only to the left: the window does not reach to the other side",
    kind="value",
)
def sliding_window_attention_7(q, k, v, window):
    T, width = q.shape[-2], window + 1
    k, v = F.pad(k, (0, 0, window, 0)), F.pad(v, (0, 0, window, 0))
    scores = [(q * k[..., c : c + T, :]).sum(dim=-1) for c in range(width)]
    scores = torch.stack(scores, dim=-1) / math.sqrt(q.shape[-1])
    position = torch.arange(T, device=q.device)[:, None] + torch.arange(width, device=q.device)
    weights = torch.softmax(scores.masked_fill(position < window, -math.inf), dim=-1)
    return sum(weights[..., c, None] * v[..., c : c + T, :] for c in range(width))


@wrong(
    "sliding_window_attention",
    cause="collects the scores in a float32 tensor, so float64 loses half its digits",
    kind="dtype",
)
def sliding_window_attention_8(q, k, v, window):
    T, width = q.shape[-2], 2 * window + 1
    k, v = F.pad(k, (0, 0, window, window)), F.pad(v, (0, 0, window, window))
    scores = torch.zeros(*q.shape[:-1], width, device=q.device)
    for c in range(width):
        scores[..., c] = (q * k[..., c : c + T, :]).sum(dim=-1) / math.sqrt(q.shape[-1])
    position = torch.arange(T, device=q.device)[:, None] + torch.arange(width, device=q.device)
    outside = (position < window) | (position >= T + window)
    weights = torch.softmax(scores.masked_fill(outside, -math.inf), dim=-1).to(v.dtype)
    return sum(weights[..., c, None] * v[..., c : c + T, :] for c in range(width))


@right(
    "sliding_window_attention",
    how="no padding: fills a table of −∞ offset by offset, where both positions exist",
)
def sliding_window_attention_9(q, k, v, window):
    T, scale = q.shape[-2], 1 / math.sqrt(q.shape[-1])
    ranges = [(c, max(0, -c), min(T, T - c)) for c in range(-window, window + 1)]
    ranges = [(c, low, high) for c, low, high in ranges if low < high]
    scores = q.new_full((*q.shape[:-1], len(ranges)), -math.inf)
    for column, (c, low, high) in enumerate(ranges):
        products = q[..., low:high, :] * k[..., low + c : high + c, :]
        scores[..., low:high, column] = products.sum(dim=-1) * scale
    weights = scores.softmax(dim=-1)
    context = torch.zeros_like(v)
    for column, (c, low, high) in enumerate(ranges):
        share = weights[..., low:high, column].unsqueeze(-1)
        context[..., low:high, :] += share * v[..., low + c : high + c, :]
    return context


@right(
    "sliding_window_attention",
    how="goes over the offsets once, with a running maximum, sum and average",
)
def sliding_window_attention_10(q, k, v, window):
    T, scale = q.shape[-2], q.shape[-1] ** -0.5
    window = min(window, T - 1)
    top = (q * k).sum(dim=-1, keepdim=True) * scale
    total, context = torch.ones_like(top), v
    for offset in (c for w in range(1, window + 1) for c in (-w, w)):
        shape = (0, 0, -offset, 0) if offset < 0 else (0, 0, 0, offset)
        cut = slice(None, offset) if offset < 0 else slice(offset, None)
        own = slice(-offset, None) if offset < 0 else slice(None, T - offset)
        score = (q[..., own, :] * k[..., cut, :]).sum(dim=-1, keepdim=True) * scale
        score = F.pad(score, shape, value=-math.inf)
        higher = torch.maximum(top, score)
        old, new = torch.exp(top - higher), torch.exp(score - higher)
        total = total * old + new
        context = context * old + new * F.pad(v[..., cut, :], shape)
        top = higher
    return context / total
