"""A program whose every expression can be looked at, or given another value.

A function or class is made once more from its own text, with each expression wrapped in a call that
notes its value. In the place of one, another value can be put: the rest goes on with that.
"""

import ast
import inspect
import linecache
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from autograder.inside.messages.values import Foreign, leaves, plain

AT, PUT = "__value_at__", "__is_put__"  # what the wrapped program calls
MOST_PASSES = 200  # values of one expression in one request: of a longer loop none is kept
MOST_NUMBERS = 4096  # in one value
MOST_STEPS = 20_000  # evaluations in one request: a value that was put may make a loop endless
UNTOUCHED = (ast.pattern, ast.arguments, ast.JoinedStr, ast.Await, ast.Yield, ast.YieldFrom)
NO_VALUE = (ast.Slice, ast.Starred, ast.Lambda, ast.GeneratorExp)
Value = Callable[[int], Any] | None  # that of a pass; None where the expression keeps its own


class TooLong(BaseException):
    """A program takes more steps than any right answer; no `except Exception` stops it."""


class Watch:
    """What happens at the expressions of a program, request by request.

    With ``notes`` all their values are kept. ``put`` says for each request what stands in the place
    of the exchanged expression.
    """

    def __init__(self, notes: bool = False, put: Iterable[Value] = ()) -> None:
        self._notes, self._noted = notes, list[dict[int, list[Any]]]()
        self.begin(put)

    def begin(self, put: Iterable[Value]) -> None:
        """From here on, other values are put."""
        self._put, self.taken, self._most = iter(put), 0, MOST_STEPS
        self._now: Value = None

    def turn(self) -> None:
        """The next request begins."""
        self._now, self._passes = next(self._put, None), dict[int, int]()
        self._most = self.taken + MOST_STEPS
        self._noted.append({})

    def is_put(self) -> bool:
        """Whether the exchanged expression has another value in this request."""
        return self._now is not None

    def at(self, number: int, *own: Any) -> Any:
        """The value of an expression, which is noted; without ``own`` the one that was put."""
        self.taken += 1
        if self.taken > self._most:
            raise TooLong
        if not own and self._now is not None:
            self._passes[number] = self._passes.get(number, -1) + 1
            return self._now(self._passes[number])
        if self._notes:
            passes = self._noted[-1].setdefault(number, [])
            if len(passes) <= MOST_PASSES:
                passes.append(kept(own[0]))
        return own[0]

    def values(self) -> list[dict[int, list[Any] | None]]:
        """What was noted in each request, by expression; None for what is too much or not plain."""

        def whole(passes: list[Any]) -> bool:
            return len(passes) <= MOST_PASSES and not any(type(one) is Foreign for one in passes)

        return [{n: x if whole(x) else None for n, x in one.items()} for one in self._noted]


def kept(value: Any) -> Any:
    """A plain copy of a value, or a Foreign where it is none or too large."""
    if type(value) is range:
        value = list(value[: MOST_NUMBERS + 1])
    if not isinstance(value, torch.Tensor | list | tuple | bool | int | float | str | None):
        return Foreign("an object")
    held = sum(one.numel() if isinstance(one, torch.Tensor) else 1 for one in leaves(value))
    found = plain(value) if held <= MOST_NUMBERS else Foreign("many numbers")
    foreign = any(type(one) is Foreign for one in leaves(found))
    return Foreign("an object") if foreign else found


