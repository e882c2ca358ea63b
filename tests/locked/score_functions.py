"""Answers to lesson 04 that were written without a look at its checks."""

import math

import torch

from attention.getting_started import softmax
from attention.provided import demand
from tests.locked import right, wrong

NAMES = "dot, scaled_dot, bilinear, reduced_rank, additive"


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


# --- crossing_in_a_plane ---------------------------------------------------------------------


@wrong("crossing_in_a_plane", cause="linspace up to 2π: the last key stands on the first")
def crossing_in_a_plane_1(pairs, lead):
    demand.counts(2, pairs=pairs)
    demand.positive(lead=lead)
    angles = torch.linspace(0, 2 * math.pi, pairs)
    keys = torch.stack([angles.cos(), angles.sin()], dim=1)
    length = lead / (1 - math.cos(2 * math.pi / pairs))
    return length * keys.flip(0), keys


@wrong("crossing_in_a_plane", cause="turns the coordinates around, not the order of the keys")
def crossing_in_a_plane_2(pairs, lead):
    demand.counts(2, pairs=pairs)
    demand.positive(lead=lead)
    angles = torch.arange(pairs) * (2 * math.pi / pairs)
    keys = torch.stack([angles.cos(), angles.sin()], dim=1)
    length = lead / (1 - math.cos(2 * math.pi / pairs))
    return length * keys.flip(1), keys


@wrong("crossing_in_a_plane", cause="half the angle between two keys, π / pairs, in the length")
def crossing_in_a_plane_3(pairs, lead):
    demand.counts(2, pairs=pairs)
    demand.positive(lead=lead)
    step = math.pi / pairs
    angles = 2 * step * torch.arange(pairs)
    keys = torch.stack([angles.cos(), angles.sin()], dim=1)
    return keys.flip(0) * lead / (1 - math.cos(step)), keys


@right("crossing_in_a_plane", how="point by point in Python's lists")
def crossing_in_a_plane_4(pairs, lead):
    demand.counts(2, pairs=pairs)
    demand.positive(lead=lead)
    keys, queries = [], []
    for i in range(pairs):
        angle = 2 * math.pi * i / pairs
        keys.append([math.cos(angle), math.sin(angle)])
    length = lead / (keys[0][0] - keys[1][0])
    for i in range(pairs):
        x, y = keys[pairs - 1 - i]
        queries.append([length * x, length * y])
    return torch.tensor(queries), torch.tensor(keys)


@right("crossing_in_a_plane", how="complex numbers, and 1 - cos φ as 2 sin² of half of φ")
def crossing_in_a_plane_5(pairs, lead):
    demand.counts(2, pairs=pairs)
    demand.positive(lead=lead)
    place = torch.arange(pairs)
    step = 2 * math.pi / pairs
    length = lead / (2 * math.sin(step / 2) ** 2)
    keys = torch.view_as_real(torch.polar(torch.ones(pairs), step * place))
    queries = torch.view_as_real(torch.polar(torch.full((pairs,), length), -step * (place + 1)))
    return queries, keys
