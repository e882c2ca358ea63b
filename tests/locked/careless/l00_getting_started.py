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
