"""The right answer broken in one place, in every way that a small set of operators allows.

`autograder verify` demands that the checks reject every such mutant.
"""

import ast
import contextlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from autograder.building.gates.mutation_operators import (
    broken_expressions,
    broken_statements,
    parameters_of,
)

MARKER = re.compile(r"^\s*# exercise: ")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One mutant: ``words`` complete 'the results are those of a right answer …'."""

    words: str
    line: int  # in the file
    text: str  # the mutated statement, for those who keep the checks
    target: Callable[..., Any]
    key: str  # names it in a list of equivalents: it does not depend on line numbers


def mutants(target: Callable[..., Any] | None) -> Iterator[Mutant]:
    """Yield every mutant of a function or class of the library, as a Mutant."""
    assert target is not None, "there is no right answer to break"
    source, first = _source(target)
    lines = source.split("\n")
    definition: Any = ast.parse(source).body[0]
    module = ast.Module([definition], [])
    seen = {compile(module, "<mutant>", "exec")}
    for function, start in _written(definition, lines):
        for words, statement in _mutations(definition, function, start):
            made = _made(target, module, definition.name, seen)
            if made is not None:
                text = _short(ast.unparse(statement)) if statement is not None else "(dropped)"
                line = first + (getattr(statement, "lineno", start) or start) - 1
                key = f"{definition.name}: {words}: {text}"
                yield Mutant(words, line, text, made, key)


def _source(target: Callable[..., Any]) -> tuple[str, int]:
    lines, first = inspect.getsourcelines(target)
    return textwrap.dedent("".join(lines)), first


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:119] + "…"


def _written(definition: Any, lines: list[str]) -> Iterator[tuple[Any, int]]:
    """Pairs (function, first line): the parts that the learner writes."""
    inner = definition.body if isinstance(definition, ast.ClassDef) else [definition]
    for function in inner:
        if not isinstance(function, FUNCTION):
            continue
        numbers = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        marked = [number for number in numbers if MARKER.match(lines[number - 1])]
        if marked:
            yield function, marked[0]
        elif function is definition:
            yield function, function.lineno


def _made(
    target: Callable[..., Any], module: ast.Module, name: str, seen: set[CodeType]
) -> Callable[..., Any] | None:
    """What the tree, mutated as it now is, defines in a copy of its module's namespace, or None."""
    namespace = dict(vars(sys.modules[target.__module__]))
    try:
        code = compile(ast.fix_missing_locations(module), "<mutant>", "exec")
        if code in seen:
            return None
        seen.add(code)
        exec(code, namespace)
    except Exception:  # a mutant may be no program at all
        return None
    return namespace[name]


def _mutations(definition: Any, function: Any, start: int) -> Iterator[tuple[str, Any]]:
    """Yield (words, mutated statement) while the definition is so mutated."""
    parents = _parents(definition)
    parameters = parameters_of(function) - {"self"}
    for statement in list(_statements(function, start)):
        for words, variant in broken_statements(statement, function):
            with _replaced(*parents[id(statement)], variant):
                yield words, variant
        for node in list(_own_nodes(statement)):
            for words, variant in broken_expressions(node, parameters):
                with _replaced(*parents[id(node)], variant):
                    yield words, statement


def _statements(function: Any, start: int) -> Iterator[Any]:
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    for node in ast.walk(function):
        inner = isinstance(node, ast.stmt) and node is not function and node.lineno >= start
        if inner and node is not docstring:
            yield node


def _own_nodes(statement: Any) -> Iterator[ast.AST]:
    """The expressions of a statement, not those of statements within it."""
    waiting = [statement]
    while waiting:
        node = waiting.pop(0)
        if node is not statement:
            yield node
        inner = ast.iter_child_nodes(node)
        waiting += [child for child in inner if not isinstance(child, ast.stmt)]


@contextlib.contextmanager
def _replaced(
    parent: ast.AST, field: str, index: int | None, variant: ast.AST | None
) -> Iterator[None]:
    """Put ``variant`` in the place of a node meanwhile; None leaves a statement out."""
    old = getattr(parent, field)
    if variant is not None:  # equal code in the same place is then equal, and no mutant
        ast.copy_location(variant, old if index is None else old[index])
    new: Any = variant
    if index is not None:
        put = [] if variant is None else [variant]
        new = [*old[:index], *put, *old[index + 1 :]] or [ast.Pass()]
    setattr(parent, field, new)
    try:
        yield
    finally:
        setattr(parent, field, old)


def _parents(tree: ast.AST) -> dict[int, tuple[ast.AST, str, int | None]]:
    """For each node, by its id: its parent, the field it stands in, and its index or None."""
    found: dict[int, tuple[ast.AST, str, int | None]] = {}
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                found[id(value)] = (node, field, None)
            elif isinstance(value, list):
                found |= {id(item): (node, field, n) for n, item in enumerate(value)}
    return found
