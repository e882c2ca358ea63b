"""Right answers to the exercises of lesson 00, written differently: they test its checks."""

import torch

from autograder.checking.toolbox.registry import alternative, careless

ONE_AXIS = "the only axis of a signal is its first and its last"
EQUIVALENT = {
    "correlate: with one whole number off by one: windows = x.unfold(-1, len(kernel), 1)": ONE_AXIS,
    "correlate_same: with one whole number off by one: windows = torch.cat([zeros, x, zeros])"
    ".unfold(-1, len(kernel), 1)": ONE_AXIS,
    "correlate_same: with `kernel` once where `x` belongs: zeros = kernel.new_zeros("
    "len(kernel) // 2)": "signal and kernel are of one dtype, on one device",
    "max_pool: with one whole number off by one: return x.unfold(-1, width, width).amax(dim=1)": (
        ONE_AXIS
    ),
}


@alternative("correlate")
def one_window_after_the_other(x, kernel):
    places = range(len(x) - len(kernel) + 1)
    return torch.stack([x[i : i + len(kernel)] @ kernel for i in places])


@alternative("correlate")
def pytorch_correlates(x, kernel):
    return torch.nn.functional.conv1d(x[None, None], kernel[None, None])[0, 0]


@careless("correlate")
def adds_up_on_the_cpu(x, kernel):
    total = torch.zeros(len(x) - len(kernel) + 1)
    for j, weight in enumerate(kernel):
        total = total + weight * x[j : j + len(total)]
    return total


@careless("correlate")
def loses_the_gradient(x, kernel):
    return pytorch_correlates(x.detach(), kernel)


@alternative("correlate_same")
def pytorch_pads(x, kernel):
    weight = kernel[None, None]
    return torch.nn.functional.conv1d(x[None, None], weight, padding=len(kernel) // 2)[0, 0]


@alternative("correlate_same")
def writes_into_zeros(x, kernel):
    padded = x.new_zeros(len(x) + len(kernel) - 1)
    padded[len(kernel) // 2 :][: len(x)] = x
    return padded.unfold(0, len(kernel), 1) @ kernel


@careless("correlate_same")
def puts_zeros_of_the_cpu(x, kernel):
    zeros = torch.zeros(len(kernel) // 2)
    return torch.cat([zeros, x, zeros]).unfold(0, len(kernel), 1) @ kernel


@careless("correlate_same")
def pads_without_the_gradient(x, kernel):
    return writes_into_zeros(x.detach(), kernel)


@alternative("max_pool")
def one_row_for_each_window(x, width):
    return x[: len(x) // width * width].reshape(-1, width).max(dim=1).values


@alternative("max_pool")
def pytorch_pools(x, width):
    return torch.nn.functional.max_pool1d(x[None], width)[0]


@careless("max_pool")
def keeps_it_in_the_signal(x, width):
    windows = x.detach().unfold(0, width, width)
    for place in range(1, width):
        windows[:, 0] = torch.maximum(windows[:, 0], windows[:, place])
    return x.unfold(0, width, width)[:, 0]


@careless("max_pool")
def pools_without_the_gradient(x, width):
    return one_row_for_each_window(x.detach(), width)
