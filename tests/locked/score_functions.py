"""Answers to lesson 04 that were written without a look at its checks."""

import math
from functools import partial

import torch

from attention.bahdanau_attention import additive_scores
from attention.getting_started import softmax
from tests.locked import right, wrong

NAMES = "dot, scaled_dot, bilinear, reduced_rank, additive"

# --- score -----------------------------------------------------------------------------------


@wrong("score", cause=".T turns all three axes of the keys around", kind="crash")
def score_2(kind, q, k, weights):
    if kind == "dot":
        return q @ k.T
    if kind == "scaled_dot":
        return q @ k.T / math.sqrt(k.shape[-1])
    if kind == "bilinear":
        return q @ weights["W"] @ k.T
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).T
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"{kind!r} is none of {NAMES}")


@wrong("score", cause="an unknown kind returns None instead of raising ValueError", kind="error")
def score_5(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / math.sqrt(k.shape[-1])
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])


@wrong(
    "score",
    cause="reads the weights of all kinds at once: KeyError if some are missing",
    kind="crash",
)
def score_7(kind, q, k, weights):
    W, V, U = weights["W"], weights["V"], weights["U"]
    W_q, W_k, v = weights["W_q"], weights["W_k"], weights["v"]
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / math.sqrt(k.shape[-1])
    if kind == "bilinear":
        return q @ W @ k.mT
    if kind == "reduced_rank":
        return (q @ V.T) @ (k @ U.T).mT
    if kind == "additive":
        return additive_scores(q, k, W_q, W_k, v)
    raise ValueError(f"{kind!r} is none of {NAMES}")


@wrong("score", cause="the additive scores have queries and keys swapped", kind="shape")
def score_8(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / math.sqrt(k.shape[-1])
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT
    if kind == "additive":
        return additive_scores(k, q, weights["W_k"], weights["W_q"], weights["v"])
    raise ValueError(f"{kind!r} is none of {NAMES}")


@right("score", how="match and einsum")
def score_9(kind, q, k, weights):
    match kind:
        case "dot":
            return torch.einsum("bqd,bkd->bqk", q, k)
        case "scaled_dot":
            return torch.einsum("bqd,bkd->bqk", q * q.shape[-1] ** -0.5, k)
        case "bilinear":
            return torch.einsum("bqi,ij,bkj->bqk", q, weights["W"], k)
        case "reduced_rank":
            return torch.einsum("bqi,ri,rj,bkj->bqk", q, weights["V"], weights["U"], k)
        case "additive":
            parts = {name: weights[name] for name in ("W_q", "W_k", "v")}
            return additive_scores(q, k, **parts)
    raise ValueError(f"kind must be one of {NAMES}, but is {kind!r}")


def _dot(q, k, weights, scale=1.0):
    return torch.bmm(q, k.transpose(1, 2)) * scale


def _bilinear(q, k, weights):
    return q @ (weights["W"] @ k.transpose(-1, -2))


def _reduced_rank(q, k, weights):
    return _dot(q @ weights["V"].t(), k @ weights["U"].t(), weights)


def _additive(q, k, weights):
    return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])


@right("score", how="a dict of helpers and partials; the error is made of the dict's keys")
def score_10(kind, q, k, weights):
    table = {
        "dot": _dot,
        "scaled_dot": partial(_dot, scale=1 / math.sqrt(k.size(2))),
        "bilinear": _bilinear,
        "reduced_rank": _reduced_rank,
        "additive": _additive,
    }
    try:
        function = table[kind]
    except KeyError:
        raise ValueError(f"unknown kind {kind!r}; there are {list(table)}") from None
    return function(q, k, weights)


# --- as_bilinear -----------------------------------------------------------------------------


