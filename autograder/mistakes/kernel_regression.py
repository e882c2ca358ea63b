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


@mistake(
    "soft_lookup",
    hint="The farthest key gets the largest weight. A score should fall with the distance: "
    "which sign is missing?",
)
def prefers_the_farthest(query, keys, values, temperature):
    return _mix((keys - query).square().sum(1) / _positive(temperature), values)


@mistake(
    "soft_lookup",
    hint="The distance is not squared: norm and cdist take a square root that is not asked for.",
)
def does_not_square(query, keys, values, temperature):
    return _mix(-(keys - query).norm(dim=1) / _positive(temperature), values)


@mistake(
    "soft_lookup",
    hint="The score is multiplied by the temperature. A high temperature should make the "
    "weights more alike, not less.",
)
def multiplies_by_temperature(query, keys, values, temperature):
    return _mix(-(keys - query).square().sum(1) * _positive(temperature), values)


@mistake("soft_lookup", hint="Scores were used as weights: the softmax is missing.")
def skips_the_softmax(query, keys, values, temperature):
    return -(keys - query).square().sum(1) / _positive(temperature) @ values


@mistake("soft_lookup", hint="The temperature has no effect. What does it scale?")
def ignores_temperature(query, keys, values, temperature):
    return _mix(-(keys - query).square().sum(1) / _positive(1.0), values)


@mistake(
    "soft_lookup",
    hint="The squared differences are averaged over the features instead of added up.",
)
def averages_the_squares(query, keys, values, temperature):
    return _mix(-(keys - query).square().mean(1) / _positive(temperature), values)


@mistake(
    "soft_lookup",
    hint="This is a hard lookup: only the nearest key answers. Let every key answer, the nearer "
    "the louder.",
)
def looks_up_hard(query, keys, values, temperature):
    return values[(keys - query).square().sum(1).argmin()] / _positive(1.0)


@mistake(
    "soft_lookup",
    hint="At a low temperature every exp underflows to 0, and 0 / 0 is NaN. The softmax of "
    "lesson 00 was written for such scores.",
)
def underflows(query, keys, values, temperature):
    similarity = torch.exp(-(keys - query).square().sum(1) / _positive(temperature))
    return similarity @ values / similarity.sum()


@mistake(
    "soft_lookup",
    hint="The squared differences are added up over the keys: one sum for each feature. A key's "
    "score is the sum over its own features.",
)
def adds_up_over_the_keys(query, keys, values, temperature):
    return _mix(-(keys - query).square().sum(0) / _positive(temperature), values)


@mistake(
    "soft_lookup",
    hint="The softmax runs over an axis of length 1, where every weight is 1: this is the sum of "
    "all values. Which axis holds the keys?",
)
def shares_among_one(query, keys, values, temperature):
    scores = -(keys - query).square().sum(1, keepdim=True) / _positive(temperature)
    return (torch.softmax(scores, 1) * values).sum(0)


@mistake(
    "soft_lookup",
    hint="The weighted values are averaged over the keys, which divides once more: the weights sum "
    "to 1 already. Add up.",
)
def averages_the_weighted_values(query, keys, values, temperature):
    weights = torch.softmax(-(keys - query).square().sum(1) / _positive(temperature), 0)
    return (weights[:, None] * values).mean(0)


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


@mistake("distances", hint="Some distances are negative: the differences keep their sign.")
def keeps_the_sign(x, x_train):
    return _gaps(x, x_train)


@mistake("distances", hint="These are squared distances. Here the plain distance is asked for.")
def squares(x, x_train):
    return _gaps(x, x_train) ** 2


@mistake(
    "distances",
    hint="Keys run down and queries across. Which of the two gets the new axis at the end?",
)
def keys_run_down(x, x_train):
    return _gaps(x_train, x).abs()


IN_STEP = (
    "Query 0 is compared with key 0 only, query 1 with key 1 only, and so on. For all pairs, give "
    "each of the two an axis of its own."
)


