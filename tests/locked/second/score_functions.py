"""Wrong answers to lesson 04."""

import math

import torch
from torch.nn import functional as F

from attention.bahdanau_attention import additive_scores
from attention.getting_started import softmax
from attention.provided import demand
from tests.locked import wrong

KINDS = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")

# --- score -----------------------------------------------------------------------------------


@wrong("score", cause="scaled_dot divides by d_k, not by its root")
def score_101(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / q.shape[-1]
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"{kind!r} is none of {KINDS}")


@wrong("score", cause="reduced_rank: V projects the keys and U the queries")
def score_102(kind, q, k, weights):
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    if kind == "bilinear":
        q = q @ weights["W"]
    if kind == "reduced_rank":
        q, k = F.linear(q, weights["U"]), F.linear(k, weights["V"])
    scores = torch.einsum("bqd,bkd->bqk", q, k)
    return scores / k.shape[-1] ** 0.5 if kind == "scaled_dot" else scores


@wrong("score", cause="bilinear: W transposed")
def score_103(kind, q, k, weights):
    match kind:
        case "dot":
            return q @ k.transpose(1, 2)
        case "scaled_dot":
            return q @ k.transpose(1, 2) / math.sqrt(k.size(-1))
        case "bilinear":
            return torch.einsum("bqi,ji,bkj->bqk", q, weights["W"], k)
        case "reduced_rank":
            return torch.einsum("bqi,ri,rj,bkj->bqk", q, weights["V"], weights["U"], k)
        case "additive":
            return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"kind must be one of {KINDS}")


@wrong("score", cause="scaled_dot divides by the root of the number of keys")
def score_104(kind, q, k, weights):
    if kind in ("dot", "scaled_dot"):
        s = torch.bmm(q, k.mT)
        return s if kind == "dot" else s / math.sqrt(k.shape[1])
    if kind == "bilinear":
        return torch.matmul(torch.matmul(q, weights["W"]), k.mT)
    if kind == "reduced_rank":
        return torch.bmm(q @ weights["V"].mT, (k @ weights["U"].mT).mT)
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError("dot, scaled_dot, bilinear, reduced_rank or additive")


@wrong("score", cause="reduced_rank is divided by the root of the rank")
def score_105(kind, q, k, weights):
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT * q.shape[-1] ** -0.5
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        a, b = q @ weights["V"].T, k @ weights["U"].T
        return a @ b.mT / math.sqrt(a.shape[-1])
    if kind == "additive":
        return additive_scores(q, k, weights["W_q"], weights["W_k"], weights["v"])
    raise ValueError(f"{kind!r} is none of {KINDS}")


@wrong("score", cause="the tanh of additive scores is forgotten")
def score_106(kind, q, k, weights):
    if kind == "additive":
        a, b = q @ weights["W_q"].T, k @ weights["W_k"].T
        return (a.unsqueeze(2) + b.unsqueeze(1)) @ weights["v"]
    if kind == "dot":
        return q @ k.mT
    if kind == "scaled_dot":
        return q @ k.mT / k.shape[-1] ** 0.5
    if kind == "bilinear":
        return q @ weights["W"] @ k.mT
    if kind == "reduced_rank":
        return (q @ weights["V"].T) @ (k @ weights["U"].T).mT
    raise ValueError(f"{kind!r} is none of {KINDS}")


# --- as_bilinear -----------------------------------------------------------------------------


@wrong("as_bilinear", cause="scaled_dot: divides by d")
def as_bilinear_101(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) / d
    return weights["V"].T @ weights["U"]


@wrong("as_bilinear", cause="ones in place of the identity")
def as_bilinear_102(kind, d, weights):
    if kind == "reduced_rank":
        return torch.einsum("ri,rj->ij", weights["V"], weights["U"])
    W = torch.ones(d, d)
    return W if kind == "dot" else W / math.sqrt(d)


