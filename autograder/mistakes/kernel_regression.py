"""Wrong and right answers to the exercises of lesson 01."""

import math

import numpy as np
import torch
from torch import nn

from attention.kernel_regression import candidate
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _mix(scores, values):
    return torch.softmax(scores, -1) @ values


def _gaps(x, x_train):
    return x[:, None] - x_train


def _positive(temperature):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature}")
    return temperature


@alternative("soft_lookup")
def key_by_key(query, keys, values, temperature):
    scores = torch.stack([-((query - key) @ (query - key)) for key in keys]) / _positive(
        temperature
    )
    return sum(w * v for w, v in zip(torch.softmax(scores, 0), values, strict=True))


@alternative("soft_lookup")
def expands_the_square(query, keys, values, temperature):
    squared = query @ query - 2 * keys @ query + (keys * keys).sum(-1)
    return torch.einsum("k,kd->d", torch.softmax(-squared / _positive(temperature), 0), values)


@careless("soft_lookup")
def scores_in_float32(query, keys, values, temperature):
    scores = torch.zeros(len(keys))
    for j, key in enumerate(keys):
        scores[j] = -((key - query) ** 2).sum() / _positive(temperature)
    return _mix(scores, values)


@careless("soft_lookup")
def adds_onto_zeros(query, keys, values, temperature):
    context = torch.zeros(values.shape[1])
    weights = torch.softmax(-((keys - query) ** 2).sum(1) / _positive(temperature), 0)
    for weight, value in zip(weights, values, strict=True):
        context += weight * value
    return context


@mistake(
    "nadaraya_watson",
    hint="Far from all examples every exp underflows to 0, and 0 / 0 is NaN. A softmax that "
    "subtracts the maximum does not.",
    earns=("for one query", "for many queries"),
)
def divides_by_the_sum(x, x_train, y_train, bandwidth):
    u = (x.unsqueeze(1) - x_train) / bandwidth
    similar = torch.exp(-0.5 * u * u)
    return (similar * y_train).sum(1) / similar.sum(1)


@alternative("nadaraya_watson")
def query_by_query(x, x_train, y_train, bandwidth):
    scores = [-0.5 * ((x_train - query) / bandwidth) ** 2 for query in x]
    return torch.stack([(torch.softmax(row, 0) * y_train).sum() for row in scores])


@alternative("nadaraya_watson")
def with_logsumexp(x, x_train, y_train, bandwidth):
    scores = -((x_train.unsqueeze(1) - x) / bandwidth).square() / 2  # keys down
    weights = torch.exp(scores - scores.logsumexp(0))
    return torch.einsum("kq,k->q", weights, y_train)


def _fills_zeros(x, x_train, y_train, bandwidth):
    predictions = torch.zeros(len(x))
    for i, query in enumerate(x):
        predictions[i] = _mix(-((query - x_train) ** 2) / (2 * bandwidth**2), y_train)
    return predictions


@careless("nadaraya_watson")
def one_prediction_after_the_other(x, x_train, y_train, bandwidth):
    return _fills_zeros(x, x_train, y_train, bandwidth)


@careless("nadaraya_watson")
def predicts_in_numpy(x, x_train, y_train, bandwidth):
    x, x_train, y_train = (one.detach().numpy() for one in (x, x_train, y_train))
    scores = -((x[:, None] - x_train) ** 2) / (2 * bandwidth**2)
    similarity = np.exp(scores - scores.max(axis=1, keepdims=True))
    return torch.tensor(similarity @ y_train / similarity.sum(axis=1))


def _fallback(weights, similarity):
    return torch.where(similarity.sum(1, keepdim=True) > 0, weights, 1 / similarity.shape[1])


@alternative("attention_weights")
def chooses_with_where(similarity):
    return _fallback(similarity / similarity.sum(-1)[:, None], similarity)


@alternative("attention_weights")
def row_after_row(similarity):
    n = similarity.shape[1]
    rows = [row / row.sum() if row.sum() > 0 else torch.full_like(row, 1 / n) for row in similarity]
    return torch.stack(rows)


@careless("attention_weights")
def writes_the_rows_into_zeros(similarity):
    weights = torch.zeros(similarity.shape)
    for i, row in enumerate(similarity):
        weights[i] = row / row.sum() if row.sum() > 0 else 1 / len(row)
    return weights


@careless("attention_weights")
def divides_plain_numbers(similarity):
    rows = [row if any(row) else [1.0] * len(row) for row in similarity.tolist()]
    return torch.tensor([[s / sum(row) for s in row] for row in rows])


def _loo(x_train, y_train, bandwidth, error=torch.square, fill=-math.inf):
    scores = -(_gaps(x_train, x_train) ** 2) / (2 * bandwidth**2)
    itself = torch.eye(len(x_train), dtype=torch.bool)
    return error(_mix(scores.masked_fill(itself, fill), y_train) - y_train)


