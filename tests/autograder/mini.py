"""A course of one small lesson, to be built, verified and broken by tests."""

import shutil
import sys

import attention
from autograder import checks, exercise, mistakes
from autograder.lesson import read

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
# ## Double

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

from autograder import expect
from autograder.exercise import check


@check
def doubled(student, draw):
    """Twice the values."""
    values = torch.tensor([1.0, 3.0], dtype=torch.float64)
    expected = torch.tensor([2.0, 6.0], dtype=torch.float64)
    expect.close(student(values), expected, "the double of [1, 3] is wrong")
    values = draw.normal(3, 4)
    expect.close(student(draw.strided(values)), values + values, "some values are not doubled")
    expect.gradients(student, lambda values: values + values, values)


@check
def Scale(student, draw):
    """A module with one parameter, ``factor``."""
    module = student.build(3.0)
    start = module.parameters().get("factor")
    module.load({"factor": torch.tensor(2.0, dtype=torch.float64)})
    values = draw.normal(3, 4)
    expect.close(module(values), 2 * values, "the factor is not applied")
    expect.close(start, 3.0, "the factor does not start where it should")
    grads, _ = module.gradients(values)
    expect.close(grads["factor"], values.sum(), "the gradient of the factor is wrong")
'''

MISTAKES = '''"""Wrong and right answers of the lesson for tests."""

import torch
from torch import nn

from autograder.exercise import alternative, mistake


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


@mistake("Scale", hint="The factor is added to the values.")
class Adds(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(start)))

    def forward(self, values):
        return self.factor + values


@mistake("Scale", hint="The start is ignored.")
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


class Course:
    """The files of a course in a folder of its own."""

    def __init__(self, root):
        self.root = root
        self.source = root / "source" / f"{SLUG}.py"
        self.library = root / "attention" / "mini.py"
        self.checks = root / "autograder" / "checks" / "mini.py"
        self.mistakes = root / "autograder" / "mistakes" / "mini.py"
        self.solution = root / "solutions" / SLUG / f"{SLUG}.ipynb"
        self.lesson = root / "lessons" / SLUG / f"{SLUG}.ipynb"

    def write(self):
        """Write all hand-written files."""
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self

    def copy(self, root):
        """A copy in the folder ``root``, with whatever was built."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return Course(root)

    def edit(self, path, old, new):
        """Replace ``old``, which must be there once."""
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{text.count(old)} × {old!r} in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def read(self):
        """The lesson, read."""
        return read(self.source)

    def generated(self):
        """Content by path of everything under solutions/ and lessons/."""
        folders = [self.root / "solutions", self.root / "lessons"]
        return {
            path: path.read_bytes()
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def install(course, patch):
    """Let this process and the kernels that it starts import the course's modules."""
    folders = {
        attention: course.root / "attention",
        checks: course.root / "autograder" / "checks",
        mistakes: course.root / "autograder" / "mistakes",
    }
    for package, folder in folders.items():
        patch.setattr(package, "__path__", [*package.__path__, str(folder)])
        patch.delitem(sys.modules, f"{package.__name__}.mini", raising=False)
        patch.delattr(package, "mini", raising=False)
    patch.setattr(exercise, "_checks", {})
    patch.setattr(exercise, "_answers", {})
    start = course.root / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(START.format(root=str(course.root)))
    patch.setenv("PYTHONPATH", str(start))


def uninstall():
    """Forget the course's modules, so that the next course's are imported afresh."""
    for package in (attention, checks, mistakes):
        sys.modules.pop(f"{package.__name__}.mini", None)
        vars(package).pop("mini", None)
