"""Run a program of a few lines below a student's answer, and below the right one."""

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.checking.asking.questions import Replied
from autograder.explaining.replay import ready
from autograder.grading.notebook.result import clean
from autograder.inside.messages.values import Foreign, leaves
from autograder.sandbox.process import StudentLost
from autograder.sandbox.sandbox import Sandbox

GRADIENT = re.compile(r",(grad_fn=<\w+>|requires_grad=True)")
LINES = 40  # of what a program prints
OWN_SHAPES = ("load", "parameters")  # of these a program prints no value


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

    It is made by ``program.text``: of the course's own words and of numbers, none of a student's.
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


def printed(text: str, stops: str = "") -> str:
    """What a program printed, without what a terminal would obey, and with what it stopped with."""
    lines = clean(text).rstrip().splitlines()
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"… {len(lines) - LINES + 1} more lines"]
    return "\n".join([*lines, *[clean(stops)] * bool(stops)])


def shows(told: str, request: str, reply: Replied | None) -> bool:
    """Whether a program that printed this got the reply that the check got."""
    if reply is None or request in OWN_SHAPES:
        return True
    if reply.kind == "raised":
        return plain(reply.value[1].partition("\n")[0]) in plain(told)
    if any(isinstance(one, Foreign) for one in leaves(reply.value)):
        return True  # no plain value: it is the student's own object that is printed
    texts = (str(reply.value), repr(reply.value))
    return any(plain(printed(one)) in plain(told) for one in texts)


def plain(told: str) -> str:
    """What was printed without white space, and without how a tensor was computed."""
    return GRADIENT.sub("", "".join(told.split()))
