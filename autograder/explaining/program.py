"""A call as a program of a few lines, to be pasted below the answer's cell; and what it prints."""

import contextlib
import dataclasses
import io
import pprint
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from autograder.checking.asking.questions import Question
from autograder.explaining.replay import ready
from autograder.grading.notebook.result import clean
from autograder.inside.messages.values import leaves, mapped
from autograder.inside.stand_ins import KEYWORD, STAND_IN
from autograder.sandbox.process import StudentLost
from autograder.sandbox.sandbox import Sandbox

MOST = 250  # numbers that are written out
WIDTH = 88  # characters of a line
DIGITS = 12  # of each number, where fewer do not tell two results apart
LINES = 40  # of what a program prints
GRADIENT = re.compile(r",(grad_fn=<\w+>|requires_grad=True)")
LOAD = "for weight, value in {}.items():\n    built.get_parameter(weight).data = value"
SHAPES = "{name: tuple(one.shape) for name, one in built.named_parameters()}"


def text(name: str, questions: Sequence[Question], question: Question, digits: int = 0) -> str:
    """The program that puts one of ``questions`` to the answer called ``name``, and prints a reply.

    digits  so many are printed of each number, if not 0

    '' where Python alone cannot ask it (on another device, for gradients, of several objects in
    turn, with parts that stand in), or where it takes more numbers than anybody reads.
    """
    needed = [*_before(questions, question), question]
    if question.request == "load":  # no weight was read where their names or shapes are wrong
        needed[-1] = dataclasses.replace(question, details=({},))
    if size(needed) > MOST or not all(map(_is_plain, needed)):
        return ""
    lines = [_line(name, one) for one in needed]
    lines[-1] = f"print({SHAPES if question.request == 'load' else lines[-1]})"
    if digits:
        lines.insert(0, f"torch.set_printoptions(precision={digits})")
    if any("torch." in one for one in lines):
        lines.insert(0, "import torch\n")
    return "\n".join(lines) + "\n"


def remark(place: str) -> str:
    """Where the answer fails, as the first lines of a program."""
    return textwrap.indent(textwrap.fill(clean(place), WIDTH - 2), "# ") + "\n" * bool(place)


def size(questions: Sequence[Question]) -> int:
    """How many numbers and words they hold."""
    held = leaves([list(one.details) for one in questions if one.request != "parameters"])
    return sum(one.numel() if isinstance(one, torch.Tensor) else 1 for one in held)


def by_seed(name: str, seed: int) -> str:
    """The program that has the check itself ask the answer again."""
    return (
        "import os\n\n"
        f'os.environ["AUTOGRADER_SEED"] = "{seed}"\n'
        "from autograder import check\n\n"
        f'check.preview("{name}", {name})\n'
    )


def by_student(program: str, sandbox: Sandbox, cells: Sequence[str]) -> str:
    """What ``program`` prints in the sandbox behind the student's ``cells``, and how it stops."""
    try:
        outputs = ready(sandbox, cells).run(program)
    except StudentLost as lost:
        return f"It had to be stopped: {lost}."
    error = outputs.get("error")
    stops = f"{error['name']}: {error['message']}".partition("\n")[0] if error else ""
    return printed(outputs["stdout"], stops)


def by_library(program: str, name: str, target: Callable[..., Any]) -> str:
    """What ``program`` prints where ``name`` is the right answer, in this process.

    It is made by ``text``: of the course's own words and of numbers, none of a student's.
    """
    out, stops = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__", name: target})
    except Exception as error:
        stops = f"{type(error).__name__}: {error}".partition("\n")[0]
    finally:
        torch.set_printoptions(profile="default")
    return printed(out.getvalue(), stops)


def printed(told: str, stops: str = "") -> str:
    """What a program printed, without what a terminal would obey, and with what it stopped with."""
    lines = clean(told).rstrip().splitlines()
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"… {len(lines) - LINES + 1} more lines"]
    return "\n".join([*lines, *[clean(stops)] * bool(stops)])


def plain(told: str) -> str:
    """What was printed without white space, and without how a tensor was computed."""
    return GRADIENT.sub("", "".join(told.split()))


def _before(questions: Sequence[Question], question: Question) -> list[Question]:
    """What has to come before a question to an object: how it was built, and its weights."""
    found = []
    for one in questions:
        if one is question:
            break
        own = one.built if one.request == "build" else one.handle
        if question.handle and own == question.handle and one.request in ("build", "load", "train"):
            found.append(one)
    return found


def _is_plain(one: Question) -> bool:
    keys = _keys(list(one.details)) & {KEYWORD, STAND_IN}
    return not keys and one.probe in ("", "float32") and one.request != "gradients"


def _keys(value: Any) -> set[str]:
    """All keys of the dicts in a plain value."""
    if isinstance(value, dict):
        return {*value, *_keys(list(value.values()))}
    if isinstance(value, list | tuple):
        return {key for item in value for key in _keys(item)}
    return set()


def _line(name: str, one: Question) -> str:
    """The line that puts a question; of weights that do not fit, that shows what there are."""
    if one.request == "build":
        return f"built = {_called(name, *one.details)}"
    if one.request == "load":
        return LOAD.format(written(one.details[0]))
    if one.request == "train":
        return f"built.train({one.details[0]})"
    if one.request == "parameters":
        return "dict(built.named_parameters())"
    return _called("built" if one.handle else name, *one.details[:2])


def _called(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    given = [written(item) for item in args]
    given += [f"{key}={written(item)}" for key, item in kwargs.items()]
    line = ", ".join(given)
    if len(line) > 60 or "\n" in line:
        line = textwrap.indent("".join(f"{one},\n" for one in given), "    ")
        line = f"\n{line}"
    return f"{name}({line})"


class _Code(str):
    """Text that stands for itself in what pprint writes."""

    __repr__ = str.__str__


def written(value: Any) -> str:
    """The Python text of a plain value: tensors with all their digits, so nothing is rounded."""
    return pprint.pformat(mapped(_code, value), width=WIDTH, compact=True, sort_dicts=False)


def _code(value: Any) -> Any:
    """A value, or what stands for it: PyTorch's name of a number, and what makes a tensor."""
    if isinstance(value, torch.Tensor):
        # As short as they can be in their own precision; tolist gives the digits of float64.
        short = value.dtype == torch.float32
        numbers = value.flatten().tolist() if not value.numel() else value.tolist()
        if short:
            numbers = mapped(lambda one: float(str(numpy.float32(one))), numbers)
        shape = f".reshape{tuple(value.shape)}" if not value.numel() else ""
        return _Code(f"torch.tensor({written(numbers)}, dtype={value.dtype}){shape}")
    if isinstance(value, float) and (value != value or value in (torch.inf, -torch.inf)):
        return _Code(repr(value).replace("inf", "torch.inf").replace("nan", "torch.nan"))
    return value
