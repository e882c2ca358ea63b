"""A hostile submission in the making, and the registry of attacks.

A ``Paper`` is the released notebook with a wrong answer to every exercise, to which an attack adds
a trick. Most are told as code (``attacks``), those that change the notebook itself are functions of
a paper (``attack``). Tricks come in four kinds:

- the check is deceived: wrong answers stay wrong and the trick makes them pass;
- ``thief``: the answers are right if and only if ``loot(name)`` of the code finds the solution;
- ``burglar``: the answers are right if and only if ``won()`` of the code got what it must not get;
- the machine is harmed: files, processes and connections carry @MARK@, which the runner looks for
  afterwards.

Everything dangerous is bounded in itself, so that a sandbox that fails harms nobody.
"""

import copy
import re
import textwrap
from dataclasses import dataclass, field

import nbformat

from autograder.grading.classroom import sample_class

BASIC, KERNELS = "00_getting_started", "01_kernel_regression"
DECODING = "13_decoding"
WRONG = "return torch.zeros(2, 2, dtype=torch.float64)"


@dataclass(frozen=True)
class Attack:
    """One trick."""

    name: str
    group: str
    build: object
    lesson: str = BASIC


ATTACKS: dict[str, Attack] = {}


def attack(builder=None, **about):
    """Register a function that adds the trick of its name to a Paper; ``about``: see Attack."""
    if builder is None:
        return lambda builder: attack(builder, **about)
    register(builder.__name__, builder.__module__, builder, **about)
    return builder


def attacks(module, place, texts, prelude="", **about):
    """Register tricks that are told as code, {name: code}; ``about``: see Attack.

    ``place`` is the method of Paper that gets the code, up to a line ``# %% PLACE``, from which
    another one gets it. Before all else comes a cell with the tools below and the ``prelude``.
    """
    for name, text in texts.items():

        def build(paper, text=text):
            first, *others = re.split(r"^ *# %% (.*)\n", text, flags=re.MULTILINE)
            for where, code in [(place, first), *zip(others[::2], others[1::2], strict=True)]:
                getattr(paper, where)(code)
            paper.first(TOOLS + textwrap.dedent(prelude))

        register(name, module, build, **about)


def register(name, module, build, **about):
    """Register a trick of this name, which ``build(paper)`` adds; ``about``: see Attack."""
    if name in ATTACKS:
        raise ValueError(f"two attacks are called {name!r}")
    ATTACKS[name] = Attack(name, module.rpartition(".")[2], build, **about)


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

    def nearly(self, code=""):
        """Answers of the right shape and dtype whose values and gradients are wrong; then ``code``.

        They refuse nothing: a right refusal may be a stage, and would earn its points. A function
        ``spoilt``, where there is one, has the last word.
        """
        self._know_the_right_answers()
        call = "    result = honest['@NAME@'](*inputs, **named) * -2 + 1"
        self.answer(
            f"try:\n{call}\nexcept ValueError:\n    {WRONG}\n"
            "return globals().get('spoilt', lambda result: result)(result)"
        )
        self.first(code)

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

    def copy_of(self, cell, **changes):
        """A copy of ``cell`` with an id of its own, and changed."""
        twin = copy.deepcopy(cell)
        twin.update(id=nbformat.v4.new_code_cell().id, **changes)
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


# What every trick that is told as code may use; the first cell of its notebook.
TOOLS = """
import ctypes, gc, glob, itertools, mmap, os, resource
import signal, socket, stat, sys, tempfile, threading, time

import torch

libc = ctypes.CDLL(None, use_errno=True)

def name_it():
    \"\"\"Call this process by the mark, by which the runner finds it.\"\"\"
    with open("/proc/self/comm", "w") as stream:
        stream.write("@MARK@"[:15])

def any_of(attempt, choices):
    \"\"\"Whether the attempt succeeds with one of the choices; what is refused raises.\"\"\"
    for one in choices:
        try:
            if attempt(one) is not False:
                return True
        except Exception:
            pass
    return False

def each(action, choices):
    \"\"\"Do it with every one of the choices, whatever is refused.\"\"\"
    for one in choices:
        any_of(action, [one])

def opened(names, mode):
    return any_of(lambda name: os.close(os.open(name, mode)), names)

def in_a_child(attempt):
    \"\"\"Whether the attempt succeeds in a process of its own, which it may spoil.\"\"\"
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        os._exit(0 if attempt() else 1)
    finally:
        os._exit(1)
"""

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
        return first_of(("".join(cell["source"]) for cell in cells), name)
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


def files(roots, endings, seconds=6.0, largest=2_000_000):
    stop = time.monotonic() + seconds
    for root in roots:
        for folder, below, names in os.walk(root):
            below[:] = [
                name for name in below
                if name not in ("proc", "sys", "torch", "numpy", "nvidia", "node_modules", "share")
            ]
            for name in names:
                if time.monotonic() > stop:
                    return
                path = os.path.join(folder, name)
                try:
                    if name.endswith(endings) and os.path.getsize(path) < largest:
                        with open(path, "rb") as stream:
                            yield path, stream.read()
                except OSError:
                    pass


def roots():
    import autograder
    above = os.path.dirname(os.path.dirname(os.path.abspath(autograder.__file__ or "")))
    return [above, "@COURSE@", os.path.dirname(os.getcwd()), os.path.expanduser("~")]


def first_of(texts, name):
    return next(filter(None, (bring_to_life(text, name) for text in texts)), None)


def look(roots, endings, name, read=lambda path, data: data.decode("utf-8", "replace")):
    return first_of((read(path, data) for path, data in files(roots, endings)), name)


"""

_BURGLAR = """
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
