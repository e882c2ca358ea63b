"""Which stored answers can stand in a notebook as they are."""

import ast
import functools
import importlib
import inspect

from autograder.checking.toolbox import registry
from autograder.grading.classroom.sample_class import cell_of


def is_written_out(answer: registry.Answer) -> bool:
    """Whether the answer stands in its module as it is, so that a notebook can hold it.

    Not so if a function made it there, or if it is made from the library's answer, which a notebook
    lacks.
    """
    if "<locals>" in answer.target.__qualname__:
        return False
    nodes = [*ast.walk(ast.parse(cell_of(answer)))]
    names = (getattr(node, "id", "") for node in nodes)
    bases = (getattr(base, "id", "") for node in nodes for base in getattr(node, "bases", ()))
    return answer.exercise not in bases and _renamed(answer.target.__module__).isdisjoint(names)


@functools.cache
def _renamed(module: str) -> frozenset[str]:
    """What a module of stored answers calls otherwise of what it imports of its lesson."""
    given = "attention." + module.rpartition(".")[2]
    body = ast.parse(inspect.getsource(importlib.import_module(module))).body
    return frozenset(
        alias.asname
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module == given
        for alias in node.names
        if alias.asname and alias.asname != alias.name
    )
