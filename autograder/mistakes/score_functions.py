"""Wrong and right answers to the exercises of lesson 04."""

import math

import torch
from torch.nn import functional

from autograder.checking.toolbox.registry import alternative, careless, mistake


@mistake(
    "as_bilinear",
    hint="V and U have changed places: the rows of W belong to the query, which V projects.",
)
def swaps_v_and_u(kind, d, weights):
    if kind not in ("dot", "scaled_dot"):  # the axis r disappears, d and d remain
        return torch.einsum("ri,rj->ij", weights["U"], weights["V"])
    size = 1.0 if kind == "dot" else d**-0.5
    return torch.diag(torch.full((d,), size))


@alternative("as_bilinear")
def entry_by_entry(kind, d, weights):
    if kind == "reduced_rank":
        return torch.einsum("rq,rk->qk", weights["V"], weights["U"])
    return torch.diag(torch.full((d,), 1.0 if kind == "dot" else 1 / math.sqrt(d)))


@alternative("as_bilinear")
def sum_of_outer_products(kind, d, weights):
    if kind == "reduced_rank":
        return sum(map(torch.outer, weights["V"], weights["U"]))
    W = torch.zeros(d, d, dtype=torch.float64)
    return W.fill_diagonal_(1.0 if kind == "dot" else d**-0.5)


@careless("as_bilinear")
def fills_a_new_matrix(kind, d, weights):
    if kind != "reduced_rank":
        return torch.eye(d) / (d**0.5 if kind == "scaled_dot" else 1)
    W = torch.zeros(weights["V"].shape[1], weights["U"].shape[1])
    for v, u in zip(weights["V"], weights["U"], strict=True):
        W += torch.outer(v, u)
    return W


@careless("as_bilinear")
def in_single_precision(kind, d, weights):
    if kind == "reduced_rank":
        return weights["V"].float().T @ weights["U"].float()
    return torch.eye(d) * (d**-0.5 if kind == "scaled_dot" else 1)


@alternative("crossing_in_a_plane")
def point_after_point(pairs, lead):
    turn = 2 * math.pi / pairs
    keys = torch.tensor([[math.cos(turn * i), math.sin(turn * i)] for i in range(pairs)])
    longer = keys * lead / (2 * math.sin(turn / 2) ** 2)
    return longer[range(pairs - 1, -1, -1)], keys


@alternative("crossing_in_a_plane")
def measures_the_gap(pairs, lead):
    on_circle = torch.polar(
        torch.ones(pairs, dtype=torch.float64),
        torch.arange(pairs, dtype=torch.float64) * (2 * math.pi / pairs),
    )
    keys = torch.view_as_real(on_circle)
    scores = keys @ keys.T
    return (lead / (scores[0, 0] - scores[0, 1]) * keys).flipud(), keys


def _squares(q, k):
    return (q * q).sum(2)[:, :, None], (k * k).sum(2)[:, None]


@alternative("gaussian_scores")
def with_batched_addition(q, k, bandwidth):
    a, b = _squares(q, k)
    return torch.baddbmm(a + b, q, k.transpose(1, 2), alpha=-2) / (-2 * bandwidth * bandwidth)


@alternative("gaussian_scores")
def from_one_long_dot_product(q, k, bandwidth):
    a, b = _squares(q, k)
    ones_q, ones_k = torch.ones_like(a), torch.ones_like(b.mT)
    left = torch.cat([q, a, ones_q], 2) / bandwidth
    right = torch.cat([k, -ones_k / 2, -b.mT / 2], 2) / bandwidth
    return torch.einsum("bqd,bkd->bqk", left, right)


@careless("gaussian_scores")
def pair_by_pair(q, k, bandwidth):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for b, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        gap = q[b, i] @ q[b, i] - 2 * q[b, i] @ k[b, j] + k[b, j] @ k[b, j]
        scores[b, i, j] = -gap / (2 * bandwidth**2)
    return scores


@careless("gaussian_scores")
def squares_in_place(q, k, bandwidth):
    products = q @ k.mT
    a, b = q.pow_(2).sum(2)[:, :, None], k.pow_(2).sum(2)[:, None]
    return (2 * products - a - b) / (2 * bandwidth**2)


def _one_hot(scores, chosen):
    return functional.one_hot(chosen, len(scores)).to(scores)


@alternative("reinforce_gradient")
def with_autograd(scores, chosen, rewards, baseline):
    leaf = scores.detach().clone().requires_grad_()
    gain = ((rewards - baseline) * leaf.log_softmax(0)[chosen]).mean()
    return torch.autograd.grad(gain, leaf)[0]


