"""Wrong and right answers to the exercises of lesson 00."""

import numpy as np
import torch

from autograder.checking.toolbox.registry import alternative, careless


@alternative("uniform_average")
def adds_in_a_loop(values):
    total = torch.zeros_like(values[0])
    for value in values:
        total = total + value
    return total / len(values)


@alternative("uniform_average")
def equal_weights_times_values(values):
    weights = values.new_ones(len(values)) / len(values)
    return torch.einsum("k,kd->d", weights, values)


@careless("uniform_average")
def starts_from_zeros_on_the_cpu(values):
    total = torch.zeros(values.shape[1])
    for value in values:
        total = total + value
    return total / len(values)


@careless("uniform_average")
def averages_lists(values):
    return torch.tensor([sum(column) / len(values) for column in values.T.tolist()])


@alternative("softmax")
def exp_of_log_softmax(scores, dim):
    return (scores - torch.logsumexp(scores, dim, keepdim=True)).exp()


@alternative("softmax")
def moves_the_axis_last(scores, dim):
    moved = scores.movedim(dim, -1)
    powers = torch.e ** (moved - moved.max(-1).values.unsqueeze(-1).detach())
    return (powers / powers.sum(-1)[..., None]).movedim(-1, dim)


@alternative("softmax")
def slice_by_slice(scores, dim):
    moved = scores.movedim(dim, -1)
    slices = [(row - row.max()).exp() for row in moved.reshape(-1, moved.shape[-1])]
    rows = torch.stack([row / row.sum() for row in slices])
    return rows.reshape(moved.shape).movedim(-1, dim)


@careless("softmax")
def fills_a_new_tensor(scores, dim):
    powers = torch.zeros(scores.shape)
    powers[:] = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


@careless("softmax")
def computes_in_numpy(scores, dim):
    array = scores.detach().numpy()
    powers = np.exp(array - array.max(dim, keepdims=True))
    return torch.from_numpy(powers / powers.sum(dim, keepdims=True))


@alternative("weighted_average")
def row_by_row(weights, values):
    return torch.stack([sum(w * v for w, v in zip(row, values, strict=True)) for row in weights])


@alternative("weighted_average")
def with_einsum(weights, values):
    return torch.einsum("qk,kd->qd", weights, values)


@alternative("weighted_average")
def multiplies_and_adds(weights, values):
    return (weights[:, :, None] * values[None, :, :]).sum(1)


@careless("weighted_average")
def writes_row_after_row(weights, values):
    context = torch.zeros(len(weights), values.shape[1])
    for i, row in enumerate(weights):
        context[i] = row @ values
    return context


@careless("weighted_average")
def multiplies_in_numpy(weights, values):
    return torch.from_numpy(weights.detach().numpy() @ values.detach().numpy())