class Expression(NamedTuple):
    """Where an expression stands in its file or cell, and its text."""

    line: int
    text: str
    within: str  # of a constant: the expression around it
    is_name: bool


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
        text = "".join(linecache.getlines(self._file))
        try:
            tree = ast.parse(text)
        except (SyntaxError, RecursionError) as error:
            raise ValueError(str(error)) from None
        self.expressions: list[Expression] = []
        self._calls: list[ast.Call] = []
        self._module = ast.Module(list(self._definitions(tree, own.__code__.co_firstlineno)), [])
        for definition in self._module.body:
            for function in _functions(definition):
                function.body = [self._wrapped(one) for one in function.body]
        ast.fix_missing_locations(self._module)

    def places(self, noted: Iterable[int]) -> list[tuple[int, ...]]:
        """What may be exchanged: an expression, or all that have one text.

        In the order in which they were ``noted``, as each has its value; then those that were not.
        """
        order = list(dict.fromkeys([*noted, *range(len(self.expressions))]))
        rank = {number: place for place, number in enumerate(order)}
        alike = dict[str, tuple[int, ...]]()
        for number, one in enumerate(self.expressions):
            alike[one.text] = (*alike.get(one.text, ()), number)
        several = [numbers for numbers in alike.values() if len(numbers) > 1]
        single = [(number,) for number in range(len(self.expressions))]
        return sorted(single + several, key=lambda one: (max(rank[n] for n in one), len(one)))

    def is_constant(self, place: Sequence[int]) -> bool:
        """Whether a number of the text stands at a place."""
        return bool(self.expressions[place[0]].within)

    def about(self, place: Sequence[int]) -> dict[str, Any]:
        """What is said of a place."""
        first, lines = self.expressions[place[0]], {self.expressions[one].line for one in place}
        within = first.within if len(place) == 1 else ""
        return {"place": list(place), "lines": sorted(lines), "text": first.text, "within": within}

    def made(self, watch: Watch, exchanged: Sequence[int] = ()) -> Any:
        """The target once more, in a copy of its namespace, with ``watch`` at its expressions."""
        namespace = {**self._globals, AT: watch.at, PUT: watch.is_put}
        calls = [self._calls[number] for number in exchanged]
        before = [one.args for one in calls]
        for call in calls:  # the expression itself is not computed where a value was put
            number, value = call.args
            put, own = ast.Tuple([], ast.Load()), ast.Tuple([value], ast.Load())
            test = ast.Call(ast.Name(PUT, ast.Load()), [], [])
            call.args = [number, ast.Starred(ast.IfExp(test, put, own), ast.Load())]
            ast.fix_missing_locations(call)
        try:
            exec(compile(self._module, self._file, "exec"), namespace)
        finally:
            for call, args in zip(calls, before, strict=True):
                call.args = args
        return namespace[self._name]

    def _definitions(self, tree: ast.Module, line: int) -> Iterator[ast.stmt]:
        """Those that make the target, in their order: its own, and those of what it names."""
        known: dict[str, Any] = {
            one.name: one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)
        }
        own = known.get(self._name)
        if own is None or not own.lineno - len(own.decorator_list) <= line <= own.end_lineno:
            raise ValueError("its text is another one")
        waiting, needed = [self._name], set[str]()
        while waiting:
            needed.add(name := waiting.pop())
            names = {one.id for one in ast.walk(known[name]) if isinstance(one, ast.Name)}
            waiting += [one for one in names - needed if one in known and self._is_here(one)]
        for name in (one for one in known if one in needed):
            decorators = known[name].decorator_list
            known[name].decorator_list = [one for one in decorators if not self._registers(one)]
            yield known[name]

    def _is_here(self, name: str) -> bool:
        """Whether a name stands for what this file or cell defines."""
        value = self._globals.get(name)
        found = map(_function, vars(value).values() if inspect.isclass(value) else [value])
        return any(one is not None and one.__code__.co_filename == self._file for one in found)

    def _registers(self, decorator: ast.expr) -> bool:
        """Whether a decorator is the grader's own: it keeps a list of what it decorates."""
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        found = self._globals.get(getattr(name, "id", ""))
        return str(getattr(found, "__module__", "")).startswith("autograder")

    def _wrapped(self, node: Any, around: str = "") -> Any:
        """The node with each expression in it wrapped."""
        if isinstance(node, UNTOUCHED) or _is_docstring(node):
            return node
        number, text, has_value = len(self.expressions), around, self._has_value(node)
        if has_value:
            text = ast.unparse(node)
            is_number = isinstance(node, ast.Constant) or _is_signed(node)
            within = around if is_number else ""
            one = Expression(node.lineno, text, within, isinstance(node, ast.Name))
            self.expressions.append(one)
            self._calls.append(ast.Call(ast.Name(AT, ast.Load()), [], []))
        self._wrap_parts(node, text)
        if not has_value:
            return node
        self._calls[number].args = [ast.Constant(number), node]
        return ast.copy_location(self._calls[number], node)

    def _wrap_parts(self, node: Any, text: str) -> None:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            if field == "func":  # of a method the object alone is a value
                if isinstance(value, ast.Attribute):
                    value.value = self._wrapped(value.value, text)
            elif isinstance(value, list):
                found = [self._wrapped(x, text) if isinstance(x, ast.AST) else x for x in value]
                setattr(node, field, found)
            elif isinstance(value, ast.AST) and not _is_signed(node):
                setattr(node, field, self._wrapped(value, text))

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


def _functions(definition: Any) -> Iterator[Any]:
    """The outermost functions of a definition."""
    if isinstance(definition, ast.FunctionDef):
        yield definition
    elif isinstance(definition, ast.ClassDef):
        for one in definition.body:
            yield from _functions(one)


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_signed(node: Any) -> bool:
    """Whether this is a number with a sign: one expression, not two."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