@mistake("distances", hint=IN_STEP)
def compares_in_step(x, x_train):
    return (x - x_train).abs()


@mistake("distances", hint=IN_STEP)
def compares_in_step_from_the_keys(x, x_train):
    return (x_train - x).abs()


@mistake(
    "distances",
    hint="Every query gets one number, the sum of its distances. One distance for each key is "
    "asked for.",
)
def adds_up_over_the_keys_of_a_query(x, x_train):
    return _gaps(x, x_train).abs().sum(1)


@alternative("distances")
def with_cdist(x, x_train):
    return torch.cdist(x.unsqueeze(-1), x_train.unsqueeze(-1), p=1)


@alternative("distances")
def pair_by_pair(x, x_train):
    return torch.stack([torch.stack([abs(a - b) for b in x_train]) for a in x])


@careless("distances")
def fills_a_table(x, x_train):
    table = torch.zeros(len(x), len(x_train))
    for i, query in enumerate(x):
        table[i] = (query - x_train).abs()
    return table


@careless("distances")
def subtracts_plain_numbers(x, x_train):
    return torch.tensor([[abs(a - b) for b in x_train.tolist()] for a in x.tolist()])


@mistake(
    "nadaraya_watson",
    hint="The bandwidth is not squared. The exponent has no unit only if h has that of x.",
    earns=("far from all examples",),
)
def does_not_square_the_bandwidth(x, x_train, y_train, bandwidth):
    return _mix(-(_gaps(x, x_train) ** 2) / (2 * bandwidth), y_train)


@mistake(
    "nadaraya_watson", hint="The 2 under the fraction is missing.", earns=("far from all examples",)
)
def leaves_out_the_two(x, x_train, y_train, bandwidth):
    return _mix(-(_gaps(x, x_train) ** 2) / bandwidth**2, y_train)


@mistake(
    "nadaraya_watson",
    hint="a / 2 * h**2 is (a / 2) · h²: Python divides first, and h² ends up on top.",
)
def multiplies_by_the_bandwidth(x, x_train, y_train, bandwidth):
    return _mix(-(_gaps(x, x_train) ** 2) / 2 * bandwidth**2, y_train)


@mistake(
    "nadaraya_watson",
    hint="The distance is not squared: this is the kernel exp(-|u|), with a peak at 0.",
)
def uses_the_plain_distance(x, x_train, y_train, bandwidth):
    return _mix(-_gaps(x, x_train).abs() / (2 * bandwidth**2), y_train)


@mistake(
    "nadaraya_watson",
    hint="The farthest example counts most. Which sign does the score need?",
)
def follows_the_farthest(x, x_train, y_train, bandwidth):
    return _mix(_gaps(x, x_train) ** 2 / (2 * bandwidth**2), y_train)


@mistake(
    "nadaraya_watson",
    hint="The kernel values are added up as they are. They are not weights yet: those of "
    "a query must sum to 1.",
)
def does_not_normalise(x, x_train, y_train, bandwidth):
    return torch.exp(-(_gaps(x, x_train) ** 2) / (2 * bandwidth**2)) @ y_train


@mistake(
    "nadaraya_watson",
    hint="The softmax runs over the queries. Each query shares out its attention among the keys: "
    "which axis is that?",
)
def normalises_over_queries(x, x_train, y_train, bandwidth):
    return torch.softmax(-(_gaps(x, x_train) ** 2) / (2 * bandwidth**2), 0) @ y_train


@mistake(
    "nadaraya_watson",
    hint=IN_STEP,
    earns=("for one query", "far from all examples"),
)
def pairs_in_step(x, x_train, y_train, bandwidth):
    return _mix(-((x - x_train) ** 2) / (2 * bandwidth**2), y_train)


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


