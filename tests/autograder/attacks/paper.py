"""A hostile submission in the making, and the registry of attacks.

A builder is a short function that takes a ``Paper``, the released notebook with a wrong answer to
every exercise, and adds one trick. Tricks come in four kinds:

- the check is deceived: wrong answers stay wrong and the trick makes them pass;
- ``paper.thief(code)``: the answers are right if and only if ``loot(name)`` finds the solution;
- ``paper.burglar(code)``: the answers are right if and only if ``won()`` got what it must not get;
- the machine is harmed: files, processes and connections carry ``paper.mark``, which the runner
  looks for afterwards.

Everything dangerous is bounded in itself, so that a sandbox that fails harms nobody.
"""

import copy
import textwrap
from dataclasses import dataclass, field

import nbformat

from autograder.grading.classroom import sample_class

BASIC, KERNELS = "00_getting_started", "01_kernel_regression"
DECODING = "13_decoding"
WRONG = "return torch.zeros(2, 2, dtype=torch.float64)"


@dataclass(frozen=True)
class Attack:
    """One trick. ``stock`` is False where it is never run against stock nbgrader.

    ``is_right`` is whether its answers have the right values: they may earn all but the care share.
    """

    name: str
    group: str
    trick: str
    build: object
    lesson: str = BASIC
    stock: bool = True
    is_right: bool = False

    def earned(self, points, most):
        """Whether ``points`` of ``most`` are more than its answers are worth."""
        return points > (0.75 * most if self.is_right else 0)


ATTACKS: dict[str, Attack] = {}


def attack(builder=None, *, lesson=BASIC, stock=True, is_right=False):
    """Register a builder; its name is the attack's, its docstring says what the trick is."""

    def keep(builder):
        group = builder.__module__.rpartition(".")[2]
        if builder.__name__ in ATTACKS:
            raise ValueError(f"two attacks are called {builder.__name__!r}")
        trick = " ".join(builder.__doc__.split())
        known = group, trick, builder, lesson, stock, is_right
        ATTACKS[builder.__name__] = Attack(builder.__name__, *known)
        return builder

    return keep(builder) if builder else keep


@dataclass(frozen=True)
class Traps:
    """Where the runner waits for what an attack must not reach."""

    port: int = 9  # a listener on 127.0.0.1
    knock: int = 10  # the runner tries to connect here
    socket: str = "attack-trap"  # an abstract Unix socket
    course: str = "/nonexistent"
    namespace: str = ""  # the pid namespace of the runner
    secret: str = "attack-secret"  # stands in the grader's environment and in its home folder