def _squared_errors(x_train, y_train, bandwidth):
    for i in range(len(x_train)):
        rest = [j for j in range(len(x_train)) if j != i]
        scores = -((x_train[i] - x_train[rest]) ** 2) / (2 * bandwidth**2)
        yield (_mix(scores, y_train[rest]) - y_train[i]) ** 2


@alternative("leave_one_out_loss")
def leaves_out_in_a_loop(x_train, y_train, bandwidth):
    return sum(_squared_errors(x_train, y_train, bandwidth)) / len(x_train)


@alternative("leave_one_out_loss")
def adds_infinity_on_the_diagonal(x_train, y_train, bandwidth):
    n = len(x_train)
    scores = -torch.abs(_gaps(x_train, x_train) / bandwidth).pow(2) / 2
    scores = scores + torch.diag(scores.new_full((n,), -math.inf))
    return nn.functional.mse_loss(_mix(scores, y_train), y_train)


@careless("leave_one_out_loss")
def masks_on_the_cpu(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth).mean()


@careless("leave_one_out_loss")
def adds_onto_a_float32_total(x_train, y_train, bandwidth):
    total = torch.tensor(0.0)
    for error in _squared_errors(x_train, y_train, bandwidth):
        total += error
    return total / len(x_train)


class _Regression(nn.Module):
    """A right answer; a mistake overrides what it gets wrong."""

    def __init__(self, bandwidth):
        super().__init__()
        self.start = bandwidth
        self.log_bandwidth = nn.Parameter(self.initial(bandwidth))

    def initial(self, bandwidth):
        return torch.tensor(math.log(bandwidth))

    def bandwidth(self):
        return self.log_bandwidth.exp()

    def forward(self, x, x_train, y_train):
        return _mix(-((_gaps(x, x_train) / self.bandwidth()) ** 2) / 2, y_train)


@alternative("LearnedBandwidth")
class InFloat64(_Regression):
    def initial(self, bandwidth):
        return torch.tensor(bandwidth, dtype=torch.float64).log()


@alternative("LearnedBandwidth")
class QueryAfterQuery(_Regression):
    def forward(self, x, x_train, y_train):
        precision = torch.exp(-2 * self.log_bandwidth)
        rows = [torch.softmax(-0.5 * (x_train - q) ** 2 * precision, 0) @ y_train for q in x]
        return torch.stack(rows)


@careless("LearnedBandwidth")
class FillsZeros(_Regression):
    def forward(self, x, x_train, y_train):
        return _fills_zeros(x, x_train, y_train, self.bandwidth())


@careless("LearnedBandwidth")
class ComputesInFloat32(_Regression):
    def forward(self, x, x_train, y_train):
        return super().forward(x.float(), x_train.float(), y_train.float())


def _orders(x, x_train):
    return torch.randperm(len(x)), torch.randperm(len(x_train))


def _agree(name, x, x_train, y_train, queries, examples):
    """Whether these orders change nothing but the order of the predictions."""
    shuffled = candidate(name, x[queries], x_train[examples], y_train[examples])
    before = candidate(name, x, x_train, y_train)[queries]
    return torch.allclose(shuffled, before, atol=1e-5)


@alternative("ignores_order")
def shuffles_one_after_the_other(name, x, x_train, y_train):
    before, (queries, examples) = candidate(name, x, x_train, y_train), _orders(x, x_train)
    same = torch.allclose(before, candidate(name, x, x_train[examples], y_train[examples]))
    return same and torch.allclose(before[queries], candidate(name, x[queries], x_train, y_train))


@alternative("ignores_order")
def exchanges_two_at_a_time(name, x, x_train, y_train):
    for i in range(max(len(x), len(x_train)) - 1):
        queries, examples = torch.arange(len(x)), torch.arange(len(x_train))
        for order in (queries, examples):
            order[i : i + 2] = order[i : i + 2].flip(0)
        if not _agree(name, x, x_train, y_train, queries, examples):
            return False
    return True


@careless("ignores_order")
def says_it_with_a_tensor(name, x, x_train, y_train):
    return torch.tensor(_agree(name, x, x_train, y_train, *_orders(x, x_train)))


@careless("ignores_order")
def seeds_its_orders(name, x, x_train, y_train):
    torch.manual_seed(0)
    return _agree(name, x, x_train, y_train, *_orders(x, x_train))