@mistake(
    "nadaraya_watson",
    hint="The weighted values are averaged over the keys, which divides once more: the weights sum "
    "to 1 already. Add up.",
)
def averages_the_weighted_values_of_a_query(x, x_train, y_train, bandwidth):
    weights = torch.softmax(-(_gaps(x, x_train) ** 2) / (2 * bandwidth**2), 1)
    return (weights * y_train).mean(1)


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


def _kernel(u, kernel, **changed):
    """The right kernels, except those given in ``changed``."""
    known = {
        "gaussian": lambda u: (-0.5 * u * u).exp(),
        "boxcar": lambda u: torch.where(u.abs() <= 1, 1.0, 0.0).to(u.dtype),
        "epanechnikov": lambda u: torch.relu(1 - u * u),
        "constant": lambda u: u * 0 + 1,
        **changed,
    }
    if kernel not in known:
        raise ValueError(f"unknown {kernel}, known: {', '.join(known)}")
    return known[kernel](u)


@mistake(
    "kernel_values",
    hint="The Gaussian lacks its 1/2: this is exp(-u²).",
    earns=("other names",),
)
def gaussian_without_half(u, kernel):
    return _kernel(u, kernel, gaussian=lambda u: torch.exp(-(u**2)))


@mistake(
    "kernel_values",
    hint="The Gaussian squares u; this is exp(-|u| / 2).",
    earns=("other names",),
)
def gaussian_without_square(u, kernel):
    return _kernel(u, kernel, gaussian=lambda u: torch.exp(-u.abs() / 2))


@mistake(
    "kernel_values",
    hint="The factor 1 / √(2π) is there. It cancels later; the kernel here is 1 at distance 0.",
    earns=("other names",),
)
def gaussian_as_a_density(u, kernel):
    density = math.sqrt(2 * math.pi)
    return _kernel(u, kernel, gaussian=lambda u: torch.exp(-(u**2) / 2) / density)


@mistake(
    "kernel_values",
    hint="The boxcar reaches endlessly to one side: u may be negative. What is compared with 1?",
    earns=("other names",),
)
def boxcar_open_to_one_side(u, kernel):
    return _kernel(u, kernel, boxcar=lambda u: (u <= 1).to(u.dtype))


@mistake(
    "kernel_values",
    hint="At |u| = 1 exactly, the boxcar is still 1.",
    earns=("other names",),
)
def boxcar_without_its_ends(u, kernel):
    return _kernel(u, kernel, boxcar=lambda u: (u.abs() < 1).to(u.dtype))


@mistake(
    "kernel_values",
    hint="A comparison gives True and False. The similarities should be numbers of u's dtype.",
    earns=("other names",),
)
def boxcar_as_booleans(u, kernel):
    return _kernel(u, kernel, boxcar=lambda u: u.abs() <= 1)


@mistake(
    "kernel_values",
    hint="Beyond |u| = 1 the parabola 1 - u² is negative. The kernel stops at 0 there.",
    earns=("other names",),
)
def epanechnikov_below_zero(u, kernel):
    return _kernel(u, kernel, epanechnikov=lambda u: 1 - u**2)


@mistake(
    "kernel_values",
    hint="The factor 3/4 of the textbooks is there. It cancels later: here the kernel is 1 at 0.",
    earns=("other names",),
)
def epanechnikov_as_a_density(u, kernel):
    return _kernel(u, kernel, epanechnikov=lambda u: 0.75 * (1 - u**2).clamp(min=0))


@mistake(
    "kernel_values",
    hint="This is a triangle, 1 - |u|. Epanechnikov's kernel is a parabola.",
    earns=("other names",),
)
def epanechnikov_as_a_triangle(u, kernel):
    return _kernel(u, kernel, epanechnikov=lambda u: (1 - u.abs()).clamp(min=0))


@mistake(
    "kernel_values",
    hint="The constant kernel gives one number. It should give a 1 for every entry of u.",
    earns=("other names",),
)
def constant_as_a_number(u, kernel):
    return _kernel(u, kernel, constant=lambda u: 1.0)


