"""Which experiments there are, and one point of one of them, run in a process of its own."""

import importlib
import inspect
import json
import pkgutil
from types import SimpleNamespace
from typing import Any

import torch

import attention.experiments
from attention.experiments.recorded import Experiment
from attention.provided.files import ROOT

# Modules that take pieces of several lessons: where the translator grows, and of lessons 17 and 21.
ACROSS_LESSONS = ("translator_so_far", "induction", "low_rank")
TO_QUESTIONS = "questions"  # stands for a lesson: answers to open questions of all of them


def lessons() -> dict[str, Any]:
    """{name of a lesson's module: the module with its experiments}, in the course's order.

    The last one, "questions", holds those for answers to open questions, of all lessons.
    """
    found = {info.name for info in pkgutil.iter_modules(attention.experiments.__path__)}
    order = [name for name in lessons_of_the_course() if name in found]
    modules: dict[str, Any] = {
        name: importlib.import_module(f"attention.experiments.{name}")
        for name in [*order, *ACROSS_LESSONS]
    }
    of_answers: dict[str, Experiment] = {}
    for module in modules.values():
        of_answers |= getattr(module, "ANSWERS_TO_QUESTIONS", {})
    return modules | {TO_QUESTIONS: SimpleNamespace(EXPERIMENTS=of_answers)}


def lessons_of_the_course() -> list[str]:
    """Names of all lessons' modules, in the course's order."""
    return [path.stem[3:] for path in sorted((ROOT / "source").glob("[0-9][0-9]_*.py"))]


def as_stored(point: Any) -> Any:
    """A point or a result as the file will hold it."""
    return json.loads(json.dumps(point))


def run_point(lesson: str, name: str, point: dict[str, Any]) -> Any:
    """The result of one point, as the file will hold it."""
    torch.set_num_threads(1)
    one = lessons()[lesson].EXPERIMENTS[name]
    return as_stored(one.run(**point, **pieces_of_its_lesson(one.run, point)))


def pieces_of_its_lesson(run: Any, point: dict[str, Any]) -> dict[str, Any]:
    """What a run asks for besides the point: the library's pieces of its lesson, by their names."""
    name = run.__module__.rpartition(".")[2]
    course = lessons_of_the_course()
    homes = [name] if name in course else course  # a module that is no lesson's may need any
    modules = [importlib.import_module(f"attention.{home}") for home in homes]
    wanted = inspect.signature(run).parameters.keys() - point.keys()
    return {
        piece: getattr(home, piece) for home in modules for piece in wanted if hasattr(home, piece)
    }
