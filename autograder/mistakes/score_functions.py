"""Wrong and right answers to the exercises of lesson 04."""

import math

import torch
from torch.nn import functional

from attention.score_functions import KINDS
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _known(kind):
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
    return kind


def _score(kind, q, k, weights, **replaced):
    """The scores of one kind, with the formulas in ``replaced`` instead of the right ones."""
    formulas = {
        "dot": lambda: torch.einsum("bqd,bkd->bqk", q, k),
        "scaled_dot": lambda: torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[2]),
        "bilinear": lambda: torch.einsum("bqd,de,bke->bqk", q, weights["W"], k),
        "reduced_rank": lambda: torch.einsum(
            "bqd,rd,re,bke->bqk", q, weights["V"], weights["U"], k
        ),
        "additive": lambda: (
            torch.tanh((q @ weights["W_q"].T)[:, :, None] + (k @ weights["W_k"].T)[:, None])
            @ weights["v"]
        ),
    }
    return (formulas | replaced)[_known(kind)]()


@alternative("score")
def all_with_einsum(kind, q, k, weights):
    return _score(kind, q, k, weights)


@alternative("score")
def by_way_of_one_matrix(kind, q, k, weights):
    if _known(kind) == "additive":
        columns = [
            torch.tanh(q @ weights["W_q"].T + key[:, None] @ weights["W_k"].T) @ weights["v"]
            for key in k.unbind(1)
        ]
        return torch.stack(columns, 2)
    matrix = {
        "dot": lambda: torch.eye(q.shape[2]).to(q),
        "scaled_dot": lambda: torch.eye(q.shape[2]).to(q) * q.shape[2] ** -0.5,
        "bilinear": lambda: weights["W"],
        "reduced_rank": lambda: weights["V"].T @ weights["U"],
    }[kind]()
    return torch.bmm(torch.matmul(q, matrix), k.transpose(1, 2))


@careless("score")
def fills_a_new_tensor(kind, q, k, weights):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for b in range(len(q)):
        scores[b] = _score(kind, q[b : b + 1], k[b : b + 1], weights)[0]
    return scores


@careless("score")
def through_numpy(kind, q, k, weights):
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return _score(kind, torch.from_numpy(q.numpy()), torch.from_numpy(k.numpy()), tensors)


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


def _costs(kind, T_q, T_k, d, r, **replaced):
    """Parameters and multiplications, with the counts in ``replaced`` instead of the right ones."""
    pairs, both = T_q * T_k, (T_q + T_k) * r * d
    return {
        "dot": (0, pairs * d),
        "scaled_dot": (0, pairs * (d + 1)),
        "bilinear": (d * d, T_q * d * d + pairs * d),
        "reduced_rank": (2 * r * d, both + pairs * r),
        "additive": (2 * r * d + r, both + pairs * r),
        **replaced,
    }[kind]


@alternative("score_costs")
def from_a_table(kind, T_q, T_k, d, r):
    return _costs(kind, T_q, T_k, d, r)


@alternative("score_costs")
def with_tensors_of_those_shapes(kind, T_q, T_k, d, r):
    shapes = {
        "bilinear": [(d, d)],
        "reduced_rank": [(r, d), (r, d)],
        "additive": [(r, d), (r, d), (r,)],
    }.get(kind, [])
    compared = d if kind in ("dot", "scaled_dot", "bilinear") else r
    count = T_q * T_k * (compared + (kind == "scaled_dot"))
    for vectors, shape in zip((T_q, T_k), shapes, strict=False):
        count += vectors * math.prod(shape)
    return sum(map(math.prod, shapes)), count


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


def _gaps(centres, T_k):
    return torch.arange(T_k, device=centres.device) - centres[:, None]


@alternative("local_window")
def with_two_borders(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device).expand(len(centres), T_k)
    low, high = (centres - D).unsqueeze(1), (centres + D).unsqueeze(1)
    return (positions >= low) & (positions <= high)


@alternative("local_window")
def row_by_row(centres, T_k, D):
    rows = [[centre - D <= j <= centre + D for j in range(T_k)] for centre in centres.tolist()]
    return torch.tensor(rows, device=centres.device)


@careless("local_window")
def positions_on_the_cpu(centres, T_k, D):
    return (torch.arange(T_k) - centres[:, None]).abs() <= D


@careless("local_window")
def window_after_window(centres, T_k, D):
    mask = torch.zeros(len(centres), T_k, dtype=torch.bool)
    for i, centre in enumerate(centres.tolist()):
        for j in range(T_k):
            mask[i, j] = abs(j - centre) <= D
    return mask


