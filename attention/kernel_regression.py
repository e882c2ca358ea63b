"""Lesson 01: predicting y at x as a weighted average of examples (Nadaraya and Watson, 1964).

The words are those of attention from the start: the query is `x`, the keys are `x_train`, the
values are `y_train`, and the weights say how much each example counts.
"""

import math

import torch
from torch import nn

from attention.getting_started import softmax
from attention.provided import demand


def soft_lookup(query, keys, values, temperature):
    """Look a query up among the keys, and mix the values of the keys that are near it.

    query        (d_k,)
    keys         (T_k, d_k)  a key's score is minus its squared distance over the temperature
    values       (T_k, d_v)  values[j] is what is stored under keys[j]
    temperature  a positive number; towards 0 only the nearest key counts
    returns      (d_v,)

    Raises ValueError if the temperature is not positive.

    >>> keys, values = torch.tensor([[0.0], [1.0]]), torch.tensor([[10.0], [20.0]])
    >>> soft_lookup(torch.tensor([0.5]), keys, values, temperature=1.0)
    tensor([15.])
    >>> soft_lookup(torch.tensor([0.9]), keys, values, temperature=0.001)
    tensor([20.])
    """
    demand.positive(temperature=temperature)
    # exercise: about 3 lines
    scores = -(keys - query).square().sum(dim=1) / temperature  # (T_k,)
    weights = softmax(scores, dim=0)  # (T_k,)
    return weights @ values  # (d_v,)


def nadaraya_watson(x, x_train, y_train, bandwidth):
    """Predict y at every x: an average of the examples, weighted by a Gaussian kernel.

    x          (T_q,)  queries: where to predict
    x_train    (T_k,)  keys: where the examples are
    y_train    (T_k,)  values: what the examples say
    bandwidth  a positive number h, in the units of x
    returns    (T_q,)  predictions

    Refuses a bandwidth that is not above 0.
    Source: Nadaraya (1964), Watson (1964).

    >>> x_train, y_train = torch.tensor([0.0, 2.0]), torch.tensor([10.0, 30.0])
    >>> nadaraya_watson(torch.tensor([0.0, 1.0, 2.0]), x_train, y_train, bandwidth=0.1)
    tensor([10., 20., 30.])
    """
    demand.positive(bandwidth=bandwidth)
    # exercise: about 3 lines
    scores = -((x[:, None] - x_train[None, :]) ** 2) / (2 * bandwidth**2)  # (T_q, T_k)
    weights = softmax(scores, dim=1)  # (T_q, T_k)
    return weights @ y_train  # (T_q,)


def kernel_values(u, kernel):
    """Turn scaled distances into similarities: 1 at distance 0, and never negative.

    u        any shape; a distance divided by the bandwidth, of either sign
    kernel   "gaussian"      exp(-u² / 2)
             "boxcar"        1 where |u| <= 1, else 0
             "epanechnikov"  1 - u² where |u| <= 1, else 0
             "constant"      1 everywhere
    returns  same shape and dtype as `u`

    Raises ValueError for any other name; the message lists the four.
    Factors in front of a kernel are left out, because they cancel when the weights are made.

    >>> kernel_values(torch.tensor([-2.0, 0.0, 0.5]), "epanechnikov")
    tensor([0.0000, 1.0000, 0.7500])
    """
    if kernel == "gaussian":
        return torch.exp(-(u**2) / 2)
    if kernel == "boxcar":
        return (u.abs() <= 1).to(u.dtype)
    if kernel == "epanechnikov":
        return (1 - u**2).clamp(min=0)
    if kernel == "constant":
        return torch.ones_like(u)
    raise ValueError(f"kernel={kernel!r} is none of gaussian, boxcar, epanechnikov, constant")


def attention_weights(similarity):
    """Scale each query's similarities to weights that sum to 1.

    similarity  (T_q, T_k)  kernel values, none of them negative
    returns     (T_q, T_k)  every row sums to 1

    A query with no key in reach has a row of zeros, which no factor can scale to 1. Such a row
    becomes uniform, 1 / T_k each: the prediction falls back to the mean of all examples.

    >>> attention_weights(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    tensor([[0.2500, 0.7500],
            [0.5000, 0.5000]])
    """
    # exercise: about 3 lines
    nothing_in_reach = similarity.sum(dim=1, keepdim=True) == 0  # (T_q, 1)
    # Where nothing is similar, treat everything as equally similar (and never divide by 0).
    similarity = similarity.masked_fill(nothing_in_reach, 1.0)
    return similarity / similarity.sum(dim=1, keepdim=True)  # (T_q, T_k)


def kernel_regression(x, x_train, y_train, kernel, bandwidth):
    """Predict y at every x with any of the four kernels, from the pieces of this lesson.

    x                 (T_q,)          queries
    x_train, y_train  (T_k,), (T_k,)  keys and values
    kernel            a name that `kernel_values` knows
    bandwidth         a positive number, in the units of x
    returns           predictions (T_q,) and weights (T_q, T_k)

    Raises ValueError for a bandwidth that is not above 0.
    """
    demand.positive(bandwidth=bandwidth)
    u = (x[:, None] - x_train[None, :]) / bandwidth  # (T_q, T_k)
    weights = attention_weights(kernel_values(u, kernel))  # (T_q, T_k)
    context = weights @ y_train  # (T_q,)
    return context, weights


