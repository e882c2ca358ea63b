"""Answers to lesson 04 that were written without a look at its checks."""

import math
from functools import partial

import torch

from attention.bahdanau_attention import additive_scores
from attention.getting_started import softmax
from tests.locked import right, wrong

NAMES = "dot, scaled_dot, bilinear, reduced_rank, additive"

# --- score -----------------------------------------------------------------------------------


@wrong("score", cause="the scaled dot product is divided by d_k, not by its root", kind="value")
def score_1(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / k.shape[-1]
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"{kind!r} is none of {NAMES}")


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


@wrong("score", cause="the bilinear W is transposed: kᵀ W q", kind="value")
def score_3(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / math.sqrt(k.shape[-1])
    if kind == "bilinear":
        return q @ weights["W"].T @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"{kind!r} is none of {NAMES}")


@wrong("score", cause="the reduced rank projects queries by U and keys by V", kind="value")
def score_4(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / math.sqrt(k.shape[-1])
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["U"].T) @ (k @ weights["V"].T).mT
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
    "score", cause="divides by the root of the number of keys, not of their length", kind="value"
)
def score_6(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / math.sqrt(k.shape[1])
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"{kind!r} is none of {NAMES}")


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


@wrong("as_bilinear", cause="scaled_dot is divided by d instead of √d", kind="value")
def as_bilinear_1(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / d
    return weights["V"].T @ weights["U"]


@wrong("as_bilinear", cause="U and V are swapped: W comes out transposed", kind="shape")
def as_bilinear_2(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / math.sqrt(d)
    return weights["U"].T @ weights["V"]


@wrong("as_bilinear", cause="a matrix of ones instead of the identity", kind="value")
def as_bilinear_3(kind, d, weights):
    if kind == "dot":
        return torch.ones(d, d)
    if kind == "scaled_dot":
        return torch.ones(d, d) / math.sqrt(d)
    return weights["V"].T @ weights["U"]


@wrong("as_bilinear", cause="transposes the wrong factor: V Uᵀ is (r, r)", kind="shape")
def as_bilinear_4(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / math.sqrt(d)
    return weights["V"] @ weights["U"].T


@wrong("as_bilinear", cause="forgets the scale: scaled_dot gets the plain identity", kind="value")
def as_bilinear_5(kind, d, weights):
    if kind in ("dot", "scaled_dot"):
        return torch.eye(d)
    return weights["V"].T @ weights["U"]


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


@wrong("score_costs", cause="forgets the division of the scaled dot product", kind="value")
def score_costs_1(kind, T_q, T_k, d, r):
    pairs = T_q * T_k
    if kind in ("dot", "scaled_dot"):
        return 0, pairs * d
    if kind == "bilinear":
        return d * d, T_q * d * d + pairs * d
    if kind == "reduced_rank":
        return 2 * r * d, (T_q + T_k) * r * d + pairs * r
    return 2 * r * d + r, (T_q + T_k) * r * d + pairs * r


@wrong("score_costs", cause="forgets v among the parameters of the additive score", kind="value")
def score_costs_2(kind, T_q, T_k, d, r):
    pairs = T_q * T_k
    if kind == "dot":
        return 0, pairs * d
    if kind == "scaled_dot":
        return 0, pairs * (d + 1)
    if kind == "bilinear":
        return d * d, T_q * d * d + pairs * d
    return 2 * r * d, (T_q + T_k) * r * d + pairs * r


@wrong("score_costs", cause="the bilinear score projects the keys as well", kind="value")
def score_costs_3(kind, T_q, T_k, d, r):
    pairs = T_q * T_k
    if kind == "dot":
        return 0, pairs * d
    if kind == "scaled_dot":
        return 0, pairs * (d + 1)
    if kind == "bilinear":
        return d * d, (T_q + T_k) * d * d + pairs * d
    if kind == "reduced_rank":
        return 2 * r * d, (T_q + T_k) * r * d + pairs * r
    return 2 * r * d + r, (T_q + T_k) * r * d + pairs * r


@wrong(
    "score_costs",
    cause="compares d instead of r numbers for each pair after projecting",
    kind="value",
)
def score_costs_4(kind, T_q, T_k, d, r):
    pairs = T_q * T_k
    if kind == "dot":
        return 0, pairs * d
    if kind == "scaled_dot":
        return 0, pairs * (d + 1)
    if kind == "bilinear":
        return d * d, T_q * d * d + pairs * d
    if kind == "reduced_rank":
        return 2 * r * d, (T_q + T_k) * r * d + pairs * d
    return 2 * r * d + r, (T_q + T_k) * r * d + pairs * d


@wrong("score_costs", cause="projects anew for every pair", kind="value")
def score_costs_5(kind, T_q, T_k, d, r):
    pairs = T_q * T_k
    if kind == "dot":
        return 0, pairs * d
    if kind == "scaled_dot":
        return 0, pairs * (d + 1)
    if kind == "bilinear":
        return d * d, pairs * (d * d + d)
    if kind == "reduced_rank":
        return 2 * r * d, pairs * (2 * r * d + r)
    return 2 * r * d + r, pairs * (2 * r * d + r)


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


@wrong("score_costs", cause="returns (multiplications, parameters): swapped", kind="value")
def score_costs_7(kind, T_q, T_k, d, r):
    pairs = T_q * T_k
    if kind == "dot":
        return pairs * d, 0
    if kind == "scaled_dot":
        return pairs * (d + 1), 0
    if kind == "bilinear":
        return T_q * d * d + pairs * d, d * d
    if kind == "reduced_rank":
        return (T_q + T_k) * r * d + pairs * r, 2 * r * d
    return (T_q + T_k) * r * d + pairs * r, 2 * r * d + r


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


@wrong("gaussian_scores", cause="divides by h instead of h²", kind="value")
def gaussian_scores_2(q, k, bandwidth):
    q2 = q.square().sum(dim=2, keepdim=True)
    k2 = k.square().sum(dim=2).unsqueeze(1)
    return (q @ k.mT - q2 / 2 - k2 / 2) / bandwidth


@wrong(
    "gaussian_scores",
    cause="the halves are already taken, and it divides by 2 h² again",
    kind="value",
)
def gaussian_scores_3(q, k, bandwidth):
    q2 = q.square().sum(dim=2, keepdim=True)
    k2 = k.square().sum(dim=2).unsqueeze(1)
    return (q @ k.mT - q2 / 2 - k2 / 2) / (2 * bandwidth**2)


@wrong("gaussian_scores", cause="subtracts lengths instead of squared lengths", kind="value")
def gaussian_scores_4(q, k, bandwidth):
    q2 = q.norm(dim=2, keepdim=True)
    k2 = k.norm(dim=2).unsqueeze(1)
    return (q @ k.mT - q2 / 2 - k2 / 2) / bandwidth**2


@wrong("gaussian_scores", cause="leaves out the squared lengths of the queries", kind="value")
def gaussian_scores_5(q, k, bandwidth):
    k2 = k.square().sum(dim=2).unsqueeze(1)
    return (q @ k.mT - k2 / 2) / bandwidth**2


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


@wrong("local_window", cause="a distance of exactly D is outside", kind="value")
def local_window_1(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device)
    return (positions - centres[:, None]).abs() < D


@wrong("local_window", cause="keys down, queries across: (T_k, T_q)", kind="shape")
def local_window_2(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device)
    return (positions[:, None] - centres).abs() <= D


@wrong("local_window", cause="no absolute value: everything to the left is inside", kind="value")
def local_window_3(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device)
    return (positions - centres[:, None]) <= D


@wrong("local_window", cause="cuts the centres down to whole numbers", kind="value")
def local_window_4(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device)
    return (positions - centres.long()[:, None]).abs() <= D


@wrong("local_window", cause="inverted: True where a key must not be seen", kind="value")
def local_window_5(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device)
    return (positions - centres[:, None]).abs() > D


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


@wrong("predictive_local_weights", cause="σ is D instead of D / 2", kind="value")
def predictive_local_weights_1(scores, centres, D):
    distances = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    aligned = softmax(scores.masked_fill(distances.abs() > D, -torch.inf), dim=1)
    return aligned * torch.exp(-(distances**2) / (2 * D**2))


@wrong(
    "predictive_local_weights", cause="scales the rows to 1 again after the Gaussian", kind="value"
)
def predictive_local_weights_2(scores, centres, D):
    distances = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    aligned = softmax(scores.masked_fill(distances.abs() > D, -torch.inf), dim=1)
    weights = aligned * torch.exp(-(distances**2) / (2 * (D / 2) ** 2))
    return weights / weights.sum(dim=1, keepdim=True)


@wrong(
    "predictive_local_weights", cause="no window: all keys take part in the softmax", kind="value"
)
def predictive_local_weights_3(scores, centres, D):
    distances = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    return softmax(scores, dim=1) * torch.exp(-(distances**2) / (2 * (D / 2) ** 2))


@wrong(
    "predictive_local_weights",
    cause="cuts the window out after the softmax over all keys",
    kind="value",
)
def predictive_local_weights_4(scores, centres, D):
    distances = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    weights = softmax(scores, dim=1) * (distances.abs() <= D)
    return weights * torch.exp(-(distances**2) / (2 * (D / 2) ** 2))


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


@wrong(
    "hard_attention", cause="takes the largest weight and ignores the random numbers", kind="value"
)
def hard_attention_1(weights, values, uniform):
    return values[weights.argmax(dim=1)]


@wrong(
    "hard_attention",
    cause="no limit: a random number above the last sum gives an index that does not exist",
    kind="extreme",
)
def hard_attention_2(weights, values, uniform):
    chosen = (weights.cumsum(dim=1) <= uniform[:, None]).sum(dim=1)
    return values[chosen]


@wrong(
    "hard_attention", cause="adds the weights up over the queries instead of the keys", kind="value"
)
def hard_attention_3(weights, values, uniform):
    chosen = (weights.cumsum(dim=0) <= uniform[:, None]).sum(dim=1)
    return values[chosen.clamp(max=len(values) - 1)]


@wrong("hard_attention", cause="returns the soft average", kind="value")
def hard_attention_4(weights, values, uniform):
    return weights @ values


@wrong(
    "hard_attention", cause="draws its own random numbers instead of using uniform", kind="value"
)
def hard_attention_5(weights, values, uniform):
    chosen = torch.multinomial(weights, 1).squeeze(1)
    return values[chosen]


@wrong(
    "hard_attention",
    cause="counts the keys up to the chosen one, so it takes the next",
    kind="value",
)
def hard_attention_6(weights, values, uniform):
    chosen = (weights.cumsum(dim=1) <= uniform[:, None]).sum(dim=1) + 1
    return values[chosen.clamp(max=len(values) - 1)]


@wrong(
    "hard_attention",
    cause="a sum that equals the number counts as larger: at 0 a first key of weight 0 is chosen",
    kind="value",
)
def hard_attention_7(weights, values, uniform):
    chosen = (weights.cumsum(dim=1) < uniform[:, None]).sum(dim=1)
    return values[chosen.clamp(max=len(values) - 1)]


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


@wrong("reinforce_gradient", cause="adds the trials up instead of averaging", kind="value")
def reinforce_gradient_1(scores, chosen, rewards, baseline):
    weights = softmax(scores, dim=0)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    return ((rewards - baseline)[:, None] * (one_hot - weights)).sum(dim=0)


@wrong("reinforce_gradient", cause="ignores the baseline", kind="value")
def reinforce_gradient_2(scores, chosen, rewards, baseline):
    weights = softmax(scores, dim=0)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    return (rewards[:, None] * (one_hot - weights)).mean(dim=0)


@wrong("reinforce_gradient", cause="the sign is wrong: softmax minus one-hot", kind="value")
def reinforce_gradient_3(scores, chosen, rewards, baseline):
    weights = softmax(scores, dim=0)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    return ((rewards - baseline)[:, None] * (weights - one_hot)).mean(dim=0)


@wrong("reinforce_gradient", cause="subtracts the scores instead of their softmax", kind="value")
def reinforce_gradient_4(scores, chosen, rewards, baseline):
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    return ((rewards - baseline)[:, None] * (one_hot - scores)).mean(dim=0)


@wrong(
    "reinforce_gradient",
    cause="takes the mean reward as baseline instead of the one given",
    kind="value",
)
def reinforce_gradient_5(scores, chosen, rewards, baseline):
    weights = softmax(scores, dim=0)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    return ((rewards - rewards.mean())[:, None] * (one_hot - weights)).mean(dim=0)


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


@wrong(
    "reinforce_gradient",
    cause="weighs each trial by its probability once more, though it was sampled with it",
    kind="value",
)
def reinforce_gradient_8(scores, chosen, rewards, baseline):
    weights = softmax(scores, dim=0)
    one_hot = torch.eye(len(scores), dtype=scores.dtype, device=scores.device)[chosen]
    factor = (rewards - baseline) * weights[chosen]
    return (factor[:, None] * (one_hot - weights)).mean(dim=0)


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