@mistake(
    "kernel_values",
    hint="A final else takes any name for the last kernel, so a typing error goes unnoticed. "
    "Ask for all four by name and raise ValueError at the end.",
    earns=("the four kernels",),
)
def takes_any_name(u, kernel):
    return _kernel(u, kernel if kernel in ("gaussian", "boxcar", "epanechnikov") else "constant")


@mistake(
    "kernel_values",
    hint="The Epanechnikov kernel is (1 - u)² here. It is 1 - u²: the square belongs to u alone.",
    earns=("other names",),
)
def epanechnikov_as_a_square(u, kernel):
    return _kernel(u, kernel, epanechnikov=lambda u: (1 - u) ** 2 * (u.abs() <= 1))


@mistake(
    "kernel_values",
    hint="The boxcar is right, but made of whole numbers. The similarities should have u's dtype.",
    earns=("other names",),
)
def boxcar_of_whole_numbers(u, kernel):
    return _kernel(u, kernel, boxcar=lambda u: (u.abs() <= 1).int())


@alternative("kernel_values")
def from_a_table(u, kernel):
    return _kernel(u, kernel)


@alternative("kernel_values")
def with_match(u, kernel):
    near = (u >= -1) & (u <= 1)
    match kernel:
        case "gaussian":
            return math.e ** (-u.square() / 2)
        case "boxcar":
            return near * torch.ones_like(u)
        case "epanechnikov":
            return torch.where(near, (1 - u) * (1 + u), torch.zeros_like(u))
        case "constant":
            return torch.full_like(u, 1)
    raise ValueError("kernel must be gaussian, boxcar, epanechnikov or constant")


@careless("kernel_values")
def boxcar_in_float32(u, kernel):
    return _kernel(u, kernel, boxcar=lambda u: (u.abs() <= 1).float())


@careless("kernel_values")
def ones_on_the_cpu(u, kernel):
    return _kernel(u, kernel, constant=lambda u: torch.ones(u.shape, dtype=u.dtype))


@careless("kernel_values")
def gaussian_in_numpy(u, kernel):
    return _kernel(
        u, kernel, gaussian=lambda u: torch.tensor(np.exp(-(u.detach().numpy() ** 2) / 2))
    )


def _fallback(weights, similarity):
    return torch.where(similarity.sum(1, keepdim=True) > 0, weights, 1 / similarity.shape[1])


@mistake(
    "attention_weights",
    hint="A row of zeros was divided by its sum: 0 / 0 is NaN. Treat such a row apart.",
)
def divides_by_zero(similarity):
    return similarity / similarity.sum(dim=1, keepdim=True)


@mistake(
    "attention_weights",
    hint="A query with no key in reach gets weights of 0, which sum to 0. Make that row uniform.",
)
def leaves_the_row_empty(similarity):
    return divides_by_zero(similarity).nan_to_num(0.0)


@mistake(
    "attention_weights",
    hint="The columns sum to 1. Each query shares out 1 among the keys, along its row.",
)
def normalises_the_columns(similarity):
    return similarity / similarity.sum(dim=0, keepdim=True)


@mistake(
    "attention_weights",
    hint="All entries together sum to 1. Every row has a sum of its own to be divided by.",
)
def normalises_the_whole_matrix(similarity):
    return similarity / similarity.sum()


@mistake(
    "attention_weights",
    hint="Without keepdim the sum of row i is lined up with column i when dividing.",
)
def loses_the_axis(similarity):
    return similarity / similarity.sum(dim=1)


@mistake(
    "attention_weights",
    hint="The kernel has already turned distances into similarities. A softmax takes the exp of "
    "them once more; here it is enough to divide.",
)
def takes_a_softmax(similarity):
    return torch.softmax(similarity, 1)


DROWNED = (
    "Faint similarities lose their ratios, as they do when a small number is added everywhere, or "
    "when a sum below some bound counts as 0. Only a row whose sum is exactly 0 needs help."
)


