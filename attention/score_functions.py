"""Lesson 04: every common way to score a query against a key, and how to train a choice.

Scores: Luong, Pham and Manning (2015), Bahdanau et al. (2014), Vaswani et al. (2017).
Hard attention: Xu et al. (2015).
"""

import math

import torch

from attention.bahdanau_attention import additive_scores
from attention.provided import demand

KINDS = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")


def score(kind, q, k, weights):
    """Score queries against keys in one of five ways.

    kind     "dot"           q · k                     needs d_q = d_k
             "scaled_dot"    q · k / √d_k              needs d_q = d_k
             "bilinear"      qᵀ W k                    weights["W"] (d_q, d_k)
             "reduced_rank"  (V q) · (U k)             weights["V"] (r, d_q), weights["U"] (r, d_k)
             "additive"      v · tanh(W_q q + W_k k)   weights["W_q"], ["W_k"] and ["v"], lesson 03
    q        (B, T_q, d_q)
    k        (B, T_k, d_k)
    weights  a dict of tensors; only those of the kind are used
    returns  (B, T_q, T_k)

    Raises ValueError for any other kind; the message lists the five.
    """
    if kind == "dot":
        return q @ k.mT  # (B, T_q, T_k)
    if kind == "scaled_dot":
        return q @ k.mT / k.shape[2] ** 0.5
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT  # (B, T_q, d_k) @ (B, d_k, T_k)
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT  # (B, T_q, r) @ (B, r, T_k)
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"kind={kind!r} is none of {', '.join(KINDS)}")


def as_bilinear(kind, d, weights):
    """Find the matrix W for which bilinear scores equal those of another kind.

    kind     "dot", "scaled_dot" or "reduced_rank"
    d        the length of queries and keys, for "dot" and "scaled_dot"
    weights  for "reduced_rank" a dict with V (r, d_q) and U (r, d_k), in the dtype wanted
    returns  W (d_q, d_k): qᵀ W k is the score of that kind, for all q and k

    >>> as_bilinear("scaled_dot", 4, {})[0]
    tensor([0.5000, 0.0000, 0.0000, 0.0000])
    """
    # exercise: about 5 lines
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / d**0.5
    return weights["V"].T @ weights["U"]  # (d_q, d_k), of rank r at most


def learn_crossing(kind, q, k, weights, steps=150):
    """Train a score function until query i finds key T - 1 - i.

    kind, q, k, weights  as in `score`, for a batch of one, (1, T, d); the tensors that
                         require a gradient are trained
    returns              (T, T)  the weights of all queries on all keys after training
    """
    query = torch.arange(q.shape[1])
    wanted = query.flip(0)  # T - 1, T - 2, ..., 0
    trained = [one for one in (q, k, *weights.values()) if one.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=0.03)
    for _ in range(steps):
        shares = score(kind, q, k, weights).softmax(dim=2)[0]  # (T, T)
        loss = -shares[query, wanted].log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return score(kind, q, k, weights).softmax(dim=2)[0].detach()


def crossing_in_a_plane(pairs, lead):
    """Place keys on a circle, and queries so that each finds its key by the dot product.

    pairs    how many queries, and how many keys; at least 2
    lead     by how much the score of a query's own key is larger than those of the keys next to it
    returns  queries (pairs, 2) and keys (pairs, 2): key i at the angle 2π i / pairs on the circle
             of radius 1, from (1, 0) against the clock; query i points at key pairs - 1 - i

    Refuses fewer than two pairs, and a lead that is not above 0.
    """
    demand.counts(2, pairs=pairs)
    demand.positive(lead=lead)
    # exercise: about 5 lines
    angles = 2 * math.pi * torch.arange(pairs) / pairs  # (pairs,)
    keys = torch.stack([torch.cos(angles), torch.sin(angles)], dim=1)  # (pairs, 2)
    length = lead / (1 - math.cos(2 * math.pi / pairs))
    queries = length * keys.flip(0)  # (pairs, 2)
    return queries, keys


def gaussian_scores(q, k, bandwidth):
    """Compute the scores of a Gaussian kernel from dot products, never from differences.

    q          (B, T_q, d)
    k          (B, T_k, d)
    bandwidth  a positive number h
    returns    (B, T_q, T_k)  -‖q_i - k_j‖² / (2 h²), made of q·k, ‖q‖² and ‖k‖²

    No tensor of shape (B, T_q, T_k, d) is made on the way.
    Refuses a bandwidth that is not above 0.
    """
    demand.positive(bandwidth=bandwidth)
    # exercise: about 3 lines
    q_squared = q.square().sum(dim=2).unsqueeze(2)  # (B, T_q, 1): the same for all keys
    k_squared = k.square().sum(dim=2).unsqueeze(1)  # (B, 1, T_k): the same for all queries
    return (q @ k.mT - q_squared / 2 - k_squared / 2) / bandwidth**2  # (B, T_q, T_k)


def reinforce_gradient(scores, chosen, rewards, baseline):
    """Estimate the gradient of the expected reward of hard attention from samples (REINFORCE).

    scores    (T_k,)  the weights are their softmax
    chosen    (N,)    the position sampled in each of N trials, from these weights
    rewards   (N,)    the reward of each trial
    baseline  a number that is subtracted from every reward; it does not depend on the trials
    returns   (T_k,)  the mean over trials of (reward - baseline) · gradient of log weight[chosen]

    The gradient of log softmax(scores)[c] is: one-hot of c, minus the softmax.
    Refuses zero trials, and a baseline that is not a number.
    Source: Williams (1992); for attention Xu et al. (2015), equations 11 and 12.
    """
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    # exercise: about 4 lines
    weights = scores.softmax(dim=0)  # (T_k,)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]  # (N, T_k)
    gradients = one_hot - weights  # (N, T_k): of log weight[chosen]
    return ((rewards - baseline).unsqueeze(1) * gradients).mean(dim=0)  # (T_k,)


# Inputs on which a wrong answer shows


def break_as_bilinear():
    """Return an input for which `swaps_v_and_u` makes the wrong matrix.

    returns  a tuple (kind, d, weights): kind is one of the three of `as_bilinear`, d a whole number
             of at least 1; for "reduced_rank" weights hold V and U, both (r, d), finite
             floating-point numbers: queries and keys are equally long
    """
    return "reduced_rank", 2, {"V": torch.tensor([[1.0, 0.0]]), "U": torch.tensor([[0.0, 1.0]])}
