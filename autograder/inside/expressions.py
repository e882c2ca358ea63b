"""A program whose every expression can be looked at, or given another value.

A function or class is made once more from its own text, with each expression wrapped in a call that
notes its value. In the place of one, another value can be put: the rest goes on with that.
"""

import ast
import inspect
import linecache
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

from autograder.inside.messages.values import Foreign, copied, leaves, plain

WRAPPED = "__other__({0}) if __is_put__({0}) else __noted__({0}, ...)"
MOST_PASSES = 200  # values of one expression in one request: of a longer loop none is kept
MOST_NUMBERS = 4096  # in one value
MOST_STEPS = 20_000  # evaluations in one request: a value that was put may make a loop endless
UNTOUCHED = (ast.pattern, ast.arguments, ast.JoinedStr, ast.Await, ast.Yield, ast.YieldFrom)
NO_VALUE = (ast.Slice, ast.Starred, ast.Lambda, ast.GeneratorExp)
NO_PART = ("annotation", "returns", "decorator_list", "type_params")
Values = Iterable[list[Any] | None]  # of an expression: its passes in each request that runs


class TooLong(BaseException):
    """A program takes more steps than any right answer; no `except Exception` stops it."""


class Watch:
    """What happens at the expressions of a program, request by request.

    With ``notes`` all their values are kept. The values ``put`` stand at the expressions of a
    ``place``; where they are None, these have their own.
    """

    def __init__(self, notes: bool = False, place: Iterable[int] = (), put: Values = ()) -> None:
        self._notes, self._noted = notes, [dict[int, list[Any]]()]  # the first as it is defined
        self._place, self._put = set(place), iter(put)
        self.taken, self._most = 0, MOST_STEPS
        self._now: list[Any] | None = None

    def turn(self) -> None:
        """The next request begins."""
        self._now, self._passes = next(self._put, None), Counter[int]()
        self._most = self.taken + MOST_STEPS
        self._noted.append({})

    def is_put(self, number: int) -> bool:
        """Whether an expression, whose turn it is, has another value in this request."""
        self.taken += 1
        if self.taken > self._most:
            raise TooLong
        return self._now is not None and number in self._place

    def other(self, number: int) -> Any:
        """The value that is put in the place of an expression: the last one, from there on."""
        self._passes[number] += 1
        return copied(self._now and self._now[: self._passes[number]][-1])

    def noted(self, number: int, own: Any) -> Any:
        """The value of an expression."""
        if self._notes:
            passes = self._noted[-1].setdefault(number, [])
            if len(passes) <= MOST_PASSES:
                passes.append(kept(own) if len(passes) < MOST_PASSES else Foreign("more"))
        return own

    def values(self) -> list[dict[int, list[Any] | None]]:
        """What was noted in each request, by expression; None for what is too much or not plain."""
        return [
            {n: None if Foreign in map(type, x) else x for n, x in one.items()}
            for one in self._noted[1:]
        ]


def kept(value: Any) -> Any:
    """A plain copy of a value, or a Foreign where it is none or too large."""
    if type(value) is range:
        value = list(value[: MOST_NUMBERS + 1])
    held = sum(one.numel() if isinstance(one, torch.Tensor) else 1 for one in leaves(value))
    found = plain(value) if held <= MOST_NUMBERS else Foreign("many numbers")
    return Foreign("objects") if Foreign in map(type, leaves(found)) else found


class Expression(NamedTuple):
    """Where an expression stands in its file or cell, and its text."""

    line: int
    text: str
    within: str  # of a constant: the expression around it