@mistake("attention_weights", hint=DROWNED)
def adds_a_small_number(similarity):
    return divides_by_zero(similarity + 1e-12)


@mistake("attention_weights", hint=DROWNED)
def takes_faint_for_none(similarity):
    none = similarity.sum(dim=1, keepdim=True) < 1e-6
    return divides_by_zero(torch.where(none, torch.ones_like(similarity), similarity))


@mistake(
    "attention_weights",
    hint="The rows are overwritten in the caller's tensor. Make a new one: torch.where or "
    "masked_fill.",
)
def fills_in_place(similarity):
    similarity[similarity.sum(dim=1) == 0] = 1.0
    return divides_by_zero(similarity)


@mistake(
    "attention_weights",
    hint="Each row is divided by its mean, so it sums to the number of keys. Divide by the sum.",
)
def divides_by_the_mean(similarity):
    return _fallback(similarity / similarity.mean(1, keepdim=True), similarity)


@mistake(
    "attention_weights",
    hint="The empty row holds 1 / T_q. It is shared among the keys: 1 / T_k.",
)
def shares_among_the_queries(similarity):
    empty = similarity.sum(1, keepdim=True) == 0
    return torch.where(empty, 1 / similarity.shape[0], divides_by_zero(similarity))


@mistake(
    "attention_weights",
    hint="The empty row holds ones, which do not sum to 1. Put the ones in before you divide.",
)
def fills_after_dividing(similarity):
    empty = similarity.sum(1, keepdim=True) == 0
    return torch.where(empty, 1.0, divides_by_zero(similarity))


@mistake(
    "attention_weights",
    hint="A bound below the sum only avoids 0 / 0: the empty row stays empty, and faint rows no "
    "longer sum to 1.",
)
def bounds_the_sum_from_below(similarity):
    return similarity / similarity.sum(1, keepdim=True).clamp(min=1e-8)


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


@mistake(
    "leave_one_out_loss",
    hint="Each example helps to predict itself, so the loss tends to 0 with the bandwidth. A score "
    "of 0 is no absence: exp(0) is the largest weight there is.",
)
def includes_itself(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth, fill=0.0).mean()


@mistake(
    "leave_one_out_loss",
    hint="The example's own weight is set to 0 after the softmax, so the other weights no longer "
    "sum to 1. Remove it before.",
)
def zeroes_its_own_weight(x_train, y_train, bandwidth):
    weights = torch.softmax(-(_gaps(x_train, x_train) ** 2) / (2 * bandwidth**2), 1)
    return ((weights * (1 - torch.eye(len(x_train)))) @ y_train - y_train).square().mean()


@mistake(
    "leave_one_out_loss",
    hint="The example is removed after the softmax. With a small bandwidth it had all the weight, "
    "and nothing is left to share out: 0 / 0. Remove it before, with a score of -inf.",
    earns=("with ordinary bandwidths", "its gradient"),
)
def renormalises_afterwards(x_train, y_train, bandwidth):
    weights = torch.softmax(-(_gaps(x_train, x_train) ** 2) / (2 * bandwidth**2), 1)
    weights = weights * (1 - torch.eye(len(x_train), dtype=weights.dtype))
    return (weights @ y_train / weights.sum(1) - y_train).square().mean()


@mistake(
    "leave_one_out_loss",
    hint="0 · inf is NaN: the identity matrix times -inf spoils the whole matrix, not only its "
    "diagonal. Fill the diagonal instead.",
)
def multiplies_zero_by_infinity(x_train, y_train, bandwidth):
    scores = -(_gaps(x_train, x_train) ** 2) / (2 * bandwidth**2)
    return (_mix(scores - math.inf * torch.eye(len(x_train)), y_train) - y_train).square().mean()


@mistake(
    "leave_one_out_loss",
    hint="A large negative score is not -inf: with a tiny bandwidth the other scores are lower "
    "still, and the example predicts itself again.",
)
def fills_with_a_large_number(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth, fill=-1e9).mean()


