"""Careless right answers to lesson 00."""

import torch

from tests.locked.careless import careless


@careless("uniform_average", "device", how="a total of zeros without a device")
def uniform_average_1(values):
    total = torch.zeros(values.shape[1], dtype=values.dtype)
    for row in values:
        total = total + row
    return total / len(values)


@careless("uniform_average", "plain_numbers", how="a total that starts at 0.0")
def uniform_average_2(values):
    total = 0.0
    for row in values:
        total = total + row
    return total / values.shape[0]


@careless("uniform_average", "other_order", how="divides before it adds")
def uniform_average_3(values):
    return (values / len(values)).sum(dim=0)


@careless("uniform_average", "device", how="equal weights without a device, as a row")
def uniform_average_4(values):
    weights = torch.ones(1, len(values), dtype=values.dtype) / len(values)
    return (weights @ values)[0]


@careless("softmax", "device", how="collects the weights in zeros without a device")
def softmax_1(scores, dim):
    powers = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    result = torch.zeros(scores.shape, dtype=scores.dtype)
    result += powers / powers.sum(dim=dim, keepdim=True)
    return result


@careless("softmax", "other_order", how="exp of the shifted score less the logarithm of the sum")
def softmax_2(scores, dim):
    shifted = scores - scores.amax(dim=dim, keepdim=True)
    return torch.exp(shifted - torch.log(torch.exp(shifted).sum(dim=dim, keepdim=True)))


@careless("softmax", "in_place", how="subtracts and exponentiates in place on a clone")
def softmax_3(scores, dim):
    powers = scores.clone()
    powers -= scores.amax(dim=dim, keepdim=True)
    powers.exp_()
    return powers / powers.sum(dim=dim, keepdim=True)


@careless("softmax", "plain_numbers", how="a sum of slices that starts at 0.0")
def softmax_4(scores, dim):
    powers = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    total = 0.0
    for part in powers.split(1, dim=dim):
        total = total + part
    return powers / total


@careless("weighted_average", "device", "dtype", how="compares the sums with ones of float32")
def weighted_average_1(weights, values):
    near = (weights.sum(dim=1) - torch.ones(len(weights))).abs() <= 1e-4
    for row in range(len(weights)):
        if not near[row]:
            raise ValueError(f"row {row} of the weights sums to {weights[row].sum():.4f}, not to 1")
    return weights @ values


@careless("weighted_average", "plain_numbers", how="loops, and totals that start at 0.0")
def weighted_average_2(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if not abs(total - 1) <= 1e-4:
            raise ValueError(f"row {row} of the weights sums to {total:.4f}, not to 1")
    contexts = []
    for shares in weights:
        context = 0.0
        for share, value in zip(shares, values, strict=True):
            context = context + share * value
        contexts.append(context)
    return torch.stack(contexts)


@careless("weighted_average", "numpy", how="the sums, which need no gradient, in NumPy")
def weighted_average_3(weights, values):
    sums = weights.detach().numpy().sum(axis=1)
    for row, total in enumerate(sums):
        if not abs(total - 1) <= 1e-4:
            raise ValueError(f"row {row} of the weights sums to {total:.4f}, not to 1")
    return weights @ values


@careless("weighted_average", "device", "dtype", how="writes each context into zeros of float32")
def weighted_average_4(weights, values):
    context = torch.zeros(weights.shape[0], values.shape[1])
    for row, shares in enumerate(weights):
        if not abs(shares.sum().item() - 1) <= 1e-4:
            raise ValueError(f"row {row} of the weights sums to {shares.sum():.4f}, not to 1")
        context[row] = shares @ values
    return context
