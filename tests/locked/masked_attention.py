"""Answers to lesson 06 that were written without a look at its checks."""

import math

import torch
from torch.nn import functional as F

from attention.masked_attention import suspect
from attention.provided import demand
from tests.locked import right, wrong

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


# --- packed_mask ---------------------------------------------------------------------------------


@wrong("packed_mask", cause="takes the first T_q positions for the queries")
def packed_mask_1(document, T_q):
    T_k = document.shape[1]
    demand.counts(1, T_k, T_q=T_q)
    key = torch.arange(T_k, device=document.device)
    query = key[:T_q, None]
    asks = document[:, :T_q, None]
    return (key <= query) & (asks == document[:, None]) & (asks != 0)


@wrong("packed_mask", cause="padding sees padding, as if it were a document")
def packed_mask_2(document, T_q):
    T_k = document.shape[1]
    demand.counts(1, T_k, T_q=T_q)
    key = torch.arange(T_k, device=document.device)
    query = key[-T_q:, None]
    return (key <= query) & (document[:, -T_q:, None] == document[:, None])


@wrong("packed_mask", cause="a position does not see itself")
def packed_mask_3(document, T_q):
    T_k = document.shape[1]
    demand.counts(1, T_k, T_q=T_q)
    key = torch.arange(T_k, device=document.device)
    query = key[-T_q:, None]
    asks = document[:, -T_q:, None]
    return (key < query) & (asks == document[:, None]) & (asks != 0)


@wrong("packed_mask", cause="the last positions, but the documents of the first ones")
def packed_mask_4(document, T_q):
    T_k = document.shape[1]
    demand.counts(1, T_k, T_q=T_q)
    key = torch.arange(T_k, device=document.device)
    query = torch.arange(T_k - T_q, T_k, device=document.device)[:, None]
    asks = document[:, :T_q, None]
    return (key <= query) & (asks == document[:, None]) & (document != 0)[:, None]


@wrong("packed_mask", cause="makes the positions on the CPU, wherever document is", kind="device")
def packed_mask_5(document, T_q):
    T_k = document.shape[1]
    demand.counts(1, T_k, T_q=T_q)
    key = torch.arange(T_k)
    query = torch.arange(T_k - T_q, T_k)[:, None]
    asks = document[:, -T_q:, None]
    return (key <= query) & (asks == document[:, None]) & (asks != 0)


@right("packed_mask", how="the whole square by tril and products, and then its last rows")
def packed_mask_6(document, T_q):
    T_k = document.shape[1]
    demand.counts(1, T_k, T_q=T_q)
    same = document.unsqueeze(2).eq(document.unsqueeze(1))
    real = document.gt(0)
    square = same * real.unsqueeze(1) * real.unsqueeze(2)
    return square.tril()[:, T_k - T_q :]


@right("packed_mask", how="cell by cell into a table of False")
def packed_mask_7(document, T_q):
    B, T_k = document.shape
    demand.counts(1, T_k, T_q=T_q)
    mask = torch.zeros(B, T_q, T_k, dtype=torch.bool)
    for b, row in enumerate(document.tolist()):
        for i in range(T_q):
            place = T_k - T_q + i
            for j in range(place + 1):
                mask[b, i, j] = row[j] == row[place] and row[j] > 0
    return mask.to(document.device)


# --- companions_that_matter ----------------------------------------------------------------------


@wrong("companions_that_matter", cause="asks whether the companion's translation changes, too")
def companions_that_matter_1(translate, text, others):
    alone = translate([text])
    return [other for other in others if translate([text, other]) != alone + translate([other])]


@wrong("companions_that_matter", cause="tries all companions in one batch")
def companions_that_matter_2(translate, text, others):
    alone = translate([text])[0]
    return list(others) if translate([text, *others])[0] != alone else []


@wrong("companions_that_matter", cause="takes the companion's translation for that of the text")
def companions_that_matter_3(translate, text, others):
    alone = translate([text])[0]
    return [other for other in others if translate([other, text])[0] != alone]


@wrong("companions_that_matter", cause="leaves the companions in the batch, one more each time")
def companions_that_matter_4(translate, text, others):
    alone = translate([text])[0]
    batch, found = [text], []
    for other in others:
        batch.append(other)
        if translate(batch)[0] != alone:
            found.append(other)
    return found


@wrong("companions_that_matter", cause="a bool for each companion, not the companions", kind="type")
def companions_that_matter_5(translate, text, others):
    alone = translate([text])[0]
    return [translate([text, other])[0] != alone for other in others]


@right("companions_that_matter", how="the companion first in its batch, by filter")
def companions_that_matter_6(translate, text, others):
    (alone,) = translate([text])
    return list(filter(lambda other: translate([other, text])[-1] != alone, others))


@right("companions_that_matter", how="a loop that removes those that do not matter")
def companions_that_matter_7(translate, text, others):
    left = []
    for other in others:
        left.append(other)
        said, _ = translate([text, other])
        if said == translate([text])[0]:
            left.pop()
    return left