def candidate(name, x, x_train, y_train):
    """Predict y at every x in one of seven ways, "A" to "G".

    x                 (T_q,)          queries
    x_train, y_train  (T_k,), (T_k,)  keys and values
    returns           (T_q,)          predictions
    """
    place = torch.arange(len(x_train), device=x.device)  # where an example stands in the list
    if name == "B":
        y_train = (y_train + y_train.roll(1)) / 2
    if name == "E":
        order = x_train.argsort()
        x_train, y_train = x_train[order], y_train[order]
    scores = -((x[:, None] - x_train[None, :]) ** 2) / 2  # (T_q, T_k)
    if name == "C":
        scores = scores - (place - (len(place) - 1) / 2).abs() / 4
    if name == "D":
        scores = scores + place / 4
    predictions = softmax(scores, dim=1) @ y_train  # (T_q,)
    if name == "F":
        predictions = (predictions + predictions.roll(1)) / 2
    if name == "G":
        predictions = predictions / predictions.abs().amax()
    return predictions


def ignores_order(name, x, x_train, y_train):
    """Test whether `candidate(name, ...)` ignores the order of examples and queries.

    name              "A" to "G"
    x                 (T_q,)          queries to try it on
    x_train, y_train  (T_k,), (T_k,)  examples to try it on: each key has its value
    returns           True if shuffling the examples changes no prediction, and shuffling the
                      queries only shuffles the predictions

    >>> x, x_train = torch.arange(11.0), torch.arange(13.0)
    >>> [ignores_order(name, x, x_train, x_train.sin()) for name in "AD"]
    [True, False]
    """
    # exercise: about 5 lines
    generator = torch.Generator().manual_seed(0)  # leaves the random numbers of others alone
    queries = torch.randperm(len(x), generator=generator)
    examples = torch.randperm(len(x_train), generator=generator)
    after = candidate(name, x[queries], x_train[examples], y_train[examples])
    return torch.allclose(after, candidate(name, x, x_train, y_train)[queries], atol=1e-5)


def leave_one_out_loss(x_train, y_train, bandwidth):
    """Measure how well each example is predicted by all the others.

    x_train    (T_k,)
    y_train    (T_k,)
    bandwidth  a positive number, or a scalar tensor through which a gradient flows
    returns    ()  the mean over i of (prediction at x_train[i] without example i - y_train[i])²

    The predictions are those of the Gaussian kernel. However small the bandwidth, an example
    never sees itself: its prediction then is the value of its nearest neighbour.
    Refuses a bandwidth that is not above 0, and fewer than two examples.

    >>> x_train, y_train = torch.tensor([0.0, 1.0, 9.0]), torch.tensor([0.0, 2.0, 5.0])
    >>> leave_one_out_loss(x_train, y_train, bandwidth=0.1)  # errors 2, -2, -3
    tensor(5.6667)
    """
    demand.positive(bandwidth=bandwidth)
    demand.counts(2, T_k=len(x_train))
    # exercise: about 5 lines
    scores = -((x_train[:, None] - x_train[None, :]) ** 2) / (2 * bandwidth**2)  # (T_k, T_k)
    itself = torch.eye(len(x_train), dtype=torch.bool, device=x_train.device)
    # Before the softmax: afterwards the other weights may have underflowed to 0.
    weights = softmax(scores.masked_fill(itself, -math.inf), dim=1)  # (T_k, T_k)
    predictions = weights @ y_train  # (T_k,)
    return (predictions - y_train).square().mean()  # ()


class LearnedBandwidth(nn.Module):
    """Gaussian kernel regression whose bandwidth is a parameter.

    bandwidth  the positive number to start from

    The parameter `log_bandwidth` is a scalar, the logarithm of the bandwidth. It may take any
    value, and its exponential is positive whatever the optimiser does.
    Refuses a bandwidth that is not above 0.

    >>> model = LearnedBandwidth(bandwidth=1.0)
    >>> model.log_bandwidth
    Parameter containing:
    tensor(0., requires_grad=True)
    """

    def __init__(self, bandwidth):
        super().__init__()
        demand.positive(bandwidth=bandwidth)
        # exercise: about 1 line
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))  # ()

    def forward(self, x, x_train, y_train):
        """Predict y at every x: (T_q,), (T_k,), (T_k,) -> (T_q,), in the dtype of x."""
        # exercise: about 4 lines
        bandwidth = self.log_bandwidth.exp()  # (), always positive
        scores = -(((x[:, None] - x_train[None, :]) / bandwidth) ** 2) / 2  # (T_q, T_k)
        weights = softmax(scores, dim=1)  # (T_q, T_k)
        return weights @ y_train  # (T_q,)


def learn_bandwidth(start, x_train, y_train):
    """Train a `LearnedBandwidth` for 121 steps on the leave-one-out loss.

    start             the bandwidth to begin with
    x_train, y_train  (T_k,), (T_k,)
    returns           the trained model, and a pair (bandwidth, loss) for each step, from before it
                      is taken
    """
    model, path = LearnedBandwidth(start), []
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(121):
        loss = leave_one_out_loss(x_train, y_train, model.log_bandwidth.exp())
        path.append((model.log_bandwidth.exp().item(), loss.item()))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model, path


# Inputs on which a wrong answer shows


def break_nadaraya_watson():
    """Return an input (x, x_train, y_train, bandwidth) on which `divides_by_the_sum` is wrong."""
    # exercise: about 2 lines
    x_train, y_train = torch.tensor([0.0, 1.0]), torch.tensor([10.0, 20.0])
    return torch.tensor([50.0]), x_train, y_train, 1.0  # 49 bandwidths from the nearest example
