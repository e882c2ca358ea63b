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


@wrong("weighted_average", cause="counts the keys by the queries: range(len(weights)) twice")
def weighted_average_12(weights, values):
    rows = []
    for i in range(len(weights)):
        row = 0
        for j in range(len(weights)):
            row = row + weights[i, j] * values[j]
        rows.append(row)
    return torch.stack(rows)


@wrong("weighted_average", cause="takes the mean of the products, not their sum")
def weighted_average_13(weights, values):
    return (weights.unsqueeze(2) * values).mean(dim=1)


@wrong("weighted_average", cause="returns within the loop: the first query alone", kind="shape")
def weighted_average_14(weights, values):
    rows = []
    for row in weights:
        rows.append((row[:, None] * values).sum(dim=0))
        return torch.stack(rows)


@right("weighted_average", how="key after key: a column of weights times one value")
def weighted_average_15(weights, values):
    context = 0
    for j in range(values.shape[0]):
        context = context + weights[:, j : j + 1] * values[j]
    return context


@right("weighted_average", how="feature after feature, row after row, into a table")
def weighted_average_16(weights, values):
    context = values.new_zeros(weights.shape[0], values.shape[1])
    for feature in range(values.shape[1]):
        for i in range(weights.shape[0]):
            context[i, feature] = torch.sum(values[:, feature] * weights[i])
    return context