class Program:
    """The function or class ``target`` and what it uses of its own file or cell.

    Raises ValueError where its text is not there, or makes something else.
    """

    def __init__(self, target: Any) -> None:
        methods = list(vars(target).values()) if inspect.isclass(target) else [target]
        own = next((one for one in map(_function, methods) if one is not None), None)
        if own is None or own.__code__.co_freevars and not inspect.isclass(target):
            raise ValueError("it is no function that stands by itself")
        self._name, self._file = target.__name__, own.__code__.co_filename
        self._globals: dict[str, Any] = own.__globals__
        tree = ast.parse("".join(linecache.getlines(self._file)))
        self.expressions: list[Expression] = []
        module = ast.Module(list(self._definitions(tree, own.__code__.co_firstlineno)), [])
        module.body = [self._wrapped(one) for one in module.body]
        self._code = compile(ast.fix_missing_locations(module), self._file, "exec")

    def places(self, noted: Iterable[int]) -> list[tuple[int, ...]]:
        """What may be exchanged: an expression, or all that have one text.

        In the order in which they were ``noted``, as each has its value; then those that were not.
        """
        order = list(dict.fromkeys([*noted, *range(len(self.expressions))]))
        alike = dict[str, tuple[int, ...]]()
        for number in order:
            text = self.expressions[number].text
            alike[text] = (*alike.get(text, ()), number)
        found = {(n,) for numbers in alike.values() for n in numbers} | {*alike.values()}
        return sorted(found, key=lambda one: (order.index(one[-1]), len(one)))

    def made(self, watch: Watch) -> Any:
        """The target once more, in a copy of its namespace, with ``watch`` at its expressions."""
        calls = {"__is_put__": watch.is_put, "__other__": watch.other, "__noted__": watch.noted}
        namespace = {**self._globals, **calls}
        exec(self._code, namespace)
        return namespace[self._name]

    def _definitions(self, tree: ast.Module, line: int) -> Iterator[ast.stmt]:
        """Those that make the target, in their order: its own, and those of what it names."""
        known: dict[str, Any] = {
            one.name: one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)
        }
        own = known.get(self._name)
        if own is None or not own.lineno - len(own.decorator_list) <= line <= own.end_lineno:
            raise ValueError("its text is another one")
        own.decorator_list = []  # of a stored answer the one that registers it
        waiting, needed = [self._name], set[str]()
        while waiting:
            needed.add(name := waiting.pop())
            names = {one.id for one in ast.walk(known[name]) if isinstance(one, ast.Name)}
            waiting += [one for one in names - needed if one in known and self._is_here(one)]
        yield from (one for name, one in known.items() if name in needed)

    def _is_here(self, name: str) -> bool:
        """Whether a name stands for what this file or cell defines."""
        value = self._globals.get(name)
        found = map(_function, vars(value).values() if inspect.isclass(value) else [value])
        return any(one is not None and one.__code__.co_filename == self._file for one in found)

    def _wrapped(self, node: Any, around: str = "") -> Any:
        """The node with each expression in it wrapped."""
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, UNTOUCHED) or is_text:
            return node
        number, text, has_value = len(self.expressions), around, self._has_value(node)
        if has_value:
            text = ast.unparse(node)
            within = around if isinstance(node, ast.Constant) or _is_signed(node) else ""
            self.expressions.append(Expression(node.lineno, text, within))
        for field, value in () if _is_signed(node) else ast.iter_fields(node):
            if field == "func":  # of a method the object alone is a value
                if isinstance(value, ast.Attribute):
                    value.value = self._wrapped(value.value, text)
            elif isinstance(value, list) and field not in NO_PART:
                found = [self._wrapped(x, text) if isinstance(x, ast.AST) else x for x in value]
                setattr(node, field, found)
            elif isinstance(value, ast.AST) and field not in NO_PART:
                setattr(node, field, self._wrapped(value, text))
        if not has_value:
            return node
        whole: Any = ast.parse(WRAPPED.format(number), mode="eval").body
        whole.orelse.args[1] = node
        return whole

    def _has_value(self, node: Any) -> bool:
        """Whether a node stands for a value that can be exchanged."""
        if not isinstance(node, ast.expr) or isinstance(node, NO_VALUE):
            return False
        if isinstance(node, ast.Name):
            module = isinstance(self._globals.get(node.id), types.ModuleType)
            return isinstance(node.ctx, ast.Load) and node.id != "self" and not module
        if isinstance(node, ast.Constant):
            return isinstance(node.value, bool | int | float)  # a text may be half a solution
        if any(isinstance(one, ast.Slice | ast.Starred) for one in getattr(node, "elts", ())):
            return False
        called = getattr(getattr(node, "func", None), "id", "")
        return called != "super" and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _function(value: Any) -> Any:
    """The function that a method or property stands for; None where it is none."""
    value = getattr(value, "__func__", getattr(value, "fget", value))
    value = inspect.unwrap(value) if callable(value) else value
    return value if isinstance(value, types.FunctionType) else None


def _is_signed(node: Any) -> bool:
    """Whether this is a number with a sign: one expression, not two."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
