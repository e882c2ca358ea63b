"""The library of lesson 01: its four kernels against loops, and who ignores the order."""

import math

import pytest
import torch

from attention.kernel_regression import (
    LearnedBandwidth,
    kernel_regression,
    kernel_values,
    nadaraya_watson,
)

F64 = torch.float64
KERNELS = {
    "gaussian": lambda u: math.exp(-(u**2) / 2),
    "boxcar": lambda u: float(u <= 1),
    "epanechnikov": lambda u: max(1 - u**2, 0),
    "constant": lambda u: 1.0,
}


def example(queries, keys, dtype=F64):
    generator = torch.Generator().manual_seed(1)
    x = 6 * torch.rand(queries, generator=generator, dtype=dtype)
    x_train = 6 * torch.rand(keys, generator=generator, dtype=dtype)
    return x, x_train, torch.randn(keys, generator=generator, dtype=dtype)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [0.4, 3.0])
def test_kernel_regression_agrees_with_loops(kernel, bandwidth):
    x, x_train, y_train = inputs = example(5, 7)
    prediction, weights = kernel_regression(*inputs, kernel, bandwidth)
    for a, found, row in zip(x.tolist(), prediction.tolist(), weights, strict=True):
        similar = [KERNELS[kernel](abs(a - b) / bandwidth) for b in x_train.tolist()]
        if not any(similar):  # out of reach of all keys: they count alike
            similar = [1.0] * 7
        expected = torch.tensor(similar, dtype=F64) / math.fsum(similar)
        torch.testing.assert_close(row, expected)
        assert found == pytest.approx((expected @ y_train).item())
    if kernel == "gaussian":
        torch.testing.assert_close(prediction, nadaraya_watson(*inputs, bandwidth))


def test_an_unknown_kernel_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'box' is none of gaussian, boxcar, epanechnikov, cons"):
        kernel_values(torch.zeros(2), "box")


@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_learned_bandwidth_follows_the_dtype_of_its_inputs(dtype):
    assert LearnedBandwidth(0.5)(*example(5, 7, dtype)).dtype == dtype
