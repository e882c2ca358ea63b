"""Lesson 18: attention without the (T, T) matrix, exact in tiles and approximate in a state."""

import math

import torch
from torch.nn import functional as F

from attention.provided import demand


def online_softmax(context, total, maximum, scores, v):
    """Take in the next block of keys: one step of a softmax that never sees all scores at once.

    context  (..., T_q, d_v)  sum of exp(score - maximum) · value over the keys so far; at first 0
    total    (..., T_q)       sum of exp(score - maximum) over the keys so far; at first 0
    maximum  (..., T_q)       the largest score so far; at first -inf
    scores   (..., T_q, n)    of the next n keys; -inf where a key is hidden
    v        (..., n, d_v)    their values
    returns  the new (context, total, maximum)

    After the last block, context / total is the weighted average. A query that has seen nothing but
    -inf so far keeps sums of 0 and a maximum of -inf.
    Source: Milakov and Gimelshein (2018), algorithm 3, with a weighted sum beside the total.

    >>> context, total, maximum = torch.zeros(1, 1), torch.zeros(1), torch.tensor([-math.inf])
    >>> for scores, v in (([[0.0]], [[10.0]]), ([[0.0, -math.inf]], [[20.0], [99.0]])):
    ...     scores, v = torch.tensor(scores), torch.tensor(v)
    ...     context, total, maximum = online_softmax(context, total, maximum, scores, v)
    >>> context, total, maximum
    (tensor([[30.]]), tensor([2.]), tensor([0.]))
    """
    # exercise: about 6 lines
    largest = torch.maximum(maximum, scores.amax(dim=-1))  # (..., T_q)
    # -inf minus -inf would be NaN. While there is nothing to sum, any finite number will do.
    reference = largest.masked_fill(largest == -math.inf, 0.0)
    shrink = torch.exp(maximum - reference)  # (..., T_q)
    powers = torch.exp(scores - reference.unsqueeze(-1))  # (..., T_q, n)
    context = shrink.unsqueeze(-1) * context + powers @ v  # (..., T_q, d_v)
    return context, shrink * total + powers.sum(dim=-1), largest


def tile_scores(q, k, i, j, block, causal=False):
    """Score the queries i … i + block - 1 against the keys j … j + block - 1: (..., n_q, n_k).

    The scores are scaled. With causal=True those of keys after their query are -inf. The last
    tiles may be smaller.
    """
    demand.counts(0, i=i, j=j)
    demand.counts(block=block)
    queries, keys = q[..., i : i + block, :], k[..., j : j + block, :]
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., n_q, n_k)
    if not causal:
        return scores
    query = torch.arange(i, i + scores.shape[-2], device=q.device).unsqueeze(1)
    key = torch.arange(j, j + scores.shape[-1], device=q.device)
    return scores.masked_fill(key > query, -math.inf)


def flash_attention(q, k, v, block, causal=False):
    """Compute attention tile by tile: exact, and no more than block · block scores at a time.

    q        (..., T_q, d_k)
    k        (..., T_k, d_k)
    v        (..., T_k, d_v)
    block    how many queries, and how many keys, a tile has; the last ones may have fewer
    causal   query i sees the keys 0 … i only
    returns  a pair: context (..., T_q, d_v), and lse (..., T_q), the logarithm of the sum of the
             exponentials of each query's scores

    Refuses a block below 1.
    Source: Rabe and Staats (2021), sections 2 and 3; Dao et al. (2022), algorithm 1.

    >>> q, k, v = torch.zeros(1, 1), torch.zeros(3, 1), torch.tensor([[3.0], [6.0], [9.0]])
    >>> context, lse = flash_attention(q, k, v, block=2)
    >>> round(context.item(), 4), round(lse.item(), 4)  # log 3, since there are three scores of 0
    (6.0, 1.0986)
    """
    demand.counts(block=block)
    # exercise: about 13 lines
    contexts, sums = [], []
    for i in range(0, q.shape[-2], block):
        maximum = torch.full_like(q[..., i : i + block, :1], -math.inf)  # (..., n_q, 1)
        total = context = 0.0
        for j in range(0, k.shape[-2], block):
            scores = tile_scores(q, k, i, j, block, causal)  # (..., n_q, n_k)
            # Every query sees key 0, so from the first tile on the maximum is finite.
            old, maximum = maximum, maximum.maximum(scores.amax(dim=-1, keepdim=True))
            powers, shrink = torch.exp(scores - maximum), torch.exp(old - maximum)
            total = shrink * total + powers.sum(dim=-1, keepdim=True)
            context = shrink * context + powers @ v[..., j : j + block, :]
        contexts.append(context / total)
        sums.append((maximum + total.log()).squeeze(-1))
    return torch.cat(contexts, dim=-2), torch.cat(sums, dim=-1)


