"""Lesson 06: masks say who may look at whom: True = this query may attend to this key."""

import math

import torch
from torch.nn import functional as F

from attention.provided import demand


def packed_mask(document, T_q):
    """Let every position see its own document, up to itself.

    document  (B, T_k) int  which document each position of a row belongs to, counted from 1; 0 is
                            padding, which sees nothing and is seen by nobody
    T_q       int           the queries are the last T_q of the T_k positions
    returns   (B, T_q, T_k)  bool, True = may attend

    Refuses a T_q that is not from 1 to T_k.

    >>> packed_mask(torch.tensor([[1, 1, 2, 2, 0]]), T_q=3).int()
    tensor([[[0, 0, 1, 0, 0],
             [0, 0, 1, 1, 0],
             [0, 0, 0, 0, 0]]], dtype=torch.int32)
    """
    T_k = document.shape[1]
    demand.counts(1, T_k, T_q=T_q)
    # exercise: about 5 lines
    key = torch.arange(T_k, device=document.device)  # (T_k,)
    query = key[T_k - T_q :, None]  # (T_q, 1)
    own = document[:, T_k - T_q :, None] == document[:, None, :]  # (B, T_q, T_k)
    real = document[:, None, :] > 0  # (B, 1, T_k)
    return (key <= query) & own & real


def causal_mask(T, device=None):
    """Let every position see itself and what came before it.

    device   where the mask is made
    returns  (T, T)  bool, queries down, keys across
    """
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()  # (T, T)


def combine_masks(*masks):
    """Allow only what every mask allows.

    masks    bool tensors whose shapes broadcast to each other, or None for "no restriction"
    returns  bool, or None if there is no mask among them
    """
    combined = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else combined & mask
    return combined


def longformer_mask(T, window, global_positions, device=None):
    """Combine a local window with a few global positions, which see all and are seen by all.

    window            how many neighbours on each side a position sees
    global_positions  list of ints
    device            where the mask is made
    returns           (T, T)  bool

    Refuses a T or a window below 0.
    Source: Beltagy et al. (2020), figure 2d.

    >>> longformer_mask(4, window=0, global_positions=[1]).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 1, 1],
            [0, 1, 1, 0],
            [0, 1, 0, 1]], dtype=torch.int32)
    """
    demand.counts(0, T=T, window=window)
    mask = torch.ones(T, T, dtype=torch.bool, device=device).triu(-window).tril(window)  # (T, T)
    # exercise: about 3 lines
    mask[global_positions, :] = True
    mask[:, global_positions] = True
    return mask


def masked_attention(q, k, v, mask=None, return_weights=False):
    """Scaled dot-product attention in which a query may be left with nothing to attend to.

    q        (..., T_q, d_k)
    k        (..., T_k, d_k)
    v        (..., T_k, d_v)
    mask     None, or bool that broadcasts to (..., T_q, T_k); True = may attend
    returns  context (..., T_q, d_v); with return_weights=True the pair context, weights

    A query that may attend to nothing gets weights of 0, a context of 0, and gradients of 0.
    Refuses a mask that is not bool.

    >>> q, nothing = torch.zeros(2, 4), torch.tensor([[True, True], [False, False]])
    >>> masked_attention(q, q, torch.tensor([[10.0], [30.0]]), nothing)
    tensor([[20.],
            [ 0.]])
    """
    demand.masks(mask=mask)
    # Scaling q is the same as scaling the scores, and there are fewer numbers to touch.
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # (..., T_q, T_k)
    # exercise: about 7 lines
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        # A row of -inf would become NaN. It keeps its scores; its weights are erased below.
        hidden = ~mask & mask.any(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        weights = weights.masked_fill(~mask, 0.0)
    context = weights @ v  # (..., T_q, d_v)
    return (context, weights) if return_weights else context


def suspect(name, x):
    """Run one of seven self-attention layers, "A" to "G", all meant to be causal.

    x        (T, d)
    returns  (T, d)
    """
    query, key = torch.arange(len(x))[:, None], torch.arange(len(x))
    allowed = query >= key  # (T, T)
    if name == "B":
        allowed = query + 1 >= key
    if name == "D":
        x = x - x.mean(dim=0)
    if name == "F":
        allowed = allowed | (query == 0)
    scores = x @ x.T / math.sqrt(x.shape[1])  # (T, T)
    if name == "C":
        return (torch.softmax(scores, dim=1) * allowed) @ x
    hidden_score = {"E": -1e9, "G": 0.0}.get(name, -math.inf)
    return torch.softmax(torch.where(allowed, scores, hidden_score), dim=1) @ x


def leaks(name, x, t):
    """Test whether the layer `suspect(name, ...)` looks ahead of position t.

    name     "A" to "G"
    x        (T, d)  the sequence to try it on; it is not changed
    t        a position
    returns  a bool: True if another future, all positions after t, changes an output at or before
             t; False at the last position, after which nothing follows

    Refuses a t that is not a position of x.

    >>> leaks("A", torch.eye(4), t=1), leaks("B", torch.eye(4), t=1)
    (False, True)
    """
    demand.counts(0, len(x) - 1, t=t)
    # exercise: about 4 lines
    other = x.clone()
    other[t + 1 :] += 1 + torch.arange(x.shape[1])  # not the same for all features
    before, after = suspect(name, x)[: t + 1], suspect(name, other)[: t + 1]
    return not torch.allclose(before, after)


def companions_that_matter(translate, text, others):
    """Find the companions in a batch that change the translation of a text.

    translate  a function from a list of texts to the list of their translations, made in one batch
    text       a string
    others     list of strings: the companions to try, one at a time
    returns    list of those companions, in the order of `others`, beside which the translation of
               `text` is not what it is alone
    """
    # exercise: about 3 lines
    alone = translate([text])[0]
    return [other for other in others if translate([text, other])[0] != alone]


def sliding_window_attention(q, k, v, window):
    """Compute attention with a local mask, without ever making a (T, T) matrix.

    q, k     (..., T, d_k)
    v        (..., T, d_v)
    window   how many neighbours on each side a position sees
    returns  (..., T, d_v)

    The scores are T · (2 window + 1) numbers: column c of row i is for position i + c - window.
    Refuses a window below 0.
    """
    demand.counts(0, window=window)
    T, width = q.shape[-2], 2 * window + 1
    # exercise: about 8 lines
    k, v = F.pad(k, (0, 0, window, window)), F.pad(v, (0, 0, window, window))  # (..., T + 2w, d)
    scores = [(q * k[..., c : c + T, :]).sum(dim=-1) for c in range(width)]
    scores = torch.stack(scores, dim=-1) / math.sqrt(q.shape[-1])  # (..., T, 2w + 1)
    position = torch.arange(T, device=q.device)[:, None] + torch.arange(width, device=q.device)
    outside = (position < window) | (position >= T + window)  # (T, 2w + 1)
    weights = torch.softmax(scores.masked_fill(outside, -math.inf), dim=-1)  # (..., T, 2w + 1)
    return sum(weights[..., c, None] * v[..., c : c + T, :] for c in range(width))  # (..., T, d_v)


# Inputs on which a wrong answer shows


def break_leaks():
    """Return an input (name, x, t) on which `silences_the_future` is wrong."""
    # exercise: about 3 lines
    x = torch.zeros(4, 2)  # its future is silent already
    x[:2] = 1.0
    return "B", x, 1
