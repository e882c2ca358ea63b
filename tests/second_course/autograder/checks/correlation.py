"""Checks of lesson 00: a kernel slides along a signal."""

import torch

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64


def by_hand(x, kernel):
    """The correlation, one product after the other."""
    places = range(len(x) - len(kernel) + 1)
    return torch.stack([sum(x[i + j] * kernel[j] for j in range(len(kernel))) for i in places])


@check(rests_on=("entry i is the sum of x[i + j] * kernel[j]", "(T - K + 1,)"))
def correlate(student, draw):
    """One value for each place at which the kernel lies within the signal."""
    x, kernel = draw.normal(9, scale=300.0), draw.normal(4)
    out = student(x, kernel)
    expect.shape(out, (6,), axes="T - K + 1")
    expect.dtype(out, F64)
    step, edge = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=F64), torch.tensor([-1.0, 1.0], dtype=F64)
    expected = torch.tensor([0.0, 1.0, 0.0], dtype=F64)
    expect.close(student(step, edge), expected, "the edge of [0, 0, 1, 1] is not found by [-1, 1]")
    expect.close(out, by_hand(x, kernel), "the sums differ from products added one by one")
    expect.close(student(draw.strided(x), kernel), out, "another memory layout changes the sums")
    expect.close(student(x, x), (x @ x)[None], "a kernel as long as the signal has one place")
    expect.close(student(x[:1], kernel[:1]), x[:1] * kernel[0], "one value is not multiplied")


@check(rests_on=("zeros on both sides", "the middle of the kernel lies on x[i]"))
def correlate_same(student, draw):
    """One value for each value of the signal."""
    x, kernel = draw.normal(7, scale=300.0), draw.normal(5)
    out = student(x, kernel)
    expect.shape(out, (7,), axes="T")
    expect.dtype(out, F64)
    zeros = torch.zeros(2, dtype=F64)
    expected = by_hand(torch.cat([zeros, x, zeros]), kernel)
    expect.close(out[2:5], expected[2:5], "values whose window lies within the signal are wrong")
    expect.close(out, expected, "values at the margins are wrong")
    expect.close(student(draw.strided(x), kernel), out, "another memory layout changes the sums")
    expect.close(student(x, kernel[:1]), x * kernel[0], "a kernel of one value scales the signal")


@check(rests_on=("the largest value of each window", "what does not fill one at the end is left"))
def max_pool(student, draw):
    """One value for each window."""
    x = draw.normal(11, scale=300.0)
    out = student(x, 3)
    expect.shape(out, (3,), axes="T // width")
    expect.dtype(out, F64)
    expect.close(out, torch.stack([x[i : i + 3].max() for i in (0, 3, 6)]), "some value is wrong")
    expect.close(student(draw.strided(x), 3), out, "another memory layout changes the values")
    expect.close(student(x, 1), x, "windows of one value change the signal")
    expect.close(student(x, 11), x.max()[None], "one window does not keep the largest value")
    expect.close(student(x[:1], 1), x[:1], "a signal of one value is not kept")
