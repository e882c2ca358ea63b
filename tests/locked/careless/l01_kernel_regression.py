"""Careless right answers to lesson 01."""

import math

import numpy as np
import torch
from torch import nn

from attention.getting_started import softmax, weighted_average
from attention.kernel_regression import candidate
from tests.locked.careless import careless


@careless("soft_lookup", "device", "dtype", how="scores one by one into zeros of float32")
def soft_lookup_1(query, keys, values, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    scores = torch.zeros(len(keys))
    for j in range(len(keys)):
        scores[j] = -((keys[j] - query) ** 2).sum() / temperature
    return softmax(scores, dim=0) @ values


@careless("soft_lookup", "plain_numbers", how="a context that starts at 0.0")
def soft_lookup_2(query, keys, values, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    weights = torch.softmax(-((keys - query) ** 2).sum(dim=1) / temperature, dim=0)
    context = 0.0
    for weight, value in zip(weights, values, strict=True):
        context = context + weight * value
    return context


@careless("soft_lookup", "other_order", "extra_axis", how="scales the differences, adds an axis")
def soft_lookup_3(query, keys, values, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    scaled = (keys - query[None, :]) / temperature**0.5
    weights = softmax(-scaled.square().sum(dim=1)[None, :], dim=1)  # (1, T_k)
    return weighted_average(weights, values).squeeze(0)


@careless("nadaraya_watson", "device", "dtype", how="predictions one by one into zeros of float32")
def nadaraya_watson_1(x, x_train, y_train, bandwidth):
    predictions = torch.zeros(len(x))
    for i in range(len(x)):
        scores = -((x[i] - x_train) ** 2) / (2 * bandwidth**2)
        predictions[i] = (torch.softmax(scores, dim=0) * y_train).sum()
    return predictions


@careless("nadaraya_watson", "other_order", how="divides by the bandwidth before squaring")
def nadaraya_watson_2(x, x_train, y_train, bandwidth):
    u = (x[:, None] - x_train[None, :]) / bandwidth
    return softmax(-0.5 * u * u, dim=1) @ y_train


@careless("nadaraya_watson", "plain_numbers", how="a total over the examples that starts at 0.0")
def nadaraya_watson_3(x, x_train, y_train, bandwidth):
    weights = softmax(-((x[:, None] - x_train) ** 2) / (2 * bandwidth**2), dim=1)
    total = 0.0
    for j in range(len(x_train)):
        total = total + weights[:, j] * y_train[j]
    return total


@careless("break_nadaraya_watson", "plain_numbers", how="the bandwidth is an int")
def break_nadaraya_watson_1():
    return torch.tensor([0.0]), torch.tensor([100.0]), torch.tensor([5.0]), 1


@careless("break_nadaraya_watson", "seed", how="random examples far away, global seed")
def break_nadaraya_watson_2():
    torch.manual_seed(0)
    return torch.randn(3) + 1000, torch.randn(4), torch.randn(4), 1.0


@careless("break_nadaraya_watson", "other_type", how="a bandwidth from NumPy")
def break_nadaraya_watson_3():
    x, x_train = torch.tensor([50.0]), torch.tensor([0.0, 1.0])
    return x, x_train, torch.tensor([1.0, 2.0]), np.float64(0.5)


@careless("attention_weights", "device", "dtype", how="a uniform row of float32 for empty rows")
def attention_weights_1(similarity):
    rows = []
    for row in similarity:
        if row.sum() == 0:
            rows.append(torch.ones(len(row)) / len(row))
        else:
            rows.append(row / row.sum())
    return torch.stack(rows)


@careless("attention_weights", "in_place", how="fills the empty rows of a clone")
def attention_weights_2(similarity):
    filled = similarity.clone()
    filled[filled.sum(dim=1) == 0] = 1.0
    return filled / filled.sum(dim=1, keepdim=True)


@careless("attention_weights", "plain_numbers", how="Python's sum over each row")
def attention_weights_3(similarity):
    rows = []
    for row in similarity:
        total = sum(row)
        if total == 0:
            row, total = torch.ones_like(row), len(row)
        rows.append(row / total)
    return torch.stack(rows)


@careless("leave_one_out_loss", "device", "dtype", how="losses one by one into zeros of float32")
def leave_one_out_loss_1(x_train, y_train, bandwidth):
    n = len(x_train)
    losses = torch.zeros(n)
    for i in range(n):
        others = torch.arange(n) != i
        scores = -((x_train[i] - x_train[others]) ** 2) / (2 * bandwidth**2)
        losses[i] = (torch.softmax(scores, dim=0) @ y_train[others] - y_train[i]) ** 2
    return losses.mean()


@careless("leave_one_out_loss", "plain_numbers", how="a total that starts at 0.0, lists of indices")
def leave_one_out_loss_2(x_train, y_train, bandwidth):
    total = 0.0
    for i in range(len(x_train)):
        others = [j for j in range(len(x_train)) if j != i]
        u = (x_train[others] - x_train[i]) / bandwidth
        prediction = (softmax(-u * u / 2, dim=0) * y_train[others]).sum()
        total = total + (prediction - y_train[i]) ** 2
    return total / len(x_train)


@careless("leave_one_out_loss", "in_place", how="writes -inf into the diagonal of its scores")
def leave_one_out_loss_3(x_train, y_train, bandwidth):
    scores = -((x_train[:, None] - x_train) ** 2) / (2 * bandwidth**2)
    places = range(len(x_train))
    scores[places, places] = -math.inf
    return ((torch.softmax(scores, dim=1) @ y_train - y_train) ** 2).mean()


@careless("LearnedBandwidth", "device", how="predictions into zeros without a device")
class LearnedBandwidth_1(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    def forward(self, x, x_train, y_train):
        h = self.log_bandwidth.exp()
        predictions = torch.zeros(len(x), dtype=x.dtype)
        for i, query in enumerate(x):
            weights = torch.softmax(-((query - x_train) ** 2) / (2 * h**2), dim=0)
            predictions[i] = weights @ y_train
        return predictions


@careless("LearnedBandwidth", "module_state", how="keeps the last weights in an attribute")
class LearnedBandwidth_2(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.log(torch.tensor(float(bandwidth))))
        self.weights = None

    def forward(self, x, x_train, y_train):
        u = (x[:, None] - x_train) / torch.exp(self.log_bandwidth)
        self.weights = softmax(-0.5 * u**2, dim=1)
        return self.weights @ y_train


@careless("LearnedBandwidth", "other_order", "plain_numbers", how="multiplies by exp of minus two")
class LearnedBandwidth_3(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    def forward(self, x, x_train, y_train):
        squares = (x[:, None] - x_train) ** 2
        weights = softmax(-0.5 * squares * torch.exp(-2 * self.log_bandwidth), dim=1)
        total = 0.0
        for j, y in enumerate(y_train):
            total = total + weights[:, j] * y
        return total


@careless("ignores_order", "seed", how="seeds the global generator, one query after the other")
def ignores_order_1(name, x, x_train, y_train):
    torch.manual_seed(0)
    queries, examples = torch.randperm(len(x)), torch.randperm(len(x_train))
    old = candidate(name, x, x_train, y_train)
    new = candidate(name, x[queries], x_train[examples], y_train[examples])
    for place, query in enumerate(queries.tolist()):
        if abs(new[place].item() - old[query].item()) > 1e-5:
            return False
    return True


@careless("ignores_order", "numpy", "other_type", how="NumPy's permutations and np.allclose")
def ignores_order_2(name, x, x_train, y_train):
    queries, examples = np.random.permutation(len(x)), np.random.permutation(len(x_train))
    old = candidate(name, x, x_train, y_train).numpy()
    new = candidate(name, x[queries], x_train[examples], y_train[examples]).numpy()
    return np.all(np.abs(old[queries] - new) < 1e-5)
