"""Answers to lesson 00 that were written without a look at its checks."""

import torch

from tests.locked import right, wrong

# --- uniform_average -------------------------------------------------------------------------


@wrong(
    "uniform_average",
    cause="goes through Python lists, so no gradient reaches the values",
    kind="gradient",
)
def uniform_average_5(values):
    rows = values.tolist()
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return torch.tensor(means, dtype=values.dtype, device=values.device)


@right("uniform_average", how="a vector of equal weights times the matrix")
def uniform_average_6(values):
    count = values.shape[0]
    return values.new_full((count,), 1 / count) @ values


@right("uniform_average", how="adds the rows in a loop")
def uniform_average_7(values):
    total = torch.zeros_like(values[0])
    for row in values:
        total = total + row
    return total / len(values)


# --- softmax ---------------------------------------------------------------------------------


@wrong("softmax", cause="divides by the largest exponential instead of by their sum", kind="value")
def softmax_1(scores, dim):
    powers = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return powers / powers.amax(dim=dim, keepdim=True)


@wrong(
    "softmax",
    cause="cuts scores off at ±80, so large scores that differ get equal weights",
    kind="extreme",
)
def softmax_5(scores, dim):
    powers = scores.clamp(-80, 80).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong("softmax", cause="computes and returns float32 whatever comes in", kind="dtype")
def softmax_8(scores, dim):
    scores = scores.float()
    powers = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


@right("softmax", how="takes the slices apart, and finds maximum and sum in loops")
def softmax_9(scores, dim):
    parts = scores.unbind(dim)
    top = parts[0]
    for part in parts[1:]:
        top = torch.maximum(top, part)
    powers = [torch.exp(part - top) for part in parts]
    total = powers[0]
    for power in powers[1:]:
        total = total + power
    return torch.stack([power / total for power in powers], dim=dim)


@right("softmax", how="exp of the shifted scores minus their logsumexp")
def softmax_10(scores, dim):
    shifted = scores - scores.max(dim=dim, keepdim=True).values
    return (shifted - shifted.logsumexp(dim=dim, keepdim=True)).exp()


@right("softmax", how="moves the axis to the front and back again: other layout in memory")
def softmax_11(scores, dim):
    front = scores.movedim(dim, 0)
    powers = (front - front.amax(0)).exp()
    return (powers / powers.sum(0)).movedim(0, dim)


# --- weighted_average ------------------------------------------------------------------------


@wrong(
    "weighted_average",
    cause="takes the mean over the keys instead of the sum, a factor 1 / T_k too small",
    kind="value",
)
def weighted_average_8(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if not abs(total - 1) <= 1e-4:
            raise ValueError(f"row {row} of the weights sums to {total:.4f}, not to 1")
    return (weights[:, :, None] * values[None]).mean(dim=1)


@wrong("weighted_average", cause="returns the context transposed: (d_v, T_q)", kind="shape")
def weighted_average_9(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if not abs(total - 1) <= 1e-4:
            raise ValueError(f"row {row} of the weights sums to {total:.4f}, not to 1")
    return values.T @ weights.T


class NotAnAverage(ValueError):
    """A row of weights does not sum to 1."""


@right("weighted_average", how="finds bad rows without a loop, raises a subclass of ValueError")
def weighted_average_10(weights, values):
    sums = weights.sum(1)
    bad = torch.nonzero(~((sums - 1).abs() <= 1e-4)).flatten()
    if len(bad):
        first = int(bad[0])
        raise NotAnAverage(f"row {first} of the weights sums to {sums[first].item():.4f}, not to 1")
    return torch.einsum("qk,kd->qd", weights, values)


@right("weighted_average", how="one query after the other, each checked just before its average")
def weighted_average_11(weights, values):
    rows = []
    for i in range(weights.shape[0]):
        total = float(weights[i].sum())
        if not (0.9999 <= total <= 1.0001):
            raise ValueError(f"the weights in row {i} sum to {total:.6f} instead of 1")
        rows.append((weights[i].unsqueeze(1) * values).sum(0))
    return torch.stack(rows)
