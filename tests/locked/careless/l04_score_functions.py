"""Careless right answers to lesson 04."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from tests.locked.careless import careless

NAMES = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")


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