@mistake(
    "leave_one_out_loss",
    hint="Every example at distance 0 is left out. Another example may lie at the same x: leave "
    "out by position, not by distance.",
    earns=("with a tiny bandwidth", "its gradient"),
)
def leaves_out_twins(x_train, y_train, bandwidth):
    scores = -(_gaps(x_train, x_train) ** 2) / (2 * bandwidth**2)
    return (_mix(scores.masked_fill(scores == 0, -math.inf), y_train) - y_train).square().mean()


@mistake(
    "leave_one_out_loss",
    hint="The squared errors are added up. Take their mean.",
    earns=("its gradient",),
)
def adds_the_errors(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth).sum()


@mistake("leave_one_out_loss", hint="The errors are not squared but made positive by abs.")
def takes_absolute_errors(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth, error=torch.abs).mean()


@mistake(
    "leave_one_out_loss",
    hint="This is the root of the mean squared error. Leave out the root.",
    earns=("with a tiny bandwidth", "its gradient"),
)
def takes_the_root(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth).mean().sqrt()


@mistake(
    "leave_one_out_loss",
    hint="The value is right, but no gradient can pass: something became a plain number "
    "(float, item) or was detached.",
    earns=("with ordinary bandwidths", "with a tiny bandwidth"),
)
def detaches(x_train, y_train, bandwidth):
    return _loo(x_train.detach(), y_train.detach(), torch.as_tensor(bandwidth).item()).mean()


def _squared_errors(x_train, y_train, bandwidth):
    for i in range(len(x_train)):
        rest = [j for j in range(len(x_train)) if j != i]
        scores = -((x_train[i] - x_train[rest]) ** 2) / (2 * bandwidth**2)
        yield (_mix(scores, y_train[rest]) - y_train[i]) ** 2


@mistake(
    "leave_one_out_loss",
    hint="The mask is the wrong way round: each example is predicted by itself alone.",
)
def leaves_only_itself(x_train, y_train, bandwidth):
    scores = -(_gaps(x_train, x_train) ** 2) / (2 * bandwidth**2)
    others = ~torch.eye(len(x_train), dtype=torch.bool)
    return (_mix(scores.masked_fill(others, -math.inf), y_train) - y_train).square().mean()


@mistake(
    "leave_one_out_loss",
    hint="The errors are averaged before they are squared, so that they cancel. Square them first.",
)
def squares_the_mean_error(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth, error=lambda error: error).mean().square()


@mistake("leave_one_out_loss", hint="The 2 under the fraction of the Gaussian is missing.")
def leaves_out_the_half(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth / math.sqrt(2)).mean()


@mistake(
    "leave_one_out_loss",
    hint="One squared error for each example is returned. Their mean is asked for.",
)
def returns_every_error(x_train, y_train, bandwidth):
    return _loo(x_train, y_train, bandwidth)


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


@mistake(
    "LearnedBandwidth",
    hint="log_bandwidth is an ordinary tensor, which no optimiser would find. Wrap it in "
    "nn.Parameter.",
    earns=("the predictions",),
)
class NotAParameter(_Regression):
    def __init__(self, bandwidth):
        super().__init__(bandwidth)
        del self.log_bandwidth
        self.log_bandwidth = self.initial(bandwidth)


@mistake(
    "LearnedBandwidth",
    hint="The parameter has the shape (1,). A scalar has the shape (): mind the brackets in "
    "torch.tensor.",
    earns=("the predictions", "the gradient"),
)
class KeepsAVector(_Regression):
    def initial(self, bandwidth):
        return torch.tensor([math.log(bandwidth)])


@mistake(
    "LearnedBandwidth",
    hint="nn.Parameter wraps a tensor, not a plain number: torch.tensor(…) first.",
)
class WrapsANumber(_Regression):
    def initial(self, bandwidth):
        return math.log(bandwidth)


