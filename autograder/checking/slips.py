"""The right answer broken in one place, in every way that a small set of operators allows.

It serves twice. `autograder verify` demands that the checks reject every such mutant. And a
failing answer that replies as one of them does is told so, in words that do not give the line away.
"""

import ast
import copy
import functools
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from autograder.checking.operators import broken_expressions, broken_statements, parameters_of

MARKER = re.compile(r"^\s*# exercise: ")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Slip:
    """One mutant: ``words`` complete 'the results are those of a right answer …'."""

    words: str
    line: int  # in the file
    text: str  # the mutated statement, for those who keep the checks
    target: Callable
    key: str  # names it in a list of equivalents: it does not depend on line numbers


def slips(target):
    """Every mutant of a function or class of the library, as a list of Slip."""
    source, first = _source(target)
    lines = source.split("\n")
    (definition,) = ast.parse(source).body
    found, seen = [], {ast.dump(definition)}
    for function, start in _written(definition, lines):
        for words, changed, statement in _mutations(definition, function, start):
            dumped = ast.dump(changed)
            if dumped in seen:
                continue
            seen.add(dumped)
            text = _short(ast.unparse(statement)) if statement is not None else "(dropped)"
            line = first + (getattr(statement, "lineno", start) or start) - 1
            made = _made(target, changed)
            if made is not None:
                key = f"{definition.name}: {words}: {text}"
                found.append(Slip(words, line, text, made, key))
    return found


@functools.lru_cache(maxsize=8)
def slips_of(target):
    """The mutants of ``target``, made once."""
    return tuple(slips(target))


def _source(target):
    lines, first = inspect.getsourcelines(target)
    return "".join(lines), first


def _short(text):
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:119] + "…"


def _written(definition, lines):
    """Pairs (function, first line): the parts that the learner writes."""
    inner = definition.body if isinstance(definition, ast.ClassDef) else [definition]
    for function in inner:
        if not isinstance(function, FUNCTION):
            continue
        numbers = range(function.lineno, function.end_lineno + 1)
        marked = [number for number in numbers if MARKER.match(lines[number - 1])]
        if marked:
            yield function, marked[0]
        elif function is definition:
            yield function, function.lineno


def _made(target, tree):
    """The mutated definition, made in a copy of its module's namespace."""
    module = sys.modules[target.__module__]
    namespace = dict(vars(module))
    try:
        code = compile(ast.fix_missing_locations(ast.Module([tree], [])), "<slip>", "exec")
        exec(code, namespace)
    except Exception:  # a mutant may be no program at all
        return None
    return namespace[tree.name]


def _mutations(definition, function, start):
    """Triples (words, mutated definition, mutated statement)."""
    order = {id(node): place for place, node in enumerate(ast.walk(definition))}
    parameters = parameters_of(function) - {"self"}
    for statement in _statements(function, start):
        for words, variant in broken_statements(statement, function):
            yield words, *_replaced(definition, order[id(statement)], variant, statement)
        for node in _own_nodes(statement):
            for words, variant in broken_expressions(node, parameters):
                yield words, *_replaced(definition, order[id(node)], variant, statement, order)


def _statements(function, start):
    """All statements of the written part, inner ones too."""
    for node in ast.walk(function):
        inner = isinstance(node, ast.stmt) and node is not function and node.lineno >= start
        if inner and not _is_docstring(node, function):
            yield node


def _is_docstring(node, function):
    return node is function.body[0] and ast.get_docstring(function) is not None


def _own_nodes(statement):
    """The expressions of a statement, not those of statements within it."""
    waiting = [statement]
    while waiting:
        node = waiting.pop(0)
        if node is not statement:
            yield node
        inner = ast.iter_child_nodes(node)
        waiting += [child for child in inner if not isinstance(child, ast.stmt)]


def _replaced(definition, place, variant, statement, order=None):
    """A copy of the definition in which the node number ``place`` is replaced by ``variant``."""
    changed = copy.deepcopy(definition)
    nodes = list(ast.walk(changed))
    old = nodes[place]
    new = None if variant is None else copy.deepcopy(variant)
    parent, field, index = _parent(changed, old)
    siblings = getattr(parent, field)
    if index is None:
        setattr(parent, field, new)
    elif new is None:
        del siblings[index]
        if not siblings and isinstance(parent, ast.stmt):
            siblings.append(ast.Pass())
    else:
        siblings[index] = new
    shown = nodes[order[id(statement)]] if order else new
    return changed, shown


def _parent(tree, child):
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if value is child:
                return node, field, None
            if isinstance(value, list):
                for index, item in enumerate(value):
                    if item is child:
                        return node, field, index
    raise LookupError("a node without a parent")
