"""Wrong answers to lesson 01."""

import math

import torch
from torch import nn

from attention.getting_started import softmax
from attention.kernel_regression import candidate, nadaraya_watson
from attention.provided import demand
from tests.locked import wrong

# --- soft_lookup -----------------------------------------------------------------------------


@wrong("soft_lookup", cause="the distance is not squared")
def soft_lookup_101(query, keys, values, temperature):
    demand.positive(temperature=temperature)
    scores = -torch.linalg.vector_norm(keys - query, dim=1) / temperature
    return softmax(scores, dim=0) @ values


@wrong("soft_lookup", cause="the minus is missing: the farthest key wins")
def soft_lookup_102(query, keys, values, temperature):
    demand.positive(temperature=temperature)
    scores = ((keys - query) ** 2).sum(-1) / temperature
    return softmax(scores, dim=0) @ values


@wrong("soft_lookup", cause="the mean over the features in place of the sum")
def soft_lookup_103(query, keys, values, temperature):
    demand.positive(temperature=temperature)
    gaps = (query[None, :] - keys).pow(2).mean(dim=1)
    return (softmax(-gaps / temperature, 0)[:, None] * values).sum(0)


@wrong("soft_lookup", cause="multiplies by the temperature")
def soft_lookup_104(query, keys, values, temperature):
    demand.positive(temperature=temperature)
    scores = -temperature * torch.sum((keys - query) ** 2, dim=1)
    return torch.einsum("k,kv->v", softmax(scores, 0), values)


@wrong("soft_lookup", cause="divides by twice the temperature squared, as a Gaussian does")
def soft_lookup_105(query, keys, values, temperature):
    demand.positive(temperature=temperature)
    d2 = torch.stack([((key - query) ** 2).sum() for key in keys])
    return softmax(-d2 / (2 * temperature**2), dim=0) @ values


# --- nadaraya_watson -------------------------------------------------------------------------