def flash_attention_backward(q, k, v, context, lse, grad_context, block):
    """Carry a gradient back through `flash_attention`, computing each tile of weights again.

    q, k, v       (..., T_q, d_k), (..., T_k, d_k), (..., T_k, d_v)
    context, lse  (..., T_q, d_v), (..., T_q)  what `flash_attention` returned, not causal
    grad_context  (..., T_q, d_v)  gradient of a loss with respect to the context
    block         how many queries, and how many keys, a tile has
    returns       (grad_q, grad_k, grad_v), shaped like q, k and v

    Refuses a block below 1.
    Source: Dao et al. (2022), algorithm 4.
    """
    demand.counts(block=block)
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    # exercise: about 11 lines
    shared = (context * grad_context).sum(dim=-1, keepdim=True)  # (..., T_q, 1)
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        for j in range(0, k.shape[-2], block):
            columns = slice(j, j + block)
            scores = tile_scores(q, k, i, j, block)  # (..., n_q, n_k)
            weights = torch.exp(scores - lse[..., rows, None])
            grad_weights = grad_context[..., rows, :] @ v[..., columns, :].transpose(-2, -1)
            grad_scores = weights * (grad_weights - shared[..., rows, :]) / math.sqrt(q.shape[-1])
            grad_q[..., rows, :] += grad_scores @ k[..., columns, :]
            grad_k[..., columns, :] += grad_scores.transpose(-2, -1) @ q[..., rows, :]
            grad_v[..., columns, :] += weights.transpose(-2, -1) @ grad_context[..., rows, :]
    return grad_q, grad_k, grad_v


def positive_features(x):
    """Make every number positive: x + 1 from 0 on, and exp(x) below.

    Source: Katharopoulos et al. (2020), equation 7: elu(x) + 1.
    """
    return F.elu(x) + 1


def linear_attention(q, k, v):
    """Attention whose similarity is the dot product of positive features, without its matrix.

    q        (..., T_q, d_k)
    k        (..., T_k, d_k)
    v        (..., T_k, d_v)
    returns  (..., T_q, d_v)  the average of the values, weighted by
             positive_features(query) · positive_features(key)

    No tensor has both T_q and T_k among its axes. The scores are not scaled.
    Source: Katharopoulos et al. (2020), equation 6.

    >>> q, k, v = torch.zeros(1, 1), torch.tensor([[0.0], [2.0]]), torch.tensor([[10.0], [30.0]])
    >>> linear_attention(q, k, v)  # similarities of 1 and 3
    tensor([[25.]])
    """
    # exercise: about 4 lines
    q, k = positive_features(q), positive_features(k)
    state = k.transpose(-2, -1) @ v  # (..., d_k, d_v)
    normaliser = k.sum(dim=-2).unsqueeze(-1)  # (..., d_k, 1)
    return (q @ state) / (q @ normaliser)


def linear_attention_step(q, k, v, state, normaliser):
    """Read one position: causal linear attention as a recurrent network.

    q, k        (..., d_k)       query and key of the new position
    v           (..., d_v)       its value
    state       (..., d_k, d_v)  sum of features(key) · valueᵀ over all positions before; at first 0
    normaliser  (..., d_k)       sum of features(key) over all positions before; at first 0
    returns     (context, state, normaliser): context (..., d_v) of the new position, which sees
                itself and all before; the sums with the new position in them

    Source: Katharopoulos et al. (2020), equations 16 to 20.

    >>> zero, v = torch.zeros(1), torch.tensor([10.0])
    >>> _, state, normaliser = linear_attention_step(zero, zero, v, torch.zeros(1, 1), zero)
    >>> linear_attention_step(zero, zero + 2, 3 * v, state, normaliser)  # similarities of 1 and 3
    (tensor([25.]), tensor([[100.]]), tensor([4.]))
    """
    # exercise: about 5 lines
    q, k = positive_features(q), positive_features(k)
    state = state + k.unsqueeze(-1) * v.unsqueeze(-2)  # (..., d_k, d_v)
    normaliser = normaliser + k
    context = (q.unsqueeze(-2) @ state).squeeze(-2)  # (..., d_v)
    return context / (q * normaliser).sum(dim=-1, keepdim=True), state, normaliser


def operations_per_byte(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    """Count the operations of one attention layer for each byte that it reads (lesson 12).

    n_new     positions that each sequence reads now: its prompt in prefill, 1 in decode
    n_cached  positions of each sequence whose keys and values are in its cache already
    batch     sequences that are read at once
    group     query heads that share one head of keys and values; divides d_model
    returns   a float

    Operations: two for each product of two numbers, in the four projections of every new position,
    and in its scores and its weighted average over all n_cached + n_new positions; hidden scores
    count. With d = d_model, W_q and W_o are d · d; W_k and W_v are d · d / group.
    Bytes: those of the four matrices, once for the whole batch, and of the n_cached keys and
    values in each cache, d / group numbers each. Everything else that moves is left out, also the
    keys and values of the new positions.
    Refuses a group that does not divide d_model, n_cached below 0, and other numbers below 1.

    >>> operations_per_byte(n_new=1, n_cached=0, batch=1, d_model=100)
    1.005
    """
    demand.counts(0, n_cached=n_cached)
    demand.counts(n_new=n_new, batch=batch, d_model=d_model, group=group)
    demand.counts(bytes_per_number=bytes_per_number)
    if d_model % group:
        raise ValueError(f"group={group} does not divide d_model={d_model}")
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model  # for each new position
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)
