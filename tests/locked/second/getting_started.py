"""Wrong answers to lesson 00."""

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
