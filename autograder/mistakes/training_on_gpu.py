"""Wrong and right answers to the exercises of lesson 12."""

import math

import torch

from autograder.checking.toolbox.registry import alternative, careless, mistake


@alternative("training_flops")
def adds_up_matrix_products(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    def attention(queries, keys):
        rows = [(queries, d_model, d_model)] * 2 + [(keys, d_model, d_model)] * 2
        return [*rows, (queries, d_model, keys), (queries, keys, d_model)]

    def network(positions):
        return [(positions, d_model, d_ff), (positions, d_ff, d_model)]

    layer = attention(T_k, T_k) + network(T_k)
    layer += attention(T_q, T_q) + attention(T_q, T_k) + network(T_q)
    products = n_layers * layer + [(T_q, d_model, vocab_size)]
    return 6 * sum(math.prod(sizes) for sizes in products)


@alternative("training_flops")
def has_one_polynomial(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    both = T_k + T_q
    total = n_layers * (6 * both * d_model + 2 * (both**2 - T_k * T_q) + 2 * both * d_ff)
    return 6 * d_model * (total + T_q * vocab_size)


def _finite(gradients):
    return all(torch.isfinite(gradient).all() for gradient in gradients)


def _in_float32(gradients, scale):
    return [gradient.to(torch.float32) / scale for gradient in gradients]


def _scaling(
    gradients,
    scale,
    good_steps,
    patience,
    finite=_finite,
    unscale=_in_float32,
    back=0.5,
    growth=2.0,
    late=0,
):
    """A right answer, unless one of the last arguments is given otherwise."""
    if not finite(gradients):
        return None, scale * back, 0
    unscaled = unscale(gradients, scale)
    if good_steps + 1 >= patience + late:
        return unscaled, scale * growth, 0
    return unscaled, scale, good_steps + 1


@alternative("loss_scaling")
def divides_first(gradients, scale, good_steps=0, patience=2000):
    unscaled = [gradient.float() * (1 / scale) for gradient in gradients]
    bad = sum(int((~torch.isfinite(one)).sum()) for one in unscaled)
    if bad:
        return None, 0.5 * scale, 0
    grows = (good_steps + 1) % patience == 0
    return unscaled, scale * (2.0 if grows else 1.0), 0 if grows else good_steps + 1


@alternative("loss_scaling")
def loops_over_gradients(gradients, scale, good_steps=0, patience=2000):
    unscaled = []
    for gradient in gradients:
        wide = gradient.to(torch.float64)
        if (wide - wide != 0).any():  # inf - inf and NaN - NaN are NaN
            return None, scale / 2.0, 0
        unscaled.append((wide / scale).to(torch.float32))
    good_steps += 1
    if good_steps < patience:
        return unscaled, scale, good_steps
    return unscaled, 2.0 * scale, 0


@careless("loss_scaling")
def writes_into_the_list(gradients, scale, good_steps=0, patience=2000):
    for place, gradient in enumerate(gradients):
        gradients[place] = gradient.float() / scale
    return _scaling(gradients, scale, good_steps, patience, unscale=lambda unscaled, _: unscaled)


@careless("loss_scaling")
def goes_through_rows(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return all(row.isfinite().all() for gradient in gradients for row in gradient)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "data_parallel_gradients",
    hint="Every process counts the same, however few tokens its share has. Weight each with its "
    "part of all tokens.",
)
def averages_the_processes(gradients, tokens):
    joined = []
    for place in range(len(gradients[0])):
        total = torch.zeros_like(gradients[0][place])
        for process in gradients:
            total = total + process[place]
        joined.append(total / len(gradients))
    return joined


def _all(tokens):
    return sum(tokens) or 1


def _joined(gradients, weights):
    return [
        sum(weight * one for weight, one in zip(weights, parts, strict=True))
        for parts in zip(*gradients, strict=True)
    ]


@alternative("data_parallel_gradients")
def stacks_them(gradients, tokens):
    joined = []
    for parts in zip(*gradients, strict=True):
        stacked = torch.stack(list(parts))
        weights = torch.tensor(tokens, dtype=stacked.dtype, device=stacked.device)
        joined.append(torch.tensordot(weights / weights.sum().clamp(min=1), stacked, dims=1))
    return joined


@alternative("data_parallel_gradients")
def adds_sums_and_divides(gradients, tokens):
    sums = None
    for process, count in zip(gradients, tokens, strict=True):
        own = [count * one for one in process]
        sums = own if sums is None else [a + b for a, b in zip(sums, own, strict=True)]
    return [one / _all(tokens) for one in sums]


@careless("data_parallel_gradients")
def makes_shares_of_the_tokens(gradients, tokens):
    total = _all(tokens)
    for process in range(len(tokens)):
        tokens[process] /= total
    return _joined(gradients, tokens)


@careless("data_parallel_gradients")
def adds_to_the_first_process(gradients, tokens):
    first, total = gradients[0], _all(tokens)
    for place in range(len(first)):
        first[place] *= tokens[0] / total
        for process, count in zip(gradients[1:], tokens[1:], strict=True):
            first[place] += process[place] * count / total
    return first


@mistake(
    "break_data_parallel_gradients",
    hint="There is only one process: it has the whole batch.",
    where=lambda gradients, tokens: len(tokens) == 1,
)
def one_process():
    return [[torch.tensor([1.0, 2.0])]], [3]


@mistake(
    "break_data_parallel_gradients",
    hint="All shares have the same number of tokens, so each process counts as much as it should.",
    where=lambda gradients, tokens: len(set(tokens)) == 1,
)
def shares_of_equal_size():
    return [[torch.tensor([1.0])], [torch.tensor([5.0])]], [3, 3]


@mistake(
    "break_data_parallel_gradients",
    hint="All processes have the same gradients, and every mean of them is the same.",
    where=lambda gradients, tokens: all(
        torch.equal(one, other)
        for process in gradients
        for one, other in zip(process, gradients[0], strict=True)
    ),
)
def equal_gradients():
    return [[torch.tensor([2.0])], [torch.tensor([2.0])]], [3, 1]


@alternative("break_data_parallel_gradients")
def three_processes():
    gradients = [[torch.tensor([1.0, 0.0]), torch.tensor(2.0)] for _ in range(2)]
    return [*gradients, [torch.tensor([4.0, 4.0]), torch.tensor(0.0)]], [2, 2, 9]


@alternative("break_data_parallel_gradients")
def a_share_without_tokens():
    return [[torch.tensor([[6.0]])], [torch.tensor([[0.0]])]], [7, 0]


EQUIVALENT = {
    "data_parallel_gradients: without `strict` in one call of `zip`: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts, strict=True))) for parts in "
    "zip(*gradients)]": ("there are as many gradients from each process as parameters"),
    "data_parallel_gradients: with two arguments of one call of `zip` exchanged: return "
    "[sum((share * gradient for share, gradient in zip(parts, shares, strict=True))) for "
    "parts in zip(*gradients, str…": ("multiplication may be done in either order"),
    "data_parallel_gradients: without `strict` in one call of `zip`: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts))) for parts in zip(*gradients, "
    "strict=True)]": ("there is a number of tokens for each process"),
    "data_parallel_gradients: with False once where True belongs: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts, strict=True))) for parts in "
    "zip(*gradients, str…": ("there are as many gradients from each process as parameters"),
    "data_parallel_gradients: with False once where True belongs: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts, strict=False))) for parts in "
    "zip(*gradients, st…": ("there is a number of tokens for each process"),
}