@alternative("reinforce_gradient")
def key_by_key(scores, chosen, rewards, baseline):
    p, gain = scores.softmax(0), rewards - baseline
    return torch.stack([(gain * ((chosen == j).to(p) - p[j])).mean() for j in range(len(p))])


@careless("reinforce_gradient")
def identity_on_the_cpu(scores, chosen, rewards, baseline):
    gradients = torch.eye(len(scores))[chosen] - scores.softmax(0)
    return ((rewards - baseline)[:, None] * gradients).mean(0)


@careless("reinforce_gradient")
def subtracts_in_place(scores, chosen, rewards, baseline):
    rewards -= baseline
    return (rewards[:, None] * (_one_hot(scores, chosen) - scores.softmax(0))).mean(0)


_THREE_AXES = "of three axes the last is axis 2"
_NUMBERS = "what is asked for is the matrix: nothing is learned through it"
_EYE = "one-hot rows hold 0 and 1 exactly in any dtype, and minus the weights they take theirs"
_TOGETHER = "all arguments live on one device"
_ONE_AXIS = "of one axis the first is the last"


def _bilinear(weights):
    return torch.einsum("rq,rk->qk", weights["V"], weights["U"])


@mistake(
    "break_as_bilinear",
    hint="This kind has no V and no U, so there is nothing to exchange.",
    where=lambda kind, d, weights: kind != "reduced_rank",
)
def without_v_and_u():
    return "scaled_dot", 5, {}


@mistake(
    "break_as_bilinear",
    hint="V and U are the same matrix: exchanging them changes nothing.",
    where=lambda kind, d, weights: torch.equal(weights["V"], weights["U"]),
)
def one_matrix_for_both():
    V = torch.arange(6.0).view(2, 3)
    return "reduced_rank", 3, {"V": V, "U": V.clone()}


@mistake(
    "break_as_bilinear",
    hint="V and U differ, but W is symmetric: it gives the same score when query and key are "
    "exchanged. Which V and U make a W that is not?",
    where=lambda kind, d, weights: torch.allclose(_bilinear(weights), _bilinear(weights).T),
)
def a_symmetric_matrix():
    return "reduced_rank", 2, {"V": torch.tensor([[1.0, 2.0]]), "U": torch.tensor([[2.0, 4.0]])}


@alternative("break_as_bilinear")
def rank_one():
    weights = {"V": torch.tensor([[1.0, 2.0, 3.0]]), "U": torch.tensor([[3.0, 2.0, 1.0]])}
    return "reduced_rank", 3, weights


@alternative("break_as_bilinear")
def counted_up():
    V = torch.arange(8.0, dtype=torch.float64).view(2, 4)
    return "reduced_rank", 4, {"V": V, "U": V.flip(1)}


EQUIVALENT = {
    "as_bilinear: whose result is cut off from the gradient: "
    "return (weights['V'].T @ weights['U']).detach()": _NUMBERS,
    "as_bilinear: whose result is cut off from the gradient: return torch.eye(d).detach()": (
        _NUMBERS
    ),
    "as_bilinear: whose result is cut off from the gradient: "
    "return (torch.eye(d) / d ** 0.5).detach()": _NUMBERS,
    "crossing_in_a_plane: whose result is cut off from the gradient: "
    "return (queries.detach(), keys.detach())": "only numbers go in",
    "gaussian_scores: with another axis in one place: "
    "q_squared = q.square().sum(dim=-1).unsqueeze(2)": _THREE_AXES,
    "gaussian_scores: with another axis in one place: "
    "k_squared = k.square().sum(dim=-1).unsqueeze(1)": _THREE_AXES,
    "reinforce_gradient: with another axis in one place: weights = scores.softmax(dim=-1)": (
        _ONE_AXIS
    ),
    "reinforce_gradient: with one whole number off by one: weights = scores.softmax(dim=-1)": (
        _ONE_AXIS
    ),
    "reinforce_gradient: without `dtype` in one call of `eye`: "
    "one_hot = torch.eye(len(scores), device=scores.device)[chosen]": _EYE,
    "reinforce_gradient: with `chosen` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=chosen.dtype, device=scores.device)[chosen]": _EYE,
    "reinforce_gradient: with `rewards` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=rewards.dtype, device=scores.device)[chosen]": _EYE,
    "reinforce_gradient: with `chosen` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=scores.dtype, device=chosen.device)[chosen]": _TOGETHER,
    "reinforce_gradient: with `rewards` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=scores.dtype, device=rewards.device)[chosen]": (
        _TOGETHER
    ),
    "reinforce_gradient: whose result is cut off from the gradient: "
    "return ((rewards - baseline).unsqueeze(1) * gradients).mean(dim=0).detach()": (
        "the result is a gradient already, and is not differentiated again"
    ),
}
