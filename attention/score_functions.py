"""Lesson 04: every common way to score a query against a key, and to choose where to look.

Scores: Luong, Pham and Manning (2015), Bahdanau et al. (2014), Vaswani et al. (2017).
Hard attention: Xu et al. (2015).
"""

import torch

from attention.bahdanau_attention import additive_scores
from attention.getting_started import softmax
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
    # exercise: about 11 lines
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


def score_costs(kind, T_q, T_k, d, r):
    """Count what a score function needs: parameters, and multiplications for all scores.

    kind      one of the five of `score`
    T_q, T_k  numbers of queries and keys
    d         length of queries and of keys
    r         rank of "reduced_rank", or number of hidden features of "additive"
    returns   (parameters, multiplications), two integers

    Each query and each key is projected once; "bilinear" projects the queries. A division counts
    as a multiplication; an addition or a tanh does not count.
    Refuses numbers below 0.

    >>> score_costs("dot", 5, 7, 4, 0)
    (0, 140)
    """
    demand.counts(0, T_q=T_q, T_k=T_k, d=d, r=r)
    # exercise: about 9 lines
    pairs = T_q * T_k
    if kind == "dot":
        return 0, pairs * d
    if kind == "scaled_dot":
        return 0, pairs * d + pairs
    if kind == "bilinear":
        return d * d, T_q * d * d + pairs * d
    projections = (T_q + T_k) * r * d
    parameters = 2 * r * d if kind == "reduced_rank" else 2 * r * d + r
    return parameters, projections + pairs * r


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


def local_window(centres, T_k, D):
    """Say which keys lie within D positions of each query's centre (local-m attention).

    centres  (T_q,)      a position in the source for each query, any number
    T_k      number of keys, at positions 0 … T_k - 1
    D        how far the window reaches to either side
    returns  (T_q, T_k)  bool, True = may attend: |position - centre| <= D

    Refuses less than one key, and a D below 0.
    Source: Luong et al. (2015), section 3.2: up to 2D + 1 keys per query.

    >>> local_window(torch.tensor([0.0, 2.0]), 4, D=1)
    tensor([[ True,  True, False, False],
            [False,  True,  True,  True]])
    """
    demand.counts(T_k=T_k)
    demand.within(0, D=D)
    # exercise: about 2 lines
    positions = torch.arange(T_k, device=centres.device)  # (T_k,)
    return (positions - centres.unsqueeze(1)).abs() <= D  # (T_q, T_k)


def predictive_local_weights(scores, centres, D):
    """Weigh the keys near each query's predicted centre, the nearer the more (local-p attention).

    scores   (T_q, T_k)
    centres  (T_q,)      predicted positions p, any numbers between 0 and T_k - 1
    D        how far the window reaches to either side, 0.5 at least, so that it holds a key; the
             Gaussian has σ = D / 2
    returns  (T_q, T_k)  softmax of the scores over the keys with |position - p| <= D, times
                         exp(-(position - p)² / (2σ²)); 0 outside the window

    The rows do not sum to 1: the Gaussian comes after the softmax.
    Refuses a D that is not above 0.
    Source: Luong et al. (2015), equation 10.
    """
    demand.positive(D=D)
    # exercise: about 5 lines
    positions = torch.arange(scores.shape[1], device=scores.device)  # (T_k,)
    distances = positions - centres.unsqueeze(1)  # (T_q, T_k)
    inside = distances.abs() <= D  # (T_q, T_k)
    aligned = softmax(scores.masked_fill(~inside, -torch.inf), dim=1)  # (T_q, T_k)
    return aligned * torch.exp(-(distances**2) / (2 * (D / 2) ** 2))


def hard_attention(weights, values, uniform):
    """Choose one value per query, at random with the weights as probabilities (hard attention).

    weights  (T_q, T_k)  every row sums to 1
    values   (T_k, d_v)
    uniform  (T_q,)      random numbers from 0 to 1, one per query: the only source of chance
    returns  (T_q, d_v)  the value of the first key at which the sum of the weights so far is
                         larger than the random number; of the last key, if rounding leaves none

    >>> weights, values = torch.tensor([[0.25, 0.5, 0.25]]), torch.tensor([[1.0], [2.0], [3.0]])
    >>> [hard_attention(weights, values, torch.tensor([u])).item() for u in (0.1, 0.3, 0.7, 0.8)]
    [1.0, 2.0, 2.0, 3.0]
    """
    # exercise: about 3 lines
    so_far = weights.cumsum(dim=1)  # (T_q, T_k)
    chosen = (so_far <= uniform.unsqueeze(1)).sum(dim=1)  # (T_q,)
    # Rounding may leave the last sum a little below 1.
    return values[chosen.clamp(max=values.shape[0] - 1)]  # (T_q, d_v)


def reinforce_gradient(scores, chosen, rewards, baseline):
    """Estimate the gradient of the expected reward of hard attention from samples (REINFORCE).

    scores    (T_k,)  the weights are their softmax
    chosen    (N,)    the position sampled in each of N trials, from these weights
    rewards   (N,)    the reward of each trial
    baseline  a number that is subtracted from every reward; it does not depend on the trials
    returns   (T_k,)  the mean over trials of (reward - baseline) · gradient of log weight[chosen]

    The gradient of log softmax(scores)[c] is: one-hot of c, minus the softmax.
    Refuses less than one trial, and a baseline that is no number.
    Source: Williams (1992); for attention Xu et al. (2015), equations 11 and 12.
    """
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    # exercise: about 4 lines
    weights = softmax(scores, dim=0)  # (T_k,)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]  # (N, T_k)
    gradients = one_hot - weights  # (N, T_k): of log weight[chosen]
    return ((rewards - baseline).unsqueeze(1) * gradients).mean(dim=0)  # (T_k,)


# Inputs on which a wrong answer shows


def break_as_bilinear():
    """An input on which `swaps_v_and_u` makes another matrix than `as_bilinear`.

    returns  a tuple (kind, d, weights): kind is one of the three of `as_bilinear`, d a whole number
             of at least 1; for "reduced_rank" weights hold V and U, both (r, d), finite
             floating-point numbers: queries and keys are equally long
    """
    return "reduced_rank", 2, {"V": torch.tensor([[1.0, 0.0]]), "U": torch.tensor([[0.0, 1.0]])}
