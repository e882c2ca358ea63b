"""The hand-written files of a course of one small lesson."""

SLUG, NAME = "00_mini", "mini"

SOURCE = """# %% [markdown]
# # 00 · How small can a lesson be?
# Text with `code`, and a drawing:
# ![two boxes and
# an arrow](figures/boxes.svg)

# %%
import torch
from torch import nn

from autograder import check

print("by hand", [2 * value for value in (1, 2)])

# %% [markdown]
# ## Double, and scale in stages: the factor (2), its start (1)

# %% exercise="doubled"
from attention.mini import doubled

# %% check="doubled" points=2
check.doubled(doubled)

# %% given="halved"
from attention.mini import halved

# %% demo=true
print(halved(doubled(torch.ones(2))))

# %% exercise="Scale"
from attention.mini import Scale

# %% check="Scale" points=3
check.Scale(Scale)

# %% [markdown]
# The end.
"""

LIBRARY = '''"""A lesson for tests."""

import torch
from torch import nn


# A comment of the module, above the decorator.
@torch.enable_grad()
def doubled(values):
    """Double every value.

    values   any shape
    returns  the same shape
    """
    factor = 2.0
    # This comment is given, and so is the line below it.
    zero = 0.0 * values

    # exercise: about 2 lines
    # Multiplying keeps the gradient.
    result = factor * values + zero  # same shape
    return result


def halved(values):
    """Halve every value."""
    return values / 2


class Scale(nn.Module):
    """Scale by a learned factor."""

    def __init__(self, start):
        super().__init__()
        # exercise: about 1 line
        self.factor = nn.Parameter(torch.tensor(float(start)))

    def extra_repr(self):
        """Show the factor."""
        return f"factor={self.factor.item()}"

    def forward(self, values):
        """Scale every value."""
        # exercise: about 1 line
        return self.factor * values
'''

CHECKS = '''"""Checks of the lesson for tests."""

import torch

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check


@check(rests_on=("Double every value", "the same shape"))
def doubled(student, draw):
    """Twice the values."""
    values = torch.tensor([1.0, 3.0], dtype=torch.float64)
    expected = torch.tensor([2.0, 6.0], dtype=torch.float64)
    expect.close(student(values), expected, "the double of [1, 3] is wrong")
    values = draw.normal(3, 4)
    expect.close(student(draw.strided(values)), values + values, "some values are not doubled")
    large = torch.tensor([[1000.0]], dtype=torch.float64)
    expect.close(student(large), large + large, "a large value is not doubled")
    expect.gradients(student, lambda values: values + values, values)


@check(
    without={"ones": "the factor has no axes, so none can be wrong"},
    rests_on=("Scale by a learned factor",),
    stages={"the factor": 2, "its start": 1},
)
def Scale(student, draw):
    """A module with one parameter, ``factor``."""
    module = student.build(3)
    start = module.parameters().get("factor")
    module.load({"factor": torch.tensor(2.0, dtype=torch.float64)})
    with expect.stage("the factor"):
        values = draw.normal(3, 4)
        expect.close(module(values), 2 * values, "the factor is not applied")
        values = draw.strided(draw.normal(3, 5, scale=1000.0))
        expect.close(module(values), 2 * values, "the factor is not applied to large values")
    with expect.stage("its start"):
        expect.close(start, 3.0, "the factor does not start where it should")
    with expect.stage("the factor"):
        grads, _ = module.gradients(values)
        expect.close(grads["factor"], values.sum(), "the gradient of the factor is wrong")
'''

MISTAKES = '''"""Wrong and right answers of the lesson for tests."""

import torch
from torch import nn

from autograder.checking.toolbox.registry import alternative, careless, mistake

EQUIVALENT = {
    "doubled: with `-` once where `+` belongs: result = factor * values - zero": "zero is 0",
    "doubled: with one term left out: result = factor * values": "zero is 0",
}


@mistake("doubled", hint="Two is added. What is asked for is a factor.")
def adds_two(values):
    return values + 2


@mistake("doubled", hint="This is three times the value.")
def triples(values):
    return 3 * values


@mistake("doubled", hint="The values come back as they were.")
def forgets(values):
    return values


@alternative("doubled")
def adds_to_itself(values):
    return values + values


@alternative("doubled")
def one_by_one(values):
    return torch.stack([2 * value for value in values.flatten()]).reshape(values.shape)


@mistake("Scale", hint="The factor is added to the values.", earns=("its start",))
class Adds(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(start)))

    def forward(self, values):
        return self.factor + values


@mistake("Scale", hint="The start is ignored.", earns=("the factor",))
class StartsAtOne(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(1.0))

    def forward(self, values):
        return self.factor * values


@mistake("Scale", hint="A plain tensor is not a parameter: nothing would learn it.")
class NoParameter(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.factor = torch.tensor(float(start))

    def forward(self, values):
        return self.factor * values


@alternative("Scale")
class FromOnes(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(()) * start)

    def forward(self, values):
        return torch.mul(values, self.factor)


@alternative("Scale")
class Registered(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.register_parameter("factor", nn.Parameter(torch.full((), float(start))))

    def forward(self, values):
        return torch.einsum(",...->...", self.factor, values)


@careless("doubled")
def doubles_on_the_cpu(values):
    return values + values + torch.zeros(values.shape)


@careless("doubled")
def doubles_and_seeds(values):
    torch.manual_seed(0)
    return values + values


@careless("Scale")
class AddsZerosOfTheCpu(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(start)))

    def forward(self, values):
        return self.factor * values + torch.zeros(values.shape)


@careless("Scale")
class SeedsForOthers(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(start)))

    def forward(self, values):
        torch.manual_seed(0)
        return self.factor * values
'''

FIGURE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="4"/></svg>\n'

FILES = {
    f"source/{SLUG}.py": SOURCE,
    "source/figures/boxes.svg": FIGURE,
    "attention/mini.py": LIBRARY,
    "autograder/checks/mini.py": CHECKS,
    "autograder/mistakes/mini.py": MISTAKES,
}

# A kernel imports this when it starts, and then finds the modules of the course's own folders.
START = """
import attention, autograder.checks, autograder.mistakes
attention.__path__.append({root!r} + "/attention")
autograder.checks.__path__.append({root!r} + "/autograder/checks")
autograder.mistakes.__path__.append({root!r} + "/autograder/mistakes")
"""
