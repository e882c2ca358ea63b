"""Wrong and right answers to the exercises of lesson 00."""

import numpy as np
import torch

from autograder.checking.toolbox.registry import alternative, careless, mistake


@mistake(
    "uniform_average",
    hint="This is the sum. It grows with the number of values; an average does not.",
)
def adds_up(values):
    return values.sum(dim=0)


@mistake(
    "uniform_average",
    hint="This averages within each vector. Which axis counts the vectors, and should disappear?",
)
def averages_within_each_value(values):
    return values.mean(dim=1)


@mistake(
    "uniform_average",
    hint="mean() without an axis averages all the numbers into one. Keep the axis of the features.",
)
def averages_everything(values):
    return values.mean()


@mistake(
    "uniform_average",
    hint="The sum is divided by the number of features. How many vectors are averaged?",
)
def divides_by_the_width(values):
    return values.sum(dim=0) / values.shape[1]


@mistake(
    "uniform_average",
    hint="The averaged axis is still there with length 1: the result should be (d_v,), one vector.",
)
def keeps_the_axis(values):
    return values.mean(dim=0, keepdim=True)


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


@mistake(
    "softmax",
    hint="The sum runs over the last axis whatever dim says. Where should dim appear?",
    earns=("scores of ±1000 and −∞",),
)
def ignores_dim(scores, dim):
    return torch.softmax(scores, -1)


@mistake(
    "softmax",
    hint="dim is always 1 here, whatever the caller asks for. Where should dim appear?",
    earns=("scores of ±1000 and −∞",),
)
def fixes_dim(scores, dim):
    return torch.softmax(scores, 1)


@mistake(
    "softmax",
    hint="max(dim=…) returns two tensors, values and indices. amax returns the values only.",
)
def subtracts_a_pair(scores, dim):
    return overflows(scores - scores.max(dim), dim)


@mistake(
    "softmax",
    hint="The sum runs over all entries, so all of them share one budget of 1. "
    "Each slice along dim has a budget of its own.",
)
def normalises_everything(scores, dim):
    return torch.exp(scores) / torch.exp(scores).sum()


@mistake(
    "softmax",
    hint="exp of a large number is inf, exp of a very negative one is 0, and their ratios are NaN. "
    "What may be subtracted from all scores of a slice without changing the weights?",
    earns=("ordinary scores",),
)
def overflows(scores, dim):
    return torch.exp(scores) / torch.exp(scores).sum(dim, keepdim=True)


@mistake(
    "softmax",
    hint="One maximum is subtracted from all slices. A slice that lies far below it becomes 0 / 0: "
    "each slice along dim needs its own maximum.",
    earns=("ordinary scores",),
)
def subtracts_one_maximum(scores, dim):
    return overflows(scores - scores.max(), dim)


@mistake(
    "softmax",
    hint="The scores are divided by their sum without exp. A negative score would become a "
    "negative weight.",
)
def forgets_exp(scores, dim):
    return scores / scores.sum(dim, keepdim=True)


@mistake(
    "softmax",
    hint="The mean is subtracted. A score of -inf makes it -inf too, and -inf - (-inf) is NaN. "
    "Which number of the slice leaves no exponent above 0?",
    earns=("ordinary scores",),
)
def subtracts_the_mean(scores, dim):
    return overflows(scores - scores.mean(dim, keepdim=True), dim)


LOST_AXIS = (
    "A reduction, amax or sum or both, lost its axis, so its result does not line up with the "
    "scores. keepdim=True keeps it."
)


@mistake("softmax", hint=LOST_AXIS)
def forgets_keepdim_in_the_sum(scores, dim):
    shifted = scores - scores.amax(dim, keepdim=True)
    return torch.exp(shifted) / torch.exp(shifted).sum(dim)


@mistake("softmax", hint=LOST_AXIS)
def forgets_keepdim_in_the_maximum(scores, dim):
    return overflows(scores - scores.amax(dim), dim)