@dataclass
class Paper:
    """A submission: the notebook, and what lies beside it."""

    name: str
    lesson: str = BASIC
    traps: Traps = field(default_factory=Traps)
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None  # the notebook file, when it is no notebook
    special: object = None  # makes the notebook file itself: special(path)

    def __post_init__(self):
        self.notebook = sample_class.blank(self.lesson)
        self.solved = sample_class.solved(self.lesson)
        self.mark = f"attack-{self.name}"
        self.answer(WRONG)

    @property
    def cells(self):
        """The cells of the notebook."""
        return self.notebook.cells

    @property
    def answers(self):
        """The cells of the exercises."""
        return [cell for cell in self.cells if _about(cell).get("solution")]

    @property
    def tests(self):
        """The graded cells."""
        return [cell for cell in self.cells if _about(cell).get("grade")]

    @property
    def right(self):
        """The source of the right answers, by exercise."""
        return {
            _about(cell)["grade_id"]: cell.source
            for cell in self.solved.cells
            if _about(cell).get("solution")
        }

    def answer(self, body):
        """Write ``body`` into every function, and into the forward of every class."""
        for cell in self.answers:
            name = _about(cell)["grade_id"]
            text = textwrap.indent(self._filled(body).replace("@NAME@", name), "    ")
            if "class " not in self.right[name]:
                cell.source = f"import torch\n\n\ndef {name}(*inputs, **named):\n{text}"
                continue
            cell.source = (
                f"import torch\n\n\nclass {name}(torch.nn.Module):\n"
                "    def __init__(self, *inputs):\n        super().__init__()\n"
                "        self.log_bandwidth = torch.nn.Parameter(torch.tensor(0.0))\n\n"
                "    def forward(self, *inputs, **named):\n" + textwrap.indent(text, "    ")
            )

    def first(self, code):
        """Put a code cell behind the title."""
        self.cells.insert(1, nbformat.v4.new_code_cell(self._filled(code)))

    def before_tests(self, code):
        """Put a code cell before the first graded cell, after the imports."""
        place = self.cells.index(self.tests[0])
        self.cells.insert(place, nbformat.v4.new_code_cell(self._filled(code)))

    def nearly(self):
        """Answers of the right shape and dtype whose values and gradients are wrong.

        They refuse nothing: a right refusal may be a stage, and would earn its points.
        """
        self._know_the_right_answers()
        call = "    return honest['@NAME@'](*inputs, **named) * -2 + 1"
        self.answer(f"try:\n{call}\nexcept ValueError:\n    {WRONG}")

    def thief(self, code):
        """Answer with what ``loot(name)`` of ``code`` finds, and wrongly where it finds nothing."""
        self.answer(f"real = loot('@NAME@')\nif real is None:\n    {WRONG}\n" + _USE_REAL)
        self.first(_THIEF + textwrap.dedent(code))

    def burglar(self, code):
        """Answer rightly if ``won()`` of ``code`` is true, which a sandbox must prevent."""
        self.answer(
            f"if not has_won():\n    {WRONG}\nreal = honest['@NAME@']\n" + _USE_REAL,
        )
        self.first(_BURGLAR + textwrap.dedent(code))
        self._know_the_right_answers()

    def copy_of(self, cell):
        """A copy of ``cell`` with an id of its own."""
        twin = copy.deepcopy(cell)
        twin["id"] = nbformat.v4.new_code_cell().id
        return twin

    def write(self, folder):
        """Write the submission into ``folder`` (…/submitted/STUDENT/LESSON)."""
        folder.mkdir(parents=True)
        path = folder / f"{self.lesson}.ipynb"
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        for name, target in self.links.items():
            (folder / name).symlink_to(self._filled(target))
        if self.special is not None:
            self.special(path)
        elif self.raw is not None:
            path.write_bytes(self.raw)
        else:
            nbformat.write(self.notebook, path)
        return path

    def _know_the_right_answers(self):
        text = "\n\n".join(
            ["import math\nimport torch\nfrom torch import nn", *self.right.values()]
        )
        if self.lesson == KERNELS:
            text = "from attention.getting_started import softmax, weighted_average\n" + text
        self.first(f"honest = {{'__name__': '__main__'}}\nexec({text!r}, honest)")

    def _filled(self, code):
        words = {
            "@MARK@": self.mark,
            "@LESSON@": self.lesson,
            "@MODULE@": self.lesson.partition("_")[2],
            **{f"@{name.upper()}@": str(value) for name, value in vars(self.traps).items()},
        }
        code = textwrap.dedent(code).strip("\n")
        for word, value in words.items():
            code = code.replace(word, value)
        return code


_USE_REAL = """
if isinstance(real, type):
    if not hasattr(self, "real"):
        object.__setattr__(self, "real", real(1.0))
    self.real.log_bandwidth = self.log_bandwidth
    return self.real(*inputs, **named)
return real(*inputs, **named)
"""

_THIEF = """
import ast
import os
import sys
import time

import torch


def bring_to_life(text, name):
    \"\"\"Find the definition of `name` in Python or in a notebook's JSON, and execute it.\"\"\"
    if f"def {name}(" not in text and f"class {name}" not in text:
        return None  # to parse it would take most of the time there is
    if text.lstrip().startswith("{"):
        import json

        try:
            cells = json.loads(text).get("cells", [])
        except ValueError:
            return None
        found = (bring_to_life("".join(cell["source"]), name) for cell in cells)
        return next((one for one in found if one), None)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            text = ast.unparse(node)
            if "NotImplementedError" in text or "(student" in text or "(*inputs" in text:
                continue  # a stub, a check, or somebody's wrong answer
            space = {"torch": torch, "nn": torch.nn, "__name__": "__main__"}
            exec("import math", space)
            exec(compile(ast.Module([node], []), "<stolen>", "exec"), space)
            return space[name]
    return None


"""

_BURGLAR = """
import ctypes
import os
import sys

verdict = []


def has_won():
    \"\"\"Try once; whoever gets in answers rightly.\"\"\"
    if not verdict:
        try:
            verdict.append(bool(won()))
        except Exception as error:
            print("kept out:", type(error).__name__, error)
            verdict.append(False)
    return verdict[0]


"""


def _about(cell):
    return cell.metadata.get("nbgrader", {})