@wrong("as_bilinear", cause="the product over the wrong axis: (r, r)", kind="shape")
def as_bilinear_103(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return torch.eye(d) * d**-0.5
    return weights["V"] @ weights["U"].T


@wrong("as_bilinear", cause="UᵀV: query and key exchanged")
def as_bilinear_104(kind, d, weights):
    if kind == "reduced_rank":
        return weights["U"].T @ weights["V"]
    return torch.eye(d) if kind == "dot" else torch.diag(torch.full((d,), d**-0.5))


@wrong("as_bilinear", cause="scaled_dot: multiplies by the root of d")
def as_bilinear_105(kind, d, weights):
    if kind == "dot":
        return torch.eye(d)
    if kind == "scaled_dot":
        return math.sqrt(d) * torch.eye(d)
    return torch.matmul(weights["V"].mT, weights["U"])


# --- gaussian_scores -------------------------------------------------------------------------


@wrong("gaussian_scores", cause="the term with the keys' length is missing")
def gaussian_scores_101(q, k, bandwidth):
    demand.positive(bandwidth=bandwidth)
    h2 = bandwidth**2
    return q @ k.mT / h2 - q.square().sum(-1, keepdim=True) / (2 * h2)


@wrong("gaussian_scores", cause="q·k is divided by 2 h² too")
def gaussian_scores_102(q, k, bandwidth):
    demand.positive(bandwidth=bandwidth)
    qq = (q * q).sum(-1, keepdim=True)
    kk = (k * k).sum(-1).unsqueeze(1)
    return (q @ k.mT - qq - kk) / (2 * bandwidth**2)


@wrong("gaussian_scores", cause="the lengths are not squared")
def gaussian_scores_103(q, k, bandwidth):
    demand.positive(bandwidth=bandwidth)
    qn = q.norm(dim=-1)[:, :, None]
    kn = k.norm(dim=-1)[:, None, :]
    return torch.einsum("bqd,bkd->bqk", q, k) / bandwidth**2 - (qn + kn) / (2 * bandwidth**2)


@wrong("gaussian_scores", cause="the signs are turned round: plus half the squared distance")
def gaussian_scores_104(q, k, bandwidth):
    demand.positive(bandwidth=bandwidth)
    d2 = (q**2).sum(-1)[..., None] + (k**2).sum(-1)[:, None] - 2 * q @ k.mT
    return d2 / (2 * bandwidth**2)


@wrong("gaussian_scores", cause="divides by h, not by h²")
def gaussian_scores_105(q, k, bandwidth):
    demand.positive(bandwidth=bandwidth)
    d2 = (q**2).sum(-1, keepdim=True) - 2 * (q @ k.mT) + (k**2).sum(-1, keepdim=True).mT
    return -d2 / (2 * bandwidth)


# --- score_costs -----------------------------------------------------------------------------


@wrong("score_costs", cause="forgets that scaled_dot divides once per score")
def score_costs_101(kind, T_q, T_k, d, r):
    demand.counts(0, T_q=T_q, T_k=T_k, d=d, r=r)
    return {
        "dot": (0, T_q * T_k * d),
        "scaled_dot": (0, T_q * T_k * d),
        "bilinear": (d * d, T_q * d * d + T_q * T_k * d),
        "reduced_rank": (2 * r * d, (T_q + T_k) * r * d + T_q * T_k * r),
        "additive": (2 * r * d + r, (T_q + T_k) * r * d + T_q * T_k * r),
    }[kind]


@wrong("score_costs", cause="bilinear projects the query anew for every pair")
def score_costs_102(kind, T_q, T_k, d, r):
    demand.counts(0, T_q=T_q, T_k=T_k, d=d, r=r)
    pairs = T_q * T_k
    if kind == "dot":
        return 0, pairs * d
    if kind == "scaled_dot":
        return 0, pairs * (d + 1)
    if kind == "bilinear":
        return d * d, pairs * (d * d + d)
    projections = (T_q + T_k) * r * d
    return 2 * r * d + (r if kind == "additive" else 0), projections + pairs * r


@wrong("score_costs", cause="additive: v is not counted among the parameters")
def score_costs_103(kind, T_q, T_k, d, r):
    demand.counts(0, T_q=T_q, T_k=T_k, d=d, r=r)
    if kind == "dot":
        return 0, T_q * T_k * d
    if kind == "scaled_dot":
        return 0, T_q * T_k * d + T_q * T_k
    if kind == "bilinear":
        return d**2, T_q * d**2 + T_q * T_k * d
    return 2 * d * r, T_q * d * r + T_k * d * r + T_q * T_k * r


@wrong("score_costs", cause="bilinear projects queries and keys")
def score_costs_104(kind, T_q, T_k, d, r):
    demand.counts(0, T_q=T_q, T_k=T_k, d=d, r=r)
    n = T_q * T_k
    if kind in ("dot", "scaled_dot"):
        return 0, n * d + (n if kind == "scaled_dot" else 0)
    if kind == "bilinear":
        return d * d, (T_q + T_k) * d * d + n * d
    return 2 * r * d + r * (kind == "additive"), (T_q + T_k) * d * r + n * r


@wrong("score_costs", cause="after the projection to r pairs still compare d numbers")
def score_costs_105(kind, T_q, T_k, d, r):
    demand.counts(0, T_q=T_q, T_k=T_k, d=d, r=r)
    parameters = {"bilinear": d * d, "reduced_rank": 2 * d * r, "additive": 2 * d * r + r}
    projected = {"bilinear": T_q * d * d}.get(kind, (T_q + T_k) * d * r)
    if kind in ("dot", "scaled_dot"):
        projected = T_q * T_k if kind == "scaled_dot" else 0
    return parameters.get(kind, 0), projected + T_q * T_k * d


# --- local_window ----------------------------------------------------------------------------


@wrong("local_window", cause="less than D, so the border of the window is cut")
def local_window_101(centres, T_k, D):
    demand.counts(T_k=T_k)
    demand.within(0, D=D)
    positions = torch.arange(T_k, device=centres.device)
    return (positions - centres[:, None]).abs() < D


@wrong("local_window", cause="only the keys before the centre, as in a causal window")
def local_window_102(centres, T_k, D):
    demand.counts(T_k=T_k)
    demand.within(0, D=D)
    gap = centres.unsqueeze(1) - torch.arange(T_k, device=centres.device)
    return (gap >= 0) & (gap <= D)


@wrong("local_window", cause="D is the whole width of the window")
def local_window_103(centres, T_k, D):
    demand.counts(T_k=T_k)
    demand.within(0, D=D)
    j = torch.arange(T_k, device=centres.device)
    return (j[None] - centres[:, None]).abs() <= D / 2


@wrong("local_window", cause="centres are rounded down to whole positions")
def local_window_104(centres, T_k, D):
    demand.counts(T_k=T_k)
    demand.within(0, D=D)
    j = torch.arange(T_k, device=centres.device)
    return (j - centres.long()[:, None]).abs() <= D


# --- predictive_local_weights ----------------------------------------------------------------


@wrong("predictive_local_weights", cause="the rows are divided by their sums again")
def predictive_local_weights_101(scores, centres, D):
    demand.positive(D=D)
    gap = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    w = torch.softmax(scores.masked_fill(gap.abs() > D, -torch.inf), dim=1)
    w = w * torch.exp(-(gap**2) / (2 * (D / 2) ** 2))
    return w / w.sum(dim=1, keepdim=True)


@wrong("predictive_local_weights", cause="softmax over all keys, zeros outside afterwards")
def predictive_local_weights_102(scores, centres, D):
    demand.positive(D=D)
    gap = torch.arange(scores.shape[1], device=scores.device) - centres.unsqueeze(1)
    w = softmax(scores, dim=1) * torch.exp(-2 * gap**2 / D**2)
    return torch.where(gap.abs() <= D, w, torch.zeros_like(w))


@wrong("predictive_local_weights", cause="sigma = D, not D / 2")
def predictive_local_weights_103(scores, centres, D):
    demand.positive(D=D)
    gap = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    w = torch.softmax(scores.masked_fill(gap.abs() > D, -torch.inf), dim=-1)
    return w * torch.exp(-0.5 * (gap / D) ** 2)


@wrong("predictive_local_weights", cause="the Gaussian is added to the scores, in the softmax")
def predictive_local_weights_104(scores, centres, D):
    demand.positive(D=D)
    gap = torch.arange(scores.shape[1], device=scores.device) - centres[:, None]
    bias = -(gap**2) / (2 * (D / 2) ** 2)
    return torch.softmax((scores + bias).masked_fill(gap.abs() > D, -torch.inf), dim=1)


@wrong("predictive_local_weights", cause="the centre is detached", kind="gradient")
def predictive_local_weights_105(scores, centres, D):
    demand.positive(D=D)
    p = centres.detach()[:, None]
    j = torch.arange(scores.size(1), device=scores.device)[None]
    w = scores.masked_fill((j - p).abs() > D, float("-inf")).softmax(1)
    return w * torch.exp(-((j - p) ** 2) / (2 * (D / 2) ** 2))


# --- hard_attention --------------------------------------------------------------------------


@wrong("hard_attention", cause="takes the largest weight, no chance at all")
def hard_attention_101(weights, values, uniform):
    return values[weights.argmax(dim=1)]


@wrong("hard_attention", cause="counts sums that are larger, not those that are not")
def hard_attention_102(weights, values, uniform):
    larger = weights.cumsum(dim=1) > uniform[:, None]
    return values[larger.sum(dim=1).clamp(max=len(values) - 1)]


@wrong("hard_attention", cause="< in place of <=: a number exactly on a sum falls before it")
def hard_attention_103(weights, values, uniform):
    index = (weights.cumsum(1) < uniform.unsqueeze(1)).sum(1)
    return values[index.clamp(max=values.shape[0] - 1)]


@wrong("hard_attention", cause="an index beyond the last key where rounding leaves none")
def hard_attention_104(weights, values, uniform):
    return values[(weights.cumsum(dim=1) <= uniform[:, None]).sum(dim=1)]


@wrong("hard_attention", cause="argmax of no True is 0: the first key where rounding leaves none")
def hard_attention_105(weights, values, uniform):
    passed = torch.cumsum(weights, dim=1) > uniform[:, None]
    return values[passed.int().argmax(dim=1)]


# --- reinforce_gradient ----------------------------------------------------------------------


@wrong("reinforce_gradient", cause="the sum over the trials, not the mean")
def reinforce_gradient_101(scores, chosen, rewards, baseline):
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    onehot = torch.eye(len(scores), device=scores.device)[chosen]
    return ((rewards - baseline)[:, None] * (onehot - softmax(scores, 0))).sum(0)


@wrong("reinforce_gradient", cause="the baseline is added")
def reinforce_gradient_102(scores, chosen, rewards, baseline):
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    onehot = F.one_hot(chosen, scores.numel()).to(scores.dtype)
    return ((rewards + baseline).unsqueeze(1) * (onehot - scores.softmax(0))).mean(0)


@wrong("reinforce_gradient", cause="minus: softmax minus one-hot, as for a loss")
def reinforce_gradient_103(scores, chosen, rewards, baseline):
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    g = softmax(scores, 0).repeat(len(chosen), 1)
    g[torch.arange(len(chosen)), chosen] -= 1
    return ((rewards - baseline)[:, None] * g).mean(dim=0)


@wrong("reinforce_gradient", cause="derivative of the weight, not of its logarithm")
def reinforce_gradient_104(scores, chosen, rewards, baseline):
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    w = softmax(scores, dim=0)
    onehot = torch.eye(len(w), device=w.device)[chosen]
    grad = w[chosen][:, None] * (onehot - w)
    return ((rewards - baseline)[:, None] * grad).mean(dim=0)


@wrong("reinforce_gradient", cause="the baseline comes off after the mean, from the gradient")
def reinforce_gradient_105(scores, chosen, rewards, baseline):
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    onehot = torch.eye(len(scores), device=scores.device)[chosen]
    return (rewards[:, None] * (onehot - softmax(scores, 0))).mean(0) - baseline


@wrong("reinforce_gradient", cause="divides by the number of keys, not of trials")
def reinforce_gradient_106(scores, chosen, rewards, baseline):
    demand.counts(N=len(chosen))
    demand.within(-torch.inf, torch.inf, baseline=baseline)
    onehot = torch.eye(len(scores), device=scores.device)[chosen]
    steps = (rewards - baseline)[:, None] * (onehot - softmax(scores, 0))
    return steps.sum(dim=0) / len(scores)
