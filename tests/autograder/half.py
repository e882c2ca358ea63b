"""Two exercises, `half` and `Gain`, with checks that expect all there is to expect."""

import torch
from torch import nn

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Check

F64 = torch.float64


def half_check(student, draw):
    """What ``half`` must do, with every sort of expectation."""
    small = torch.tensor([[2.0, 4.0, 7.0]], dtype=F64)
    result = student(small)
    expect.shape(result, (1, 3))
    expect.dtype(result, F64)
    expect.finite(result, "the halves are not finite")
    expect.close(result, torch.tensor([[1.0, 2.0, 3.5]], dtype=F64), "half of [2, 4, 7] is wrong")
    values = draw.normal(4, 5)
    expect.close(student(draw.strided(values)), values * 0.5, "some halves are wrong")
    expect.close(student(values.float()).double(), values.float().double() / 2, "float32 is wrong")
    expect.raises(student, ValueError, values.long(), what="integers should be refused")
    expect.gradients(student, lambda x: x * 0.5, values)


def half(x):
    """The right answer."""
    if not x.is_floating_point():
        raise ValueError("halves of integers are no integers")
    return x / 2


def shape_check(student, draw):
    """A check that expects nothing in particular of the type of the result."""
    expect.true(student(draw.normal(2, 3)).sum(0).shape == (3,), "the sum has the wrong shape")


class Gain(nn.Module):
    """The right answer."""

    def __init__(self, start):
        super().__init__()
        self.gain = nn.Parameter(torch.full((3,), float(start)))

    def forward(self, x, add=None):
        return self.gain * x


def gain_check(student, draw):
    """What ``Gain`` must do."""
    module = student.build(2.0)
    expect.equal(sorted(module.parameters()), ["gain"], "the parameters have other names")
    module.load({"gain": torch.tensor([1.0, 2.0, 3.0], dtype=F64)})
    x = draw.normal(4, 3)
    module.eval()
    expect.close(module(x), x * torch.tensor([1.0, 2.0, 3.0], dtype=F64), "a product is wrong")
    module.train()
    grads, inputs = module.gradients(x)
    expect.close(grads["gain"], x.sum(0), "the gradient of the gain is wrong")
    expect.close(inputs[0], torch.ones(4, 1, dtype=F64) * torch.tensor([1.0, 2, 3]), "x")


HALF, SHAPE, GAIN = (
    Check(check.__name__.removesuffix("_check"), "nowhere", check, reference=right)
    for check, right in ((half_check, half), (shape_check, half), (gain_check, Gain))
)


def lines(failure):
    """The message that a student reads."""
    return str(failure).split("\n")


def raiser(error):
    """An answer that raises."""

    def answer(x):
        raise error

    return answer