@mistake("softmax", hint=LOST_AXIS)
def forgets_keepdim_twice(scores, dim):
    powers = torch.exp(scores - scores.amax(dim))
    return powers / powers.sum(dim)


@mistake(
    "softmax",
    hint="The result is float32, with 7 digits instead of 16. Return the dtype that came in.",
)
def casts_to_float32(scores, dim):
    return torch.softmax(scores.float(), dim)


@mistake(
    "softmax",
    hint="An in-place operation (-=, exp_, …) writes into the caller's scores. Make a new tensor.",
)
def works_in_place(scores, dim):
    scores -= scores.amax(dim, keepdim=True)
    return overflows(scores, dim)


@mistake(
    "softmax",
    hint="The values are right, but they left PyTorch on the way (numpy, tolist, item, detach), "
    "so nothing could be learned through them.",
)
def leaves_the_graph(scores, dim):
    return torch.softmax(scores.detach(), dim)


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


def _refuse(weights, dim=1):
    for row, total in enumerate(weights.sum(dim)):
        if not torch.isclose(total, torch.ones_like(total), atol=1e-4):
            raise ValueError(f"row {row}: {total.item()}")


TRANSPOSED = (
    "The weights are transposed, so values are mixed by the weights of other queries. (T_q, T_k) "
    "times (T_k, d_v) fits as it stands."
)


@mistake("weighted_average", hint=TRANSPOSED)
def transposes_the_weights(weights, values):
    return weights.T @ values


@mistake("weighted_average", hint=TRANSPOSED, earns=("the refusal",))
def transposes_the_weights_that_it_has_tested(weights, values):
    _refuse(weights)
    return weights.T @ values


@mistake(
    "weighted_average",
    hint="The sum runs over the queries. It should run over the keys, one result per query.",
)
def sums_over_queries(weights, values):
    return (weights.unsqueeze(2) * values).sum(dim=0)


@mistake(
    "weighted_average",
    hint="These weights are fine: which axis was summed? A column says how often a value was used, "
    "which may be anything; a query's weights stand in a row.",
)
def tests_the_columns(weights, values):
    _refuse(weights, dim=0)
    return weights @ values


@mistake(
    "weighted_average",
    hint="Floating-point sums are rarely exactly 1. Allow a small difference, such as 1e-4.",
)
def compares_exactly(weights, values):
    if (weights.sum(dim=1) != 1).any():
        raise ValueError("a row does not sum to 1")
    return weights @ values


@mistake(
    "weighted_average",
    hint="Weights that do not sum to 1 pass unnoticed. An earlier step erred: raise ValueError.",
    earns=("the averages",),
)
def accepts_any_weights(weights, values):
    return weights @ values


@mistake(
    "weighted_average",
    hint="The weights are rescaled silently. That hides an error made earlier: raise ValueError.",
    earns=("the averages",),
)
def rescales(weights, values):
    return (weights / weights.sum(dim=1, keepdim=True)) @ values


@mistake(
    "weighted_average",
    hint="assert raises AssertionError, and `python -O` removes it. Raise ValueError yourself.",
    earns=("the averages",),
)
def asserts(weights, values):
    assert torch.allclose(weights.sum(dim=1), torch.ones_like(weights[:, 0]), atol=1e-4)
    return weights @ values