@alternative("predictive_local_weights")
def query_by_query(scores, centres, D):
    rows = []
    for row, centre in zip(scores, centres, strict=True):
        gaps = torch.arange(len(row), device=row.device) - centre
        inside = gaps.abs() <= D
        powers = torch.where(inside, row - row[inside].max(), -torch.inf).exp()
        rows.append(powers / powers.sum() * torch.exp(-2 * (gaps / D) ** 2))
    return torch.stack(rows)


@alternative("predictive_local_weights")
def with_a_normal_density(scores, centres, D):
    gaps = _gaps(centres, scores.shape[1])
    seen = torch.where(gaps.abs() <= D, scores, -torch.inf)
    powers = (seen - seen.amax(1, keepdim=True)).exp()
    density = torch.distributions.Normal(0.0, D / 2).log_prob(gaps)
    peak = -math.log(D / 2 * math.sqrt(2 * math.pi))
    return powers / powers.sum(1, keepdim=True) * (density - peak).exp()


@careless("predictive_local_weights")
def distances_on_the_cpu(scores, centres, D):
    gaps = torch.arange(scores.shape[1]) - centres[:, None]
    aligned = scores.masked_fill(gaps.abs() > D, -torch.inf).softmax(1)
    return aligned * torch.exp(-2 * (gaps / D) ** 2)


@careless("predictive_local_weights")
def exponentials_without_a_shift(scores, centres, D):
    gaps = _gaps(centres, scores.shape[1])
    powers = scores.exp() * (gaps.abs() <= D)
    return powers / powers.sum(1, keepdim=True) * torch.exp(-2 * (gaps / D) ** 2)


@alternative("hard_attention")
def with_searchsorted(weights, values, uniform):
    sums = weights.cumsum(1).contiguous()
    chosen = torch.searchsorted(sums, uniform[:, None].contiguous(), right=True)
    return values[chosen.squeeze(1).clamp(max=len(values) - 1)]


@alternative("hard_attention")
def adds_up_in_a_loop(weights, values, uniform):
    chosen = []
    for row, left in zip(weights.tolist(), uniform.tolist(), strict=True):
        index, total = 0, row[0]
        while total <= left and index < len(row) - 1:
            index += 1
            total += row[index]
        chosen.append(index)
    return functional.one_hot(torch.tensor(chosen), len(values)).to(values) @ values


@careless("hard_attention")
def fills_new_rows(weights, values, uniform):
    chosen = torch.zeros(len(weights), values.shape[1])
    for i, row in enumerate(weights):
        j = int((row.cumsum(0) <= uniform[i]).sum())
        chosen[i] = values[min(j, len(values) - 1)]
    return chosen


@careless("hard_attention")
def numbers_one_hot(weights, values, uniform):
    index = (weights.cumsum(1) <= uniform[:, None]).sum(1).clamp(max=len(values) - 1)
    one_hot = torch.zeros(len(weights), len(values), dtype=values.dtype)
    one_hot[torch.arange(len(weights)), index] = 1
    return one_hot @ values


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


_BOOL = "True and False have no gradient"
_THREE_AXES = "of three axes the last is axis 2"
_DISTANCE = "only the distance counts, and its square: they have no sign"
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
    "score: with `q` once where `k` belongs: return q @ k.mT / q.shape[2] ** 0.5": (
        "queries and keys of this kind have one length"
    ),
    "as_bilinear: whose result is cut off from the gradient: "
    "return (weights['V'].T @ weights['U']).detach()": _NUMBERS,
    "as_bilinear: whose result is cut off from the gradient: return torch.eye(d).detach()": (
        _NUMBERS
    ),
    "as_bilinear: whose result is cut off from the gradient: "
    "return (torch.eye(d) / d ** 0.5).detach()": _NUMBERS,
    "gaussian_scores: with another axis in one place: "
    "q_squared = q.square().sum(dim=-1).unsqueeze(2)": _THREE_AXES,
    "gaussian_scores: with another axis in one place: "
    "k_squared = k.square().sum(dim=-1).unsqueeze(1)": _THREE_AXES,
    "local_window: whose result is cut off from the gradient: "
    "return ((positions - centres.unsqueeze(1)).abs() <= D).detach()": _BOOL,
    "local_window: with the two sides of one `-` exchanged: "
    "return (centres.unsqueeze(1) - positions).abs() <= D": _DISTANCE,
    "predictive_local_weights: with `centres` once where `scores` belongs: "
    "positions = torch.arange(scores.shape[1], device=centres.device)": _TOGETHER,
    "predictive_local_weights: with the two sides of one `-` exchanged: "
    "distances = centres.unsqueeze(1) - positions": _DISTANCE,
    "reinforce_gradient: with another axis in one place: weights = softmax(scores, dim=-1)": (
        _ONE_AXIS
    ),
    "reinforce_gradient: with one whole number off by one: weights = softmax(scores, dim=-1)": (
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
