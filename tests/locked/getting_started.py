"""Answers to lesson 00 that were written without a look at its checks."""

import torch

from tests.locked import right, wrong

# --- uniform_average -------------------------------------------------------------------------


@wrong("uniform_average", cause="averages over the features instead of the vectors", kind="shape")
def uniform_average_1(values):
    return values.mean(dim=1)


@wrong("uniform_average", cause="adds the vectors up but never divides", kind="value")
def uniform_average_2(values):
    return values.sum(dim=0)


@wrong(
    "uniform_average",
    cause="divides by the number of features instead of the number of vectors",
    kind="value",
)
def uniform_average_3(values):
    total = torch.zeros_like(values[0])
    for row in values:
        total = total + row
    return total / values.shape[1]


@wrong("uniform_average", cause="keeps the averaged axis: (1, d_v)", kind="shape")
def uniform_average_4(values):
    return torch.mean(values, 0, keepdim=True)


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
    "softmax", cause="the maximum and the sum lose their axis, so only dim=0 works", kind="crash"
)
def softmax_2(scores, dim):
    powers = torch.exp(scores - scores.amax(dim=dim))
    return powers / powers.sum(dim=dim)


@wrong(
    "softmax",
    cause="subtracts the largest score of the whole tensor, so a slice far below it becomes 0 / 0",
    kind="extreme",
)
def softmax_3(scores, dim):
    powers = torch.exp(scores - scores.max())
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong("softmax", cause="ignores dim and always takes the last axis", kind="value")
def softmax_4(scores, dim):
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


@wrong(
    "softmax",
    cause="cuts scores off at ±80, so large scores that differ get equal weights",
    kind="extreme",
)
def softmax_5(scores, dim):
    powers = scores.clamp(-80, 80).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong("softmax", cause="subtracts the largest score in place from its input", kind="state")
def softmax_6(scores, dim):
    scores -= scores.amax(dim=dim, keepdim=True)
    powers = scores.exp()
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong("softmax", cause="max with a dim returns a pair, which cannot be subtracted", kind="crash")
def softmax_7(scores, dim):
    powers = torch.exp(scores - scores.max(dim=dim, keepdim=True))
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


@wrong("weighted_average", cause="never looks whether the rows sum to 1", kind="error")
def weighted_average_1(weights, values):
    return weights @ values


@wrong("weighted_average", cause="checks the sums of the columns, not of the rows", kind="error")
def weighted_average_2(weights, values):
    for row, total in enumerate(weights.sum(dim=0).tolist()):
        if not abs(total - 1) <= 1e-4:
            raise ValueError(f"row {row} of the weights sums to {total:.4f}, not to 1")
    return weights @ values


@wrong(
    "weighted_average",
    cause="accepts no rounding: rows whose sum differs from 1 by 1e-7 are refused",
    kind="error",
)
def weighted_average_3(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if total != 1:
            raise ValueError(f"row {row} of the weights sums to {total}, not to 1")
    return weights @ values


@wrong("weighted_average", cause="scales bad rows to 1 instead of raising", kind="error")
def weighted_average_4(weights, values):
    weights = weights / weights.sum(dim=1, keepdim=True)
    return weights @ values


@wrong("weighted_average", cause="reports the last bad row instead of the first", kind="error")
def weighted_average_5(weights, values):
    bad = None
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if not abs(total - 1) <= 1e-4:
            bad = row, total
    if bad is not None:
        raise ValueError(f"row {bad[0]} of the weights sums to {bad[1]:.4f}, not to 1")
    return weights @ values


@wrong("weighted_average", cause="raises AssertionError instead of ValueError", kind="error")
def weighted_average_6(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        assert abs(total - 1) <= 1e-4, f"row {row} of the weights sums to {total:.4f}, not to 1"
    return weights @ values


@wrong("weighted_average", cause="lets rows through whose sum is too small", kind="error")
def weighted_average_7(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if total - 1 > 1e-4:
            raise ValueError(f"row {row} of the weights sums to {total:.4f}, not to 1")
    return weights @ values


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
