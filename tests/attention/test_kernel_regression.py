"""The library of lesson 01 against independent computations."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernel_regression import (
    LearnedBandwidth,
    attention_weights,
    distances,
    ignores_order,
    kernel_regression,
    kernel_values,
    leave_one_out_loss,
    nadaraya_watson,
    soft_lookup,
)

F64 = torch.float64

KERNELS = ["gaussian", "boxcar", "epanechnikov", "constant"]
bandwidths = st.floats(0.05, 20)
seeds = st.integers(0, 10**6)


def example(seed, queries=5, keys=7):
    generator = torch.Generator().manual_seed(seed)
    x = 6 * torch.rand(queries, generator=generator, dtype=F64)
    x_train = 6 * torch.rand(keys, generator=generator, dtype=F64)
    return x, x_train, torch.randn(keys, generator=generator, dtype=F64)


def by_loops(x, x_train, y_train, bandwidth):
    predictions = []
    for a in x.tolist():
        logs = [-(((a - b) / bandwidth) ** 2) / 2 for b in x_train.tolist()]
        kernel = [math.exp(log - max(logs)) for log in logs]
        top = math.fsum(k * y for k, y in zip(kernel, y_train.tolist(), strict=True))
        predictions.append(top / math.fsum(kernel))
    return torch.tensor(predictions, dtype=F64)


@given(seeds, bandwidths)
def test_nadaraya_watson_agrees_with_loops(seed, bandwidth):
    inputs = example(seed)
    torch.testing.assert_close(nadaraya_watson(*inputs, bandwidth), by_loops(*inputs, bandwidth))


@given(seeds, bandwidths)
def test_the_gaussian_kernel_gives_nadaraya_watson(seed, bandwidth):
    inputs = example(seed)
    # Far from all keys the plain kernel underflows; the softmax does not.
    if ((inputs[0][:, None] - inputs[1]).abs().amin(1) / bandwidth).max() < 20:
        prediction, _ = kernel_regression(*inputs, "gaussian", bandwidth)
        torch.testing.assert_close(prediction, nadaraya_watson(*inputs, bandwidth))


@given(seeds, bandwidths, st.sampled_from(KERNELS))
def test_predictions_lie_among_the_values(seed, bandwidth, kernel):
    x, x_train, y_train = example(seed)
    prediction, weights = kernel_regression(x, x_train, y_train, kernel, bandwidth)
    torch.testing.assert_close(weights.sum(1), torch.ones(5, dtype=F64))
    assert prediction.min() >= y_train.min() - 1e-9
    assert prediction.max() <= y_train.max() + 1e-9


@given(
    seeds,
    bandwidths,
    st.sampled_from(KERNELS),
    st.permutations(range(7)),
    st.permutations(range(5)),
)
def test_order_of_examples_and_queries(seed, bandwidth, kernel, pairs, queries):
    x, x_train, y_train = example(seed)
    prediction, weights = kernel_regression(x, x_train, y_train, kernel, bandwidth)
    shuffled, moved = kernel_regression(x, x_train[pairs], y_train[pairs], kernel, bandwidth)
    torch.testing.assert_close(shuffled, prediction)
    torch.testing.assert_close(moved, weights[:, pairs])
    shuffled, _ = kernel_regression(x[queries], x_train, y_train, kernel, bandwidth)
    torch.testing.assert_close(shuffled, prediction[queries])


def test_it_is_linear_in_the_values_but_not_in_the_keys():
    x, x_train, y_train = example(3)
    prediction = nadaraya_watson(x, x_train, y_train, 0.7)
    torch.testing.assert_close(nadaraya_watson(x, x_train, 2 * y_train, 0.7), 2 * prediction)
    assert (nadaraya_watson(x, 2 * x_train, y_train, 0.7) - prediction).abs().max() > 0.1


@pytest.mark.parametrize("n", [1, 2, 50])
def test_it_takes_any_number_of_examples(n):
    assert nadaraya_watson(*example(0, queries=3, keys=n), 0.5).shape == (3,)


def test_a_tiny_bandwidth_is_the_nearest_neighbour_and_a_huge_one_the_mean():
    x, x_train, y_train = example(5)
    nearest = y_train[(x[:, None] - x_train).abs().argmin(1)]
    torch.testing.assert_close(nadaraya_watson(x, x_train, y_train, 1e-4), nearest)
    mean = y_train.mean().expand(5)
    torch.testing.assert_close(nadaraya_watson(x, x_train, y_train, 1e6), mean)


@given(seeds, st.floats(0.05, 50))
def test_soft_lookup_agrees_with_loops(seed, temperature):
    generator = torch.Generator().manual_seed(seed)
    query, keys, values = (
        torch.randn(*shape, generator=generator, dtype=F64) for shape in ((3,), (7, 3), (7, 4))
    )
    scores = [-(math.dist(query.tolist(), key.tolist()) ** 2) / temperature for key in keys]
    kernel = [math.exp(score - max(scores)) for score in scores]
    expected = sum(k * value for k, value in zip(kernel, values, strict=True)) / sum(kernel)
    torch.testing.assert_close(soft_lookup(query, keys, values, temperature), expected)


@pytest.mark.parametrize("temperature", [0, 0.0, -1.0])
def test_soft_lookup_refuses_a_temperature_that_is_not_positive(temperature):
    with pytest.raises(ValueError, match=f"temperature={temperature}"):
        soft_lookup(torch.zeros(2), torch.zeros(3, 2), torch.zeros(3, 1), temperature)


def test_distances_are_laid_out_queries_down():
    gaps = distances(torch.tensor([0.0, 10.0]), torch.tensor([1.0, 2.0, 4.0]))
    assert gaps.tolist() == [[1, 2, 4], [9, 8, 6]]


@given(st.floats(-4, 4))
def test_kernels_are_even_and_largest_at_zero(u):
    u = torch.tensor([u, -u, 0.0], dtype=F64)
    for kernel in KERNELS:
        left, right, top = kernel_values(u, kernel).tolist()
        assert left == right
        assert 0 <= left <= top == 1


def test_an_unknown_kernel_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'box' is none of gaussian, boxcar, epanechnikov, cons"):
        kernel_values(torch.zeros(2), "box")


def test_a_query_out_of_reach_weighs_all_keys_alike_with_a_finite_gradient():
    similarity = torch.tensor([[1.0, 3.0], [0.0, 0.0]], dtype=F64, requires_grad=True)
    weights = attention_weights(similarity)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=F64))
    weights[:, 0].sum().backward()
    assert torch.isfinite(similarity.grad).all()
    assert similarity.grad[0].abs().max() > 0


@given(seeds, bandwidths)
@settings(max_examples=50)
def test_leave_one_out_agrees_with_leaving_out(seed, bandwidth):
    _, x_train, y_train = example(seed)
    errors = []
    for i in range(7):
        rest = [j for j in range(7) if j != i]
        prediction = by_loops(x_train[i : i + 1], x_train[rest], y_train[rest], bandwidth)
        errors.append((prediction - y_train[i]).item() ** 2)
    expected = torch.tensor(math.fsum(errors) / 7, dtype=F64)
    torch.testing.assert_close(leave_one_out_loss(x_train, y_train, bandwidth), expected)


def test_leave_one_out_has_the_right_gradient():
    _, x_train, y_train = example(11)
    inputs = [item.requires_grad_() for item in (x_train, y_train, torch.tensor(0.8, dtype=F64))]
    assert torch.autograd.gradcheck(leave_one_out_loss, inputs)


def test_learned_bandwidth_starts_where_it_is_told_and_has_the_right_gradient():
    model = LearnedBandwidth(0.5)
    assert [name for name, _ in model.named_parameters()] == ["log_bandwidth"]
    inputs = example(2)
    torch.testing.assert_close(model(*inputs), by_loops(*inputs, 0.5), rtol=1e-5, atol=1e-6)
    model = model.double()

    def predict(log_bandwidth):
        return torch.func.functional_call(model, {"log_bandwidth": log_bandwidth}, inputs)

    start = torch.tensor(-0.3, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(predict, [start])


@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_learned_bandwidth_follows_the_dtype_of_its_inputs(dtype):
    inputs = [item.to(dtype) for item in example(2)]
    assert LearnedBandwidth(0.5)(*inputs).dtype == dtype


def test_training_finds_the_bandwidth_with_the_smallest_loss():
    x_train = torch.linspace(0, 6, 40, dtype=F64)
    noise = torch.randn(40, generator=torch.Generator().manual_seed(0), dtype=F64)
    y_train = torch.sin(2 * x_train) + 0.2 * noise
    model = LearnedBandwidth(1.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        leave_one_out_loss(x_train, y_train, model.log_bandwidth.exp()).backward()
        optimiser.step()
    grid = torch.logspace(-2, 0.5, 200)
    losses = torch.stack([leave_one_out_loss(x_train, y_train, h) for h in grid])
    assert model.log_bandwidth.exp().item() == pytest.approx(grid[losses.argmin()].item(), rel=0.05)


def test_who_ignores_the_order():
    generator = torch.Generator().manual_seed(1)
    x, x_train = 6 * torch.rand(11, generator=generator), 6 * torch.rand(13, generator=generator)
    y_train = torch.randn(13, generator=generator)
    ignore = [name for name in "ABCDEFG" if ignores_order(name, x, x_train, y_train)]
    assert "".join(ignore) == "AEG"
