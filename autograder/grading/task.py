"""The unit of work, the same on this machine and on a cluster: one assembled notebook."""

from dataclasses import dataclass

from autograder.grading.result import Exercise
from autograder.inside.limits import DEFAULT, Limits


@dataclass(frozen=True)
class Task:
    """An assembled notebook, as JSON text, and how to run it."""

    lesson: str
    notebook: str
    sandbox: str = "required"
    limits: Limits = DEFAULT
    secrets: tuple[str, ...] = ()  # paths of the class's data, which no student's code may see


@dataclass(frozen=True)
class Graded:
    """The notebook with its outputs, as JSON text, its exercises, and how it was graded."""

    notebook: str
    exercises: list[Exercise]
    seconds: float
    sandbox: str = ""  # 'bubblewrap' or 'none'
