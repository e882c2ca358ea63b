"""Wrong answers to lesson 04."""

import math

import torch
from torch.nn import functional as F

from attention.getting_started import softmax
from attention.provided import demand
from tests.locked import wrong

KINDS = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")


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