_ROUNDING = "what an order changes is larger than any of these bounds, and rounding is smaller"
_ANY_ORDER = "any random order will do"
_AFTER = "return torch.allclose(after, candidate(name, x, x_train, y_train)[queries]"
EQUIVALENT = {
    "ignores_order: with one call of `manual_seed` left out: generator = torch.Generator()": (
        _ANY_ORDER
    ),
    "ignores_order: with one whole number off by one: generator = "
    "torch.Generator().manual_seed(1)": _ANY_ORDER,
    "ignores_order: with one whole number off by one: generator = "
    "torch.Generator().manual_seed(-1)": _ANY_ORDER,
    "ignores_order: without `generator` in one call of `randperm`: queries = "
    "torch.randperm(len(x))": _ANY_ORDER,
    "ignores_order: without `generator` in one call of `randperm`: examples = "
    "torch.randperm(len(x_train))": _ANY_ORDER,
    "ignores_order: with `y_train` once where `x_train` belongs: examples = "
    "torch.randperm(len(y_train), generator=generator)": "as many of either",
    f"ignores_order: without `atol` in one call of `allclose`: {_AFTER})": _ROUNDING,
    f"ignores_order: with one constant twice as large: {_AFTER}, atol=2e-05)": _ROUNDING,
    "soft_lookup: with the two sides of one `-` exchanged: scores = -(query - "
    "keys).square().sum(dim=1) / temperature": "the sign goes",
    "soft_lookup: with another axis in one place: weights = softmax(scores, "
    "dim=-1)": "the last axis is the same one",
    "soft_lookup: with one whole number off by one: weights = softmax(scores, "
    "dim=-1)": "the last axis is the same one",
    "nadaraya_watson: with the two sides of one `-` exchanged: scores = "
    "-(x_train[None, :] - x[:, None]) ** 2 / (2 * bandwidth ** 2)": "the sign goes",
    "attention_weights: with `mean` once where `sum` belongs: nothing_in_reach = "
    "similarity.mean(dim=1, keepdim=True) == 0": "a mean is 0 where the sum is",
    "attention_weights: with one constant twice as large: similarity = "
    "similarity.masked_fill(nothing_in_reach, 2.0)": "any number above 0 makes the row uniform",
    "leave_one_out_loss: with the two sides of one `-` exchanged: scores = "
    "-(x_train[None, :] - x_train[:, None]) ** 2 / (2 * bandwidth ** 2)": "the sign goes",
    "leave_one_out_loss: with `y_train` once where `x_train` belongs: itself = "
    "torch.eye(len(y_train), dtype=torch.bool, device=x_train.device)": "as many of either",
    "leave_one_out_loss: with `y_train` once where `x_train` belongs: itself = "
    "torch.eye(len(x_train), dtype=torch.bool, device=y_train.device)": "all are on one device",
    "leave_one_out_loss: with the two sides of one `-` exchanged: return (y_train - "
    "predictions).square().mean()": "the sign goes",
    "LearnedBandwidth: with the two sides of one `-` exchanged: scores = "
    "-((x_train[None, :] - x[:, None]) / bandwidth) ** 2 / 2": "the sign goes",
}


def _nearest(x, x_train, bandwidth):
    """How many bandwidths each query is away from its nearest example."""
    return ((x[:, None] - x_train).abs() / bandwidth).amin(dim=1)


@mistake(
    "break_nadaraya_watson",
    hint="Every query stands on an example, whose similarity is 1, so no sum is 0.",
    where=lambda x, x_train, y_train, bandwidth: (_nearest(x, x_train, bandwidth) == 0).all(),
)
def with_a_narrow_kernel_on_the_examples():
    x_train = torch.tensor([0.0, 1.0, 2.0])
    return x_train, x_train, torch.tensor([10.0, 20.0, 30.0]), 0.001


@mistake(
    "break_nadaraya_watson",
    hint="Every query is nearer than 5 bandwidths to an example: an ordinary sum of similarities.",
    where=lambda x, x_train, y_train, bandwidth: (_nearest(x, x_train, bandwidth) < 5).all(),
)
def with_queries_among_the_examples():
    x_train = torch.tensor([1.36, 3.40, 6.05])
    return torch.tensor([4.25]), x_train, torch.tensor([1.79, -1.77, -2.17]), 0.5


@mistake(
    "break_nadaraya_watson",
    hint="The similarities are tiny, but not 0: their sum can still divide. Go farther away, or "
    "make the kernel narrower.",
    where=lambda x, x_train, y_train, bandwidth: (_nearest(x, x_train, bandwidth) < 38).all(),
)
def with_a_query_not_far_enough():
    x, x_train = torch.tensor([30.0]).double(), torch.tensor([0.0, 1.0]).double()
    return x, x_train, torch.tensor([10.0, 20.0]).double(), 1.0  # in float32 it would be enough


@alternative("break_nadaraya_watson")
def with_a_query_far_away():
    return torch.tensor([100.0, 0.5]), torch.tensor([0.0, 1.0]), torch.tensor([10.0, 20.0]), 1.0


@alternative("break_nadaraya_watson")
def with_a_narrow_kernel_between_examples():
    return torch.tensor([0.5]), torch.tensor([0.0, 1.0]), torch.tensor([10.0, 20.0]), 0.001