@mistake(
    "LearnedBandwidth",
    hint="torch.log takes tensors, and bandwidth is a plain number: math.log takes that.",
)
class TakesTheLogOfANumber(_Regression):
    def initial(self, bandwidth):
        return torch.log(bandwidth)


@mistake(
    "LearnedBandwidth",
    hint="The parameter starts at the bandwidth itself. It should hold its logarithm.",
    earns=("the predictions", "the gradient"),
)
class StoresTheBandwidth(_Regression):
    def initial(self, bandwidth):
        return torch.tensor(float(bandwidth))


@mistake(
    "LearnedBandwidth",
    hint="The logarithm is used as if it were the bandwidth. How do you get back from it?",
    earns=("the parameter",),
)
class ForgetsExp(_Regression):
    def bandwidth(self):
        return self.log_bandwidth


@mistake(
    "LearnedBandwidth",
    hint="forward uses the number given to __init__, so training the parameter changes nothing.",
)
class UsesTheStartingBandwidth(_Regression):
    def bandwidth(self):
        return self.start


@mistake(
    "LearnedBandwidth",
    hint="The bandwidth becomes a plain number (item, float, detach) on its way, and the gradient "
    "is lost there. Keep it a tensor.",
    earns=("the parameter", "the predictions"),
)
class Detaches(_Regression):
    def bandwidth(self):
        return math.exp(self.log_bandwidth.item())


@mistake("LearnedBandwidth", hint="The bandwidth is not squared with the distance.")
class DoesNotSquareTheBandwidth(_Regression):
    def forward(self, x, x_train, y_train):
        return _mix(-(_gaps(x, x_train) ** 2) / (2 * self.bandwidth()), y_train)


@mistake(
    "LearnedBandwidth",
    hint="The 1/2 of the Gaussian's exponent is missing.",
    earns=("the parameter", "the gradient"),
)
class LeavesOutTheHalf(_Regression):
    def forward(self, x, x_train, y_train):
        return _mix(-((_gaps(x, x_train) / self.bandwidth()) ** 2), y_train)


@mistake(
    "LearnedBandwidth",
    hint="The parameter is a local variable of __init__, gone when it ends. It belongs to the "
    "module: self.log_bandwidth.",
)
class KeepsItLocal(_Regression):
    def __init__(self, bandwidth):
        super().__init__(bandwidth)
        del self.log_bandwidth


@mistake(
    "LearnedBandwidth", hint="The parameter holds the logarithm to base 10. exp undoes math.log."
)
class TakesTheLogToBaseTen(_Regression):
    def initial(self, bandwidth):
        return torch.tensor(math.log10(bandwidth))


@mistake(
    "LearnedBandwidth",
    hint="The differences are multiplied by the bandwidth. A wide kernel makes distances small: "
    "divide.",
)
class MultipliesByTheBandwidth(_Regression):
    def forward(self, x, x_train, y_train):
        return _mix(-((_gaps(x, x_train) * self.bandwidth()) ** 2) / 2, y_train)


@mistake(
    "LearnedBandwidth",
    hint="The softmax runs over the queries. Each query shares out its attention among the keys.",
)
class NormalisesOverQueries(_Regression):
    def forward(self, x, x_train, y_train):
        return torch.softmax(-((_gaps(x, x_train) / self.bandwidth()) ** 2) / 2, 0) @ y_train


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


@mistake(
    "ignores_order",
    hint="Every way is accused, even where all queries are the same number. Does every example "
    "come in the new order, all T_k of them, each key with its value?",
)
def leaves_the_values(name, x, x_train, y_train):
    queries, examples = _orders(x, x_train)
    shuffled = candidate(name, x[queries], x_train[examples], y_train)
    before = candidate(name, x, x_train, y_train)[queries]
    return torch.allclose(shuffled, before, atol=1e-5)