@mistake(
    "weighted_average",
    hint="Only sums above 1 are refused. A row may also sum to too little.",
    earns=("the averages",),
)
def refuses_only_large_sums(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if total > 1 + 1e-4:
            raise ValueError(f"row {row}: {total}")
    return weights @ values


@mistake(
    "weighted_average",
    hint="Only the total over all rows is tested: one row's excess hides another's deficit.",
    earns=("the averages",),
)
def tests_only_the_total(weights, values):
    total = weights.sum().item()
    if abs(total - len(weights)) > 1e-4:
        bad = (weights.sum(dim=1) - 1).abs().argmax().item()
        raise ValueError(f"row {bad}: {weights[bad].sum().item()}")
    return weights @ values


@mistake(
    "weighted_average",
    hint="The error is raised, but its message should help to find the row: give index and sum.",
    earns=("the averages",),
)
def says_nothing_about_the_row(weights, values):
    if not torch.allclose(weights.sum(dim=1), torch.ones_like(weights[:, 0]), atol=1e-4):
        raise ValueError("the rows do not sum to 1")
    return weights @ values


@mistake(
    "weighted_average",
    hint="Rows are counted from 0, as Python counts.",
    earns=("the averages",),
)
def counts_rows_from_one(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist(), start=1):
        if abs(total - 1) > 1e-4:
            raise ValueError(f"row {row} sums to {total}")
    return weights @ values


@mistake(
    "weighted_average",
    hint="Two rows were wrong, and the error names the last. Stop at the first.",
    earns=("the averages",),
)
def names_the_last_row(weights, values):
    bad = ((weights.sum(dim=1) - 1).abs() > 1e-4).nonzero().flatten().tolist()
    if bad:
        raise ValueError(f"row {bad[-1]} sums to {weights[bad[-1]].sum().item()}")
    return weights @ values


@alternative("weighted_average")
def row_by_row(weights, values):
    _refuse(weights)
    return torch.stack([sum(w * v for w, v in zip(row, values, strict=True)) for row in weights])


@alternative("weighted_average")
def with_einsum(weights, values):
    _refuse(weights)
    return torch.einsum("qk,kd->qd", weights, values)


@alternative("weighted_average")
def multiplies_and_adds(weights, values):
    sums = weights.sum(-1)
    bad = (sums - 1).abs() > 1e-4
    if bad.any():
        row = int(bad.nonzero()[0])
        raise ValueError(f"weights[{row}] sums to {sums[row]}")
    return (weights[:, :, None] * values[None, :, :]).sum(1)


@careless("weighted_average")
def writes_row_after_row(weights, values):
    _refuse(weights)
    context = torch.zeros(len(weights), values.shape[1])
    for i, row in enumerate(weights):
        context[i] = row @ values
    return context


@careless("weighted_average")
def compares_with_ones_in_float32(weights, values):
    sums = weights.sum(dim=1)
    wrong = ~torch.isclose(sums, torch.ones(len(sums)), atol=1e-4)
    if wrong.any():
        row = wrong.nonzero()[0].item()
        raise ValueError(f"row {row} sums to {sums[row].item()}")
    return weights @ values


@careless("weighted_average")
def multiplies_in_numpy(weights, values):
    _refuse(weights)
    return torch.from_numpy(weights.detach().numpy() @ values.detach().numpy())


class RowError(ValueError):
    """A learner may give the error a name of its own."""


@alternative("weighted_average")
def with_an_error_of_its_own(weights, values):
    for row, total in enumerate(weights.sum(1)):
        if not 1 - 1e-4 <= total <= 1 + 1e-4:
            raise RowError(f"{total:.2f} in row {row}")
    return torch.matmul(weights, values)


SUM = (
    "if not abs(total - 1) < 0.0001: raise ValueError(f'row {row} of the weights sums to "
    "{total:.4f}, not to 1')"
)
EQUIVALENT = {
    f"weighted_average: with `<` once where `<=` belongs: {SUM}": "no floating-point sum is "
    "exactly 0.0001 away from 1",
    "weighted_average: with the two sides of one `-` exchanged: "
    + SUM.replace("total - 1", "1 - total").replace("<", "<="): "|a - b| = |b - a|",
    "weighted_average: with one call of `tolist` left out: for row, total in "
    "enumerate(weights.sum(dim=1)): if not abs(total - 1) <= 0.0001: raise ValueError(f'row {row} "
    "of the w…": "a tensor without axes compares and prints as a number",
}
