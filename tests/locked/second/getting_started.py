"""Wrong answers to lesson 00."""

import math

import torch

from tests.locked import wrong

# --- uniform_average -------------------------------------------------------------------------


@wrong("uniform_average", cause="divides by the number of features")
def uniform_average_101(values):
    return values.sum(dim=0) / values.shape[1]


@wrong("uniform_average", cause="averages the features of each vector", kind="shape")
def uniform_average_102(values):
    return torch.mean(values, dim=-1)


@wrong("uniform_average", cause="the median in place of the mean")
def uniform_average_103(values):
    return values.median(dim=0).values


@wrong("uniform_average", cause="adds the first vector twice")
def uniform_average_104(values):
    total = values[0].clone()
    for row in values:
        total += row
    return total / len(values)


# --- softmax ---------------------------------------------------------------------------------


@wrong("softmax", cause="subtracts the largest score of the whole tensor: other rows underflow")
def softmax_101(scores, dim):
    exp = torch.exp(scores - scores.max())
    return exp / exp.sum(dim=dim, keepdim=True)


@wrong("softmax", cause="the mean is subtracted, not the maximum: still overflows")
def softmax_102(scores, dim):
    e = (scores - scores.mean(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


@wrong("softmax", cause="the axis is always the last one")
def softmax_103(scores, dim):
    top = scores.amax(dim=-1, keepdim=True)
    e = torch.exp(scores - top)
    return e / e.sum(dim=-1, keepdim=True)


@wrong("softmax", cause="clamps large scores: two large ones get equal weights")
def softmax_104(scores, dim):
    e = torch.exp(torch.clamp(scores, -80, 80))
    return e / torch.sum(e, dim=dim, keepdim=True)


@wrong("softmax", cause="replaces -inf by 0, which has weight exp(0)")
def softmax_105(scores, dim):
    scores = torch.nan_to_num(scores, neginf=0.0)
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@wrong("softmax", cause="divides by the largest score in place of subtracting it")
def softmax_106(scores, dim):
    e = torch.exp(scores / scores.abs().amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)


@wrong("softmax", cause="returns the log of the weights")
def softmax_107(scores, dim):
    top = scores.amax(dim, keepdim=True)
    return scores - top - (scores - top).exp().sum(dim, keepdim=True).log()


@wrong("softmax", cause="2 to the power of the scores, not e")
def softmax_108(scores, dim):
    powers = 2 ** (scores - scores.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


# --- weighted_average ------------------------------------------------------------------------


@wrong("weighted_average", cause="looks at the sums of the columns")
def weighted_average_101(weights, values):
    for j, total in enumerate(weights.sum(dim=0)):
        if abs(total - 1) > 1e-4:
            raise ValueError(f"row {j} of the weights sums to {total:.4f}, not to 1")
    return weights @ values


@wrong("weighted_average", cause="refuses only sums that are too large", kind="error")
def weighted_average_102(weights, values):
    for i, row in enumerate(weights):
        if row.sum() - 1 > 1e-4:
            raise ValueError(f"row {i} of the weights sums to {row.sum():.4f}, not to 1")
    return torch.einsum("ij,jd->id", weights, values)


@wrong("weighted_average", cause="asks for a sum of exactly 1", kind="error")
def weighted_average_103(weights, values):
    for i in range(weights.shape[0]):
        if weights[i].sum().item() != 1.0:
            raise ValueError(f"row {i} of the weights sums to {weights[i].sum().item()}, not to 1")
    return weights @ values


@wrong("weighted_average", cause="names the last bad row, not the first", kind="error")
def weighted_average_104(weights, values):
    sums = weights.sum(1)
    bad = [i for i, s in enumerate(sums.tolist()) if not math.isclose(s, 1, abs_tol=1e-4)]
    if bad:
        raise ValueError(f"row {bad[-1]} of the weights sums to {sums[bad[-1]]:.4f}, not to 1")
    return weights @ values


@wrong("weighted_average", cause="counts the rows from 1 in the message", kind="error")
def weighted_average_105(weights, values):
    for number, row in enumerate(weights, 1):
        if (row.sum() - 1).abs() > 1e-4:
            raise ValueError(f"row {number} of the weights sums to {row.sum():.4f}, not to 1")
    return weights @ values


@wrong("weighted_average", cause="the mean over the keys of the weighted values, not the sum")
def weighted_average_106(weights, values):
    sums = weights.sum(dim=1)
    for i in range(len(sums)):
        if abs(sums[i] - 1) > 1e-4:
            raise ValueError(f"row {i} of the weights sums to {sums[i]:.4f}, not to 1")
    return (weights[:, :, None] * values[None]).mean(dim=1)
