"""Careless right answers to lesson 04."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from attention.bahdanau_attention import additive_scores
from tests.locked.careless import careless

NAMES = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")


@careless("score", "device", "dtype", how="pair by pair into zeros of float32")
def score_1(kind, q, k, weights):
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    scale = 1.0
    if kind == "scaled_dot":
        scale = 1 / math.sqrt(q.shape[-1])
    elif kind == "bilinear":
        q = q @ weights["W"]
    elif kind == "reduced_rank":
        q, k = q @ weights["V"].T, k @ weights["U"].T
    elif kind != "dot":
        raise ValueError(f"{kind!r} is none of dot, scaled_dot, bilinear, reduced_rank, additive")
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for i in range(q.shape[1]):
        for j in range(k.shape[1]):
            scores[:, i, j] = (q[:, i] * k[:, j]).sum(dim=1) * scale
    return scores


@careless("score", "other_order", how="multiplies the matrices of the kind first")
def score_2(kind, q, k, weights):
    if kind not in NAMES:
        raise ValueError(f"kind={kind!r} is none of {', '.join(NAMES)}")
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return (q / q.shape[-1] ** 0.5) @ k.mT
    if kind == "bilinear":
        return q @ (weights["W"] @ k.mT)
    if kind == "reduced_rank":
        return q @ (weights["V"].T @ weights["U"]) @ k.mT
    return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])


@careless("score", "other_type", "extra_axis", how="NumPy's root; products with one axis more")
def score_3(kind, q, k, weights):
    if kind not in NAMES:
        raise ValueError(f"kind must be one of {NAMES}")
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    if kind == "bilinear":
        q = q @ weights["W"]
    if kind == "reduced_rank":
        q, k = q @ weights["V"].T, k @ weights["U"].T
    products = (q[:, :, None, :] * k[:, None, :, :]).sum(dim=-1)
    return products / np.sqrt(q.shape[-1]) if kind == "scaled_dot" else products


@careless("as_bilinear", "device", "dtype", how="an identity of float32 without a device")
def as_bilinear_1(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / math.sqrt(d)
    return weights["V"].T @ weights["U"]


@careless("as_bilinear", "plain_numbers", how="lists for the diagonal, a total that starts at 0.0")
def as_bilinear_2(kind, d, weights):
    if kind in ("dot", "scaled_dot"):
        entry = 1.0 if kind == "dot" else 1 / d**0.5
        return torch.tensor([[entry if i == j else 0.0 for j in range(d)] for i in range(d)])
    total = 0.0
    for row_v, row_u in zip(weights["V"], weights["U"], strict=True):
        total = total + torch.outer(row_v, row_u)
    return total


@careless("as_bilinear", "numpy", "dtype", how="the identity from NumPy, in float32")
def as_bilinear_3(kind, d, weights):
    if kind == "reduced_rank":
        return torch.einsum("ri,rj->ij", weights["V"], weights["U"])
    identity = np.eye(d, dtype=np.float32)
    return torch.from_numpy(identity if kind == "dot" else identity / np.float32(np.sqrt(d)))


@careless("break_as_bilinear", "plain_numbers", how="lists of numbers")
def break_as_bilinear_1():
    weights = {"V": torch.tensor([[1.0, 0]]), "U": torch.tensor([[0.0, 1]])}
    return "reduced_rank", 2, weights


@careless("break_as_bilinear", "seed", how="random matrices, global seed")
def break_as_bilinear_2():
    torch.manual_seed(0)
    return "reduced_rank", 3, {"V": torch.randn(2, 3), "U": torch.randn(2, 3)}


@careless("break_as_bilinear", "other_type", how="the length is NumPy's int")
def break_as_bilinear_3():
    V, U = torch.arange(6.0).view(2, 3), torch.ones(2, 3)
    return "reduced_rank", np.int64(3), {"V": V, "U": U}


@careless("gaussian_scores", "device", "dtype", how="entry by entry into zeros of float32")
def gaussian_scores_1(q, k, bandwidth):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for i in range(q.shape[1]):
        for j in range(k.shape[1]):
            a, b = q[:, i], k[:, j]
            exponent = (a * b).sum(1) - (a * a).sum(1) / 2 - (b * b).sum(1) / 2
            scores[:, i, j] = exponent / bandwidth**2
    return scores


@careless("gaussian_scores", "other_order", how="three terms, each over its own denominator")
def gaussian_scores_2(q, k, bandwidth):
    h2 = bandwidth * bandwidth
    lengths_q = (q**2).sum(dim=-1, keepdim=True) / (2 * h2)
    lengths_k = (k**2).sum(dim=-1).unsqueeze(1) / (2 * h2)
    return (q / h2) @ k.mT - lengths_q - lengths_k


@careless("gaussian_scores", "plain_numbers", how="feature by feature, from 0.0")
def gaussian_scores_3(q, k, bandwidth):
    products, squares_q, squares_k = 0.0, 0.0, 0.0
    for f in range(q.shape[-1]):
        a, b = q[..., f].unsqueeze(2), k[..., f].unsqueeze(1)
        products = products + a * b
        squares_q, squares_k = squares_q + a * a, squares_k + b * b
    return (2 * products - squares_q - squares_k) / (2 * bandwidth**2)


@careless("score_costs", "other_type", how="returns NumPy's ints")
def score_costs_1(kind, T_q, T_k, d, r):
    pairs, projected = T_q * T_k, (T_q + T_k) * r * d
    table = {
        "dot": (0, pairs * d),
        "scaled_dot": (0, pairs * d + pairs),
        "bilinear": (d * d, T_q * d * d + pairs * d),
        "reduced_rank": (2 * r * d, projected + pairs * r),
        "additive": (2 * r * d + r, projected + pairs * r),
    }
    parameters, multiplications = np.array(table[kind])
    return parameters, multiplications


@careless("score_costs", "plain_numbers", how="adds up in loops over queries and keys")
def score_costs_2(kind, T_q, T_k, d, r):
    sizes = {"bilinear": [d * d], "reduced_rank": [r * d, r * d], "additive": [r * d, r * d, r]}
    parameters, count = sum(sizes.get(kind, [])), 0
    for _ in range(T_q):
        if kind == "bilinear":
            count += d * d
        elif kind in ("reduced_rank", "additive"):
            count += r * d
        for _ in range(T_k):
            count += r if kind in ("reduced_rank", "additive") else d
            count += kind == "scaled_dot"
    if kind in ("reduced_rank", "additive"):
        count += T_k * r * d
    return parameters, count


@careless("local_window", "device", how="positions without a device")
def local_window_1(centres, T_k, D):
    return (torch.arange(T_k) - centres[:, None]).abs() <= D


@careless("local_window", "device", "plain_numbers", how="entry by entry from Python floats")
def local_window_2(centres, T_k, D):
    mask = torch.zeros(len(centres), T_k, dtype=torch.bool)
    for i, centre in enumerate(centres.tolist()):
        for j in range(T_k):
            mask[i, j] = abs(j - centre) <= D
    return mask


@careless("local_window", "numpy", how="a table in NumPy")
def local_window_3(centres, T_k, D):
    away = np.abs(np.arange(T_k)[None, :] - centres.detach().numpy()[:, None])
    return torch.from_numpy(away <= D)


@careless("predictive_local_weights", "device", how="positions without a device")
def predictive_local_weights_1(scores, centres, D):
    away = torch.arange(scores.shape[1]) - centres.unsqueeze(1)
    weights = torch.softmax(scores.masked_fill(away.abs() > D, -math.inf), dim=1)
    return weights * torch.exp(-(away**2) / (2 * (D / 2) ** 2))


@careless("predictive_local_weights", "device", how="a scalar tensor beside where")
def predictive_local_weights_2(scores, centres, D):
    away = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    inside = away.abs() <= D
    shares = torch.where(inside, scores, torch.tensor(-math.inf)).softmax(dim=1)
    bell = torch.exp(-2 * (away / D) ** 2)
    return torch.where(inside, shares * bell, torch.tensor(0.0))


@careless("predictive_local_weights", "device", "dtype", how="row by row into zeros of float32")
def predictive_local_weights_3(scores, centres, D):
    weights, sigma = torch.zeros(scores.shape), D / 2
    for i in range(len(scores)):
        inside = [j for j in range(scores.shape[1]) if abs(j - float(centres[i])) <= D]
        away = torch.tensor(inside) - centres[i]
        shares = torch.softmax(scores[i, inside], dim=0)
        weights[i, inside] = shares * torch.exp(-(away**2) / (2 * sigma**2))
    return weights


@careless("hard_attention", "device", how="choices one by one into zeros without a device")
def hard_attention_1(weights, values, uniform):
    chosen = torch.zeros(len(weights), dtype=torch.long)
    for i in range(len(weights)):
        reached, place = weights[i, 0], 0
        while place < weights.shape[1] - 1 and reached <= uniform[i]:
            place += 1
            reached = reached + weights[i, place]
        chosen[i] = place
    return values[chosen]


@careless("hard_attention", "numpy", how="the choice, which has no gradient, in NumPy")
def hard_attention_2(weights, values, uniform):
    sums = np.cumsum(weights.detach().numpy(), axis=1)
    chosen = (sums <= uniform.detach().numpy()[:, None]).sum(axis=1).clip(max=len(values) - 1)
    return values[torch.from_numpy(chosen)]


@careless("hard_attention", "plain_numbers", how="Python ints as indices")
def hard_attention_3(weights, values, uniform):
    ahead = (weights.cumsum(dim=1) <= uniform.unsqueeze(1)).sum(dim=1).tolist()
    return torch.stack([values[min(place, len(values) - 1)] for place in ahead])


@careless("reinforce_gradient", "plain_numbers", how="a total over the trials that starts at 0.0")
def reinforce_gradient_1(scores, chosen, rewards, baseline):
    weights, total = torch.softmax(scores, dim=0), 0.0
    for place, reward in zip(chosen.tolist(), rewards, strict=True):
        one_hot = torch.zeros_like(scores)
        one_hot[place] = 1.0
        total = total + (reward - baseline) * (one_hot - weights)
    return total / len(chosen)


@careless("reinforce_gradient", "dtype", how="one-hot rows of float32")
def reinforce_gradient_2(scores, chosen, rewards, baseline):
    one_hot = F.one_hot(chosen, len(scores)).float()
    better = (rewards - baseline).unsqueeze(1)
    return (better * (one_hot - scores.softmax(dim=0))).mean(dim=0)


@careless("reinforce_gradient", "device", "dtype", how="adds up what was earned at each place")
def reinforce_gradient_3(scores, chosen, rewards, baseline):
    better = rewards - baseline
    earned = torch.zeros(len(scores))
    for place, gain in zip(chosen, better, strict=True):
        earned[place] += gain
    return earned / len(chosen) - better.mean() * torch.softmax(scores, dim=0)
