"""Answers to lesson 01 that were written without a look at its checks."""

import math

import torch
from torch import nn

from attention.getting_started import softmax, weighted_average
from attention.kernel_regression import candidate
from tests.locked import right, wrong

# --- soft_lookup -----------------------------------------------------------------------------


@wrong("soft_lookup", cause="leaves the axis of the single query: (1, d_v)", kind="shape")
def soft_lookup_5(query, keys, values, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    scores = -(keys - query).square().sum(dim=1) / temperature
    weights = softmax(scores, dim=0)
    return weighted_average(weights.unsqueeze(0), values)


@wrong(
    "soft_lookup", cause="squeezes too much: the axis of values of length 1 is lost", kind="size"
)
def soft_lookup_6(query, keys, values, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    scores = -(keys - query).square().sum(dim=1) / temperature
    weights = softmax(scores, dim=0)
    return weighted_average(weights.unsqueeze(0), values).squeeze()


@right("soft_lookup", how="a loop over the keys")
def soft_lookup_8(query, keys, values, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    scores = []
    for key in keys:
        gap = query - key
        scores.append(-(gap @ gap) / temperature)
    weights = torch.stack(scores).softmax(dim=0)
    context = torch.zeros_like(values[0])
    for weight, value in zip(weights, values, strict=True):
        context = context + weight * value
    return context


@right("soft_lookup", how="weighted_average with an axis that is added and taken off")
def soft_lookup_9(query, keys, values, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    scores = torch.einsum("kd,kd->k", keys - query, query - keys).div(temperature)
    return weighted_average(softmax(scores[None, :], dim=1), values)[0]


# --- nadaraya_watson -------------------------------------------------------------------------


@wrong(
    "nadaraya_watson",
    cause="plain exponentials and 1e-8 in the denominator: far from all examples it predicts 0",
    kind="extreme",
)
def nadaraya_watson_5(x, x_train, y_train, bandwidth):
    kernel = torch.exp(-((x[:, None] - x_train[None, :]) ** 2) / (2 * bandwidth**2))
    weights = kernel / (kernel.sum(dim=1, keepdim=True) + 1e-8)
    return weights @ y_train


@wrong("nadaraya_watson", cause="returns a column: (T_q, 1)", kind="shape")
def nadaraya_watson_6(x, x_train, y_train, bandwidth):
    scores = -((x[:, None] - x_train[None, :]) ** 2) / (2 * bandwidth**2)
    return weighted_average(softmax(scores, dim=1), y_train[:, None])


@right("nadaraya_watson", how="softmax of the log density of a normal distribution")
def nadaraya_watson_7(x, x_train, y_train, bandwidth):
    bells = torch.distributions.Normal(x_train, bandwidth)
    return torch.mv(bells.log_prob(x[:, None]).softmax(1), y_train)


@right("nadaraya_watson", how="a loop over the queries")
def nadaraya_watson_8(x, x_train, y_train, bandwidth):
    predictions = []
    for query in x:
        u = (x_train - query) / bandwidth
        weights = softmax(-0.5 * u * u, dim=-1)
        predictions.append(torch.sum(weights * y_train))
    return torch.stack(predictions)


def _gaussian(u):
    return (-0.5 * u * u).exp()


def _boxcar(u):
    return torch.where((u >= -1) & (u <= 1), torch.ones_like(u), torch.zeros_like(u))


def _epanechnikov(u):
    return torch.relu((1 - u) * (1 + u))


_KERNELS = {
    "gaussian": _gaussian,
    "boxcar": _boxcar,
    "epanechnikov": _epanechnikov,
    "constant": torch.ones_like,
}


# --- attention_weights -----------------------------------------------------------------------


@wrong("attention_weights", cause="divides by the sums of the columns", kind="value")
def attention_weights_7(similarity):
    empty = similarity.sum(dim=0, keepdim=True) == 0
    similarity = similarity.masked_fill(empty, 1.0)
    return similarity / similarity.sum(dim=0, keepdim=True)


@right("attention_weights", how="adds 1 to rows in which all entries are 0")
def attention_weights_8(similarity):
    empty = (similarity == 0).all(dim=1, keepdim=True)
    filled = similarity + empty.to(similarity.dtype)
    return filled / filled.sum(1, keepdim=True)


@right("attention_weights", how="a loop over the rows")
def attention_weights_9(similarity):
    rows = []
    for row in similarity:
        total = row.sum()
        if total == 0:
            rows.append(torch.full_like(row, 1 / len(row)))
        else:
            rows.append(row / total)
    return torch.stack(rows)


# --- leave_one_out_loss ----------------------------------------------------------------------


@wrong(
    "leave_one_out_loss",
    cause="float() makes a plain number of the bandwidth, so no gradient reaches it",
    kind="gradient",
)
def leave_one_out_loss_5(x_train, y_train, bandwidth):
    h = float(bandwidth)
    scores = -((x_train[:, None] - x_train[None, :]) ** 2) / (2 * h**2)
    scores = scores.fill_diagonal_(-math.inf)
    predictions = softmax(scores, dim=1) @ y_train
    return ((predictions - y_train) ** 2).mean()


@wrong(
    "leave_one_out_loss",
    cause="makes the mask of the diagonal on the CPU, wherever x_train is",
    kind="device",
)
def leave_one_out_loss_7(x_train, y_train, bandwidth):
    scores = -((x_train[:, None] - x_train[None, :]) ** 2) / (2 * bandwidth**2)
    itself = torch.eye(len(x_train), dtype=torch.bool)
    weights = softmax(scores.masked_fill(itself, -torch.inf), dim=1)
    return ((weights @ y_train - y_train) ** 2).mean()


@right("leave_one_out_loss", how="really takes each example out, in a loop")
def leave_one_out_loss_8(x_train, y_train, bandwidth):
    errors = []
    for i in range(len(x_train)):
        others_x = torch.cat([x_train[:i], x_train[i + 1 :]])
        others_y = torch.cat([y_train[:i], y_train[i + 1 :]])
        weights = softmax(-((others_x - x_train[i]) ** 2) / (2 * bandwidth**2), dim=0)
        errors.append((weights @ others_y - y_train[i]) ** 2)
    return torch.stack(errors).mean()


@right("leave_one_out_loss", how="adds a diagonal matrix of −∞ to the scores")
def leave_one_out_loss_9(x_train, y_train, bandwidth):
    gap = x_train.unsqueeze(1) - x_train.unsqueeze(0)
    scores = gap.square() / (-2 * bandwidth * bandwidth)
    scores = scores + torch.diag(torch.full_like(x_train, -math.inf))
    return nn.functional.mse_loss(torch.softmax(scores, dim=-1) @ y_train, y_train)


# --- LearnedBandwidth ------------------------------------------------------------------------


@wrong("LearnedBandwidth", cause="starts from the logarithm to base 2", kind="value")
class LearnedBandwidth_4(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log2(bandwidth)))

    def forward(self, x, x_train, y_train):
        h = self.log_bandwidth.exp()
        scores = -((x[:, None] - x_train[None, :]) ** 2) / (2 * h**2)
        return softmax(scores, dim=1) @ y_train


@wrong("LearnedBandwidth", cause="stores the bandwidth itself, not its logarithm", kind="value")
class LearnedBandwidth_7(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.tensor(float(bandwidth)))

    def forward(self, x, x_train, y_train):
        h = self.log_bandwidth
        scores = -((x[:, None] - x_train[None, :]) ** 2) / (2 * h**2)
        return softmax(scores, dim=1) @ y_train


@right("LearnedBandwidth", how="a property for the bandwidth, the logarithm taken by torch")
class LearnedBandwidth_8(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        self.register_parameter("log_bandwidth", nn.Parameter(torch.tensor(float(bandwidth)).log()))

    @property
    def bandwidth(self):
        return torch.exp(self.log_bandwidth)

    def forward(self, x, x_train, y_train):
        u = (x_train.unsqueeze(0) - x.unsqueeze(1)) / self.bandwidth
        return torch.einsum("qk,k->q", (-0.5 * u * u).softmax(dim=1), y_train)


@right("LearnedBandwidth", how="multiplies by exp(-log_bandwidth), loops over the queries")
class LearnedBandwidth_9(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        start = torch.tensor(math.log(bandwidth))
        self.log_bandwidth = nn.Parameter(start, requires_grad=True)

    def _predict(self, query, x_train, y_train):
        u = (query - x_train) * torch.exp(-self.log_bandwidth)
        return softmax(-u.square() / 2, dim=0).dot(y_train)

    def forward(self, x, x_train, y_train):
        return torch.stack([self._predict(query, x_train, y_train) for query in x])


# --- ignores_order ---------------------------------------------------------------------------


@wrong("ignores_order", cause="wants equality to the last bit", kind="value")
def ignores_order_5(name, x, x_train, y_train):
    queries, examples = torch.randperm(len(x)), torch.randperm(len(x_train))
    before = candidate(name, x, x_train, y_train)[queries]
    return torch.equal(before, candidate(name, x[queries], x_train[examples], y_train[examples]))


@wrong(
    "ignores_order",
    cause="asks each query alone instead of shuffling them: accuses way G, which needs all at once",
    kind="value",
)
def ignores_order_8(name, x, x_train, y_train):
    order = torch.randperm(len(x_train))
    before = candidate(name, x, x_train, y_train)
    for i in range(len(x)):
        alone = candidate(name, x[i : i + 1], x_train[order], y_train[order])
        if not torch.allclose(alone[0], before[i], atol=1e-5):
            return False
    return True


@right("ignores_order", how="queries and examples in runs of their own, undone by argsort")
def ignores_order_11(name, x, x_train, y_train):
    before = candidate(name, x, x_train, y_train)
    for _ in range(5):
        order = torch.randperm(len(x_train))
        moved = candidate(name, x, x_train[order], y_train[order])
        if not torch.allclose(moved, before, atol=1e-5):
            return False
        order = torch.randperm(len(x))
        moved = candidate(name, x[order], x_train, y_train)
        if not torch.allclose(moved[order.argsort()], before, atol=1e-5):
            return False
    return True