@wrong("as_bilinear", cause="transposes the wrong factor: V Uᵀ is (r, r)", kind="shape")
def as_bilinear_4(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / math.sqrt(d)
    return weights["V"] @ weights["U"].T


@wrong(
    "as_bilinear", cause="the reduced rank is made float32, whatever the weights are", kind="dtype"
)
def as_bilinear_6(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / math.sqrt(d)
    return weights["V"].T.float() @ weights["U"].float()


@wrong(
    "as_bilinear",
    cause="reads V before it looks at the kind: KeyError for dot and {}",
    kind="crash",
)
def as_bilinear_7(kind, d, weights):
    W = weights["V"].T @ weights["U"]
    if kind == "dot":
        W = torch.eye(d)
    elif kind == "scaled_dot":
        W = torch.eye(d) / math.sqrt(d)
    return W


@right("as_bilinear", how="diagonals of numbers, and a sum of outer products")
def as_bilinear_8(kind, d, weights):
    if kind == "reduced_rank":
        return sum(torch.outer(v, u) for v, u in zip(weights["V"], weights["U"], strict=True))
    return torch.diag(torch.full((d,), 1.0 if kind == "dot" else d**-0.5))


# --- score_costs -----------------------------------------------------------------------------


@wrong("score_costs", cause="takes the number of keys to be that of the queries", kind="size")
def score_costs_6(kind, T_q, T_k, d, r):
    pairs = T_q**2
    if kind == "dot":
        return 0, pairs * d
    if kind == "scaled_dot":
        return 0, pairs * (d + 1)
    if kind == "bilinear":
        return d**2, T_q * d**2 + pairs * d
    if kind == "reduced_rank":
        return 2 * r * d, 2 * T_q * r * d + pairs * r
    return 2 * r * d + r, 2 * T_q * r * d + pairs * r


def _product(rows, inner, columns):
    """Multiplications of a (rows, inner) matrix with an (inner, columns) one."""
    return rows * inner * columns


@right("score_costs", how="a table made of a helper for matrix products")
def score_costs_8(kind, T_q, T_k, d, r):
    low = _product(T_q, d, r) + _product(T_k, d, r) + _product(T_q, r, T_k)
    table = {
        "dot": (0, _product(T_q, d, T_k)),
        "scaled_dot": (0, _product(T_q, d, T_k) + _product(T_q, 1, T_k)),
        "bilinear": (d**2, _product(T_q, d, d) + _product(T_q, d, T_k)),
        "reduced_rank": (r * d + r * d, low),
        "additive": (r * d + r * d + r, low),
    }
    return table[kind]


@right("score_costs", how="adds parameters and multiplications up, branch after branch")
def score_costs_9(kind, T_q, T_k, d, r):
    compared = r if kind in ("reduced_rank", "additive") else d
    parameters, multiplications = 0, compared * T_q * T_k
    if kind == "scaled_dot":
        multiplications += T_q * T_k
    elif kind == "bilinear":
        parameters += d * d
        multiplications += d * d * T_q
    elif kind in ("reduced_rank", "additive"):
        for count in (T_q, T_k):
            parameters += r * d
            multiplications += r * d * count
        if kind == "additive":
            parameters += r
    return parameters, multiplications


# --- gaussian_scores -------------------------------------------------------------------------


@wrong("gaussian_scores", cause="the squared lengths are not halved", kind="value")
def gaussian_scores_1(q, k, bandwidth):
    q2 = q.square().sum(dim=2, keepdim=True)
    k2 = k.square().sum(dim=2).unsqueeze(1)
    return (q @ k.mT - q2 - k2) / bandwidth**2


@wrong(
    "gaussian_scores",
    cause="subtracts all keys from all queries, in a tensor (B, T_q, T_k, d)",
    kind="size",
)
def gaussian_scores_6(q, k, bandwidth):
    differences = q[:, :, None, :] - k[:, None, :, :]
    return -differences.square().sum(dim=3) / (2 * bandwidth**2)


@wrong(
    "gaussian_scores",
    cause="queries' lengths across and keys' down: rows and columns swapped",
    kind="crash",
)
def gaussian_scores_7(q, k, bandwidth):
    q2 = q.square().sum(dim=2).unsqueeze(1)
    k2 = k.square().sum(dim=2).unsqueeze(2)
    return (q @ k.mT - q2 / 2 - k2 / 2) / bandwidth**2


@right("gaussian_scores", how="one product of vectors that carry their squared lengths along")
def gaussian_scores_8(q, k, bandwidth):
    q_half = q.pow(2).sum(-1, keepdim=True) / -2
    k_half = k.pow(2).sum(-1, keepdim=True) / -2
    left = torch.cat([q, q_half, torch.ones_like(q_half)], dim=-1)
    right_side = torch.cat([k, torch.ones_like(k_half), k_half], dim=-1)
    return torch.bmm(left, right_side.transpose(1, 2)) / (bandwidth * bandwidth)


@right("gaussian_scores", how="a loop over the batch, lengths from einsum")
def gaussian_scores_9(q, k, bandwidth):
    tables = []
    for queries, keys in zip(q, k, strict=True):
        down = torch.einsum("qd,qd->q", queries, queries)
        across = torch.einsum("kd,kd->k", keys, keys)
        tables.append(down[:, None] + across[None] - 2 * queries @ keys.T)
    return torch.stack(tables) / (-2 * bandwidth**2)


# --- local_window ----------------------------------------------------------------------------


@wrong("local_window", cause="cuts the centres down to whole numbers", kind="value")
def local_window_4(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device)
    return (positions - centres.long()[:, None]).abs() <= D


@wrong("local_window", cause="makes the positions on the CPU", kind="device")
def local_window_6(centres, T_k, D):
    return (torch.arange(T_k) - centres[:, None]).abs() <= D


@wrong("local_window", cause="returns numbers, not bools", kind="dtype")
def local_window_7(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device)
    return ((positions - centres[:, None]).abs() <= D).float()


@right("local_window", how="two comparisons, joined with and")
def local_window_8(centres, T_k, D):
    gap = torch.arange(T_k, device=centres.device).unsqueeze(0) - centres.unsqueeze(1)
    return torch.logical_and(gap >= -D, gap <= D)


# --- predictive_local_weights ----------------------------------------------------------------


@wrong(
    "predictive_local_weights", cause="σ is D // 2: wrong for odd D, and 0 for D = 1", kind="size"
)
def predictive_local_weights_5(scores, centres, D):
    sigma = D // 2
    distances = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    aligned = softmax(scores.masked_fill(distances.abs() > D, -torch.inf), dim=1)
    return aligned * torch.exp(-(distances**2) / (2 * sigma**2))


@wrong(
    "predictive_local_weights",
    cause="detaches the centres, so they cannot be learnt",
    kind="gradient",
)
def predictive_local_weights_6(scores, centres, D):
    positions = torch.arange(scores.shape[1], device=scores.device)
    distances = positions - centres.detach()[:, None]
    aligned = softmax(scores.masked_fill(distances.abs() > D, -torch.inf), dim=1)
    return aligned * torch.exp(-(distances**2) / (2 * (D / 2) ** 2))


@wrong(
    "predictive_local_weights", cause="the distance in the Gaussian is not squared", kind="value"
)
def predictive_local_weights_7(scores, centres, D):
    distances = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    aligned = softmax(scores.masked_fill(distances.abs() > D, -torch.inf), dim=1)
    return aligned * torch.exp(-distances.abs() / (2 * (D / 2) ** 2))


@wrong("predictive_local_weights", cause="writes −∞ into the scores it was given", kind="state")
def predictive_local_weights_8(scores, centres, D):
    distances = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    scores[distances.abs() > D] = -torch.inf
    return softmax(scores, dim=1) * torch.exp(-(distances**2) / (2 * (D / 2) ** 2))


@right("predictive_local_weights", how="one query at a time, only the keys of its window")
def predictive_local_weights_9(scores, centres, D):
    positions = torch.arange(scores.shape[1], device=scores.device)
    rows = []
    for row, centre in zip(scores, centres, strict=True):
        gap = positions - centre
        inside = gap.abs() <= D
        shares = row[inside].softmax(0) * torch.exp(-2 * (gap[inside] / D) ** 2)
        rows.append(torch.zeros_like(row).masked_scatter(inside, shares))
    return torch.stack(rows)


@right("predictive_local_weights", how="where, and the exponent of softmax and Gaussian in one")
def predictive_local_weights_10(scores, centres, D):
    gap = torch.arange(scores.shape[-1], device=scores.device)[None, :] - centres.unsqueeze(-1)
    inside = (gap >= -D) & (gap <= D)
    log_shares = torch.where(inside, scores, -torch.inf).log_softmax(dim=-1)
    return torch.exp(log_shares - 2 * gap.square() / D**2)


# --- hard_attention --------------------------------------------------------------------------


@wrong("hard_attention", cause="uses the first random number for all queries", kind="value")
def hard_attention_8(weights, values, uniform):
    chosen = (weights.cumsum(dim=1) <= uniform[0]).sum(dim=1)
    return values[chosen.clamp(max=len(values) - 1)]


@right("hard_attention", how="searchsorted from the right")
def hard_attention_9(weights, values, uniform):
    sums = weights.cumsum(dim=1).contiguous()
    index = torch.searchsorted(sums, uniform[:, None].contiguous(), right=True).squeeze(1)
    return values.index_select(0, index.clamp(max=values.size(0) - 1))


@right("hard_attention", how="walks along the weights of each query")
def hard_attention_10(weights, values, uniform):
    picked = []
    for row, number in zip(weights, uniform, strict=True):
        sums = torch.cumsum(row, 0)
        index = len(row) - 1
        for j in range(len(row)):
            if sums[j] > number:
                index = j
                break
        picked.append(values[index])
    return torch.stack(picked)


# --- reinforce_gradient ----------------------------------------------------------------------


@wrong("reinforce_gradient", cause="subtracts the scores instead of their softmax", kind="value")
def reinforce_gradient_4(scores, chosen, rewards, baseline):
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    return ((rewards - baseline)[:, None] * (one_hot - scores)).mean(dim=0)


@wrong("reinforce_gradient", cause="averages over the keys: (N,) instead of (T_k,)", kind="shape")
def reinforce_gradient_6(scores, chosen, rewards, baseline):
    weights = softmax(scores, dim=0)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    return ((rewards - baseline)[:, None] * (one_hot - weights)).mean(dim=1)


@wrong("reinforce_gradient", cause="makes the one-hot rows on the CPU", kind="device")
def reinforce_gradient_7(scores, chosen, rewards, baseline):
    weights = softmax(scores, dim=0)
    one_hot = torch.eye(len(scores), dtype=scores.dtype)[chosen]
    return ((rewards - baseline)[:, None] * (one_hot - weights)).mean(dim=0)


@right("reinforce_gradient", how="adds the advantages up by position with index_add")
def reinforce_gradient_9(scores, chosen, rewards, baseline):
    advantage = rewards - baseline
    by_key = torch.zeros_like(scores).index_add(0, chosen, advantage.to(scores.dtype))
    return (by_key - advantage.sum() * torch.softmax(scores, 0)) / len(chosen)


@right("reinforce_gradient", how="a loop over the trials")
def reinforce_gradient_10(scores, chosen, rewards, baseline):
    w = softmax(scores, dim=0)
    total = torch.zeros_like(scores)
    for c, reward in zip(chosen.tolist(), rewards, strict=True):
        step = -w
        step = torch.cat([step[:c], step[c : c + 1] + 1, step[c + 1 :]])
        total = total + (reward - baseline) * step
    return total / chosen.shape[0]