@wrong("nadaraya_watson", cause="h is not squared")
def nadaraya_watson_101(x, x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    s = -((x[:, None] - x_train) ** 2) / (2 * bandwidth)
    return torch.softmax(s, dim=1) @ y_train


@wrong("nadaraya_watson", cause="the 2 is missing in the denominator")
def nadaraya_watson_102(x, x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    u = (x.view(-1, 1) - x_train.view(1, -1)) / bandwidth
    return softmax(-(u**2), dim=1) @ y_train


@wrong("nadaraya_watson", cause="the softmax runs over the queries")
def nadaraya_watson_103(x, x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    s = -((x[:, None] - x_train[None]) ** 2) / (2 * bandwidth**2)
    return softmax(s, dim=0) @ y_train


@wrong("nadaraya_watson", cause="exp by hand: 0/0 far from all examples", kind="extreme")
def nadaraya_watson_104(x, x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    out = []
    for q in x:
        k = torch.exp(-((q - x_train) ** 2) / (2 * bandwidth**2))
        out.append((k * y_train).sum() / k.sum())
    return torch.stack(out)


@wrong("nadaraya_watson", cause="a small eps in the sum: 0 far from all examples", kind="extreme")
def nadaraya_watson_105(x, x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    k = torch.exp(-0.5 * ((x[:, None] - x_train[None, :]) / bandwidth) ** 2)
    return (k @ y_train) / (k.sum(dim=1) + 1e-8)


@wrong("nadaraya_watson", cause="softmax of the kernel's values: the exponential twice")
def nadaraya_watson_106(x, x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    k = torch.exp(-((x[:, None] - x_train[None, :]) ** 2) / (2 * bandwidth**2))
    return softmax(k, dim=-1) @ y_train


# --- attention_weights -----------------------------------------------------------------------


@wrong("attention_weights", cause="a row of zeros stays a row of zeros")
def attention_weights_101(similarity):
    total = similarity.sum(dim=1, keepdim=True)
    return similarity / torch.where(total == 0, torch.ones_like(total), total)


@wrong("attention_weights", cause="softmax of the similarities")
def attention_weights_102(similarity):
    return softmax(similarity, dim=1)


@wrong("attention_weights", cause="ones are written into the tensor that was given", kind="state")
def attention_weights_103(similarity):
    for row in similarity:
        if row.sum() == 0:
            row.fill_(1.0)
    return similarity / similarity.sum(dim=1, keepdim=True)


@wrong("attention_weights", cause="adds a small number to every entry")
def attention_weights_104(similarity):
    s = similarity + 1e-6
    return s / s.sum(dim=1, keepdim=True)


@wrong("attention_weights", cause="a row of zeros becomes 1 / T_q")
def attention_weights_105(similarity):
    total = similarity.sum(1, keepdim=True)
    return torch.where(total > 0, similarity / total, torch.tensor(1.0 / len(similarity)))


# --- ignores_order ---------------------------------------------------------------------------


@wrong("ignores_order", cause="the values are not shuffled with their keys")
def ignores_order_101(name, x, x_train, y_train):
    keys, queries = torch.randperm(len(x_train)), torch.randperm(len(x))
    old = candidate(name, x, x_train, y_train)
    new = candidate(name, x[queries], x_train[keys], y_train)
    return torch.allclose(old[queries], new, atol=1e-5)


@wrong("ignores_order", cause="shuffles only the examples, never the queries")
def ignores_order_102(name, x, x_train, y_train):
    p = torch.randperm(len(x_train))
    before = candidate(name, x, x_train, y_train)
    return torch.allclose(before, candidate(name, x, x_train[p], y_train[p]), atol=1e-5)


@wrong("ignores_order", cause="the new predictions are brought into the order once more")
def ignores_order_103(name, x, x_train, y_train):
    p, o = torch.randperm(len(x_train)), torch.randperm(len(x))
    first = candidate(name, x, x_train, y_train)
    second = candidate(name, x[o], x_train[p], y_train[p])
    return torch.allclose(first, second[o], atol=1e-5)


# --- leave_one_out_loss ----------------------------------------------------------------------


@wrong("leave_one_out_loss", cause="the diagonal gets the score 0, whose exponential is 1")
def leave_one_out_loss_101(x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    demand.counts(2, T_k=len(x_train))
    s = -((x_train[:, None] - x_train) ** 2) / (2 * bandwidth**2)
    s = s * (1 - torch.eye(len(x_train), device=s.device, dtype=s.dtype))
    return ((softmax(s, 1) @ y_train - y_train) ** 2).mean()


@wrong("leave_one_out_loss", cause="zeros the diagonal after the softmax, does not scale up")
def leave_one_out_loss_102(x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    demand.counts(2, T_k=len(x_train))
    s = -((x_train[:, None] - x_train[None]) ** 2) / (2 * bandwidth**2)
    w = softmax(s, dim=1)
    w = w - torch.diag(torch.diag(w))
    return ((w @ y_train) - y_train).square().mean()


@wrong("leave_one_out_loss", cause="the sum of the squared errors, not their mean")
def leave_one_out_loss_103(x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    demand.counts(2, T_k=len(x_train))
    total = 0.0
    for i in range(len(x_train)):
        rest = torch.arange(len(x_train), device=x_train.device) != i
        s = -((x_train[i] - x_train[rest]) ** 2) / (2 * bandwidth**2)
        total = total + (torch.softmax(s, 0) @ y_train[rest] - y_train[i]) ** 2
    return total


@wrong("leave_one_out_loss", cause="float(bandwidth) cuts the gradient", kind="gradient")
def leave_one_out_loss_104(x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    demand.counts(2, T_k=len(x_train))
    h = float(bandwidth)
    s = -((x_train.unsqueeze(1) - x_train.unsqueeze(0)) ** 2) / (2 * h * h)
    s = s.masked_fill(torch.eye(len(x_train), dtype=torch.bool, device=s.device), -torch.inf)
    return ((torch.softmax(s, dim=1) @ y_train - y_train) ** 2).mean()


@wrong("leave_one_out_loss", cause="-1000 on the diagonal is not enough", kind="extreme")
def leave_one_out_loss_105(x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    demand.counts(2, T_k=len(x_train))
    s = -((x_train[:, None] - x_train[None, :]) ** 2) / (2 * bandwidth**2)
    s = s - 1000 * torch.eye(len(x_train), device=s.device)
    return ((softmax(s, dim=1) @ y_train - y_train) ** 2).mean()


# --- LearnedBandwidth ------------------------------------------------------------------------


@wrong("LearnedBandwidth", cause="the parameter is the bandwidth, not its logarithm")
class LearnedBandwidth_101(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        demand.positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor(float(bandwidth)))

    def forward(self, x, x_train, y_train):
        return nadaraya_watson(x, x_train, y_train, self.log_bandwidth.exp())


@wrong("LearnedBandwidth", cause="the logarithm to base 10")
class LearnedBandwidth_102(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        demand.positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log10(bandwidth)))

    def forward(self, x, x_train, y_train):
        h = 10**self.log_bandwidth
        s = -((x[:, None] - x_train) ** 2) / (2 * h**2)
        return torch.softmax(s, dim=1) @ y_train


@wrong("LearnedBandwidth", cause="math.exp makes a plain number: no gradient", kind="gradient")
class LearnedBandwidth_103(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        demand.positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    def forward(self, x, x_train, y_train):
        return nadaraya_watson(x, x_train, y_train, math.exp(self.log_bandwidth))


@wrong("LearnedBandwidth", cause="a plain tensor: nothing to learn", kind="state")
class LearnedBandwidth_104(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        demand.positive(bandwidth=bandwidth)
        self.log_bandwidth = torch.tensor(math.log(bandwidth), requires_grad=True)

    def forward(self, x, x_train, y_train):
        return nadaraya_watson(x, x_train, y_train, torch.exp(self.log_bandwidth))


@wrong("LearnedBandwidth", cause="uses the logarithm itself as the bandwidth")
class LearnedBandwidth_105(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        demand.positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor(bandwidth, dtype=torch.float32).log())

    def forward(self, x, x_train, y_train):
        scores = -((x[:, None] - x_train[None, :]) ** 2) / (2 * self.log_bandwidth**2)
        return scores.softmax(dim=1) @ y_train


@wrong("LearnedBandwidth", cause="the parameter has one axis: (1,)", kind="shape")
class LearnedBandwidth_106(nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        demand.positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor([math.log(bandwidth)]))

    def forward(self, x, x_train, y_train):
        h = self.log_bandwidth.exp()
        s = -((x[:, None] - x_train) ** 2) / (2 * h**2)
        return torch.softmax(s, dim=1) @ y_train