@mistake(
    "ignores_order",
    hint="The predictions are compared exactly. A sum in another order is rounded differently: "
    "allow for it with torch.allclose.",
)
def compares_exactly(name, x, x_train, y_train):
    shuffled = candidate(name, x.flip(0), x_train.flip(0), y_train.flip(0)).flip(0)
    rolled = candidate(name, x.roll(1), x_train.roll(1), y_train.roll(1)).roll(-1)
    before = candidate(name, x, x_train, y_train)
    return torch.equal(shuffled, before) and torch.equal(rolled, before)


@mistake(
    "ignores_order",
    hint="Every way is accused. Either the predictions before and after stand in different orders, "
    "or one order of T_q numbers serves the examples, of which there are T_k.",
)
def forgets_that_predictions_move(name, x, x_train, y_train):
    queries, examples = _orders(x, x_train)
    shuffled = candidate(name, x[queries], x_train[examples], y_train[examples])
    return torch.allclose(shuffled, candidate(name, x, x_train, y_train), atol=1e-5)


@mistake(
    "ignores_order",
    hint="A way that looks at the order of the queries is not noticed: either the queries are not "
    "shuffled, or only a total of the predictions is compared.",
)
def leaves_the_queries(name, x, x_train, y_train):
    return _agree(name, x, x_train, y_train, torch.arange(len(x)), _orders(x, x_train)[1])


@mistake(
    "ignores_order",
    hint="Only the queries are shuffled. A way may also look at the order of the examples.",
)
def leaves_the_examples(name, x, x_train, y_train):
    return _agree(name, x, x_train, y_train, _orders(x, x_train)[0], torch.arange(len(x_train)))


@mistake(
    "ignores_order",
    hint="Turned around, the list looks the same to a way that counts places from the middle. Try "
    "an order in which nothing is symmetrical, such as a random one.",
)
def turns_them_around(name, x, x_train, y_train):
    queries, examples = torch.arange(len(x)).flip(0), torch.arange(len(x_train)).flip(0)
    return _agree(name, x, x_train, y_train, queries, examples)


@mistake(
    "ignores_order",
    hint="Everything moves on by one, so all keep their neighbours, and a way that looks at the "
    "neighbour before is not noticed. Try a random order.",
)
def moves_them_on(name, x, x_train, y_train):
    queries, examples = torch.arange(len(x)).roll(1), torch.arange(len(x_train)).roll(1)
    return _agree(name, x, x_train, y_train, queries, examples)


@mistake("ignores_order", hint="True and False are swapped: True means that no order is looked at.")
def says_the_opposite(name, x, x_train, y_train):
    return not _agree(name, x, x_train, y_train, *_orders(x, x_train))


@alternative("ignores_order")
def shuffles_one_after_the_other(name, x, x_train, y_train):
    before, (queries, examples) = candidate(name, x, x_train, y_train), _orders(x, x_train)
    same = torch.allclose(before, candidate(name, x, x_train[examples], y_train[examples]))
    return same and torch.allclose(before[queries], candidate(name, x[queries], x_train, y_train))


@mistake(
    "ignores_order",
    hint="Sorting is no shuffle: what is in order already stays where it is.",
)
def sorts_both(name, x, x_train, y_train):
    return _agree(name, x, x_train, y_train, x.argsort(), x_train.argsort())


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
    "distances: with the two sides of one `-` exchanged: return (x_train[None, :] - "
    "x[:, None]).abs()": "the sign goes",
    "nadaraya_watson: with the two sides of one `-` exchanged: scores = "
    "-(x_train[None, :] - x[:, None]) ** 2 / (2 * bandwidth ** 2)": "the sign goes",
    "kernel_values: with `u` once where `kernel` belongs: raise "
    "ValueError(f'kernel={u!r} is none of gaussian, boxcar, epanechnikov, "
    "constant')": "only the right names are asked for",
    "kernel_values: whose result is cut off from the gradient: return (u.abs() <= "
    "1).to(u.dtype).detach()": "its gradient is 0 everywhere",
    "kernel_values: whose result is cut off from the gradient: return "
    "torch.ones_like(u).detach()": "its gradient is 0 everywhere",
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
