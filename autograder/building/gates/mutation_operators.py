"""The operators: every way in which one statement or one expression of a program is broken.

Each yields pairs (words, replacement). The words complete 'the results are those of a right answer
…' and do not give the line away.
"""

import ast
import copy
from collections.abc import Iterator
from typing import Any

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip
OPERATIONS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
SYMMETRIC = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
EXCHANGED = {
    "sum": ("mean",), "mean": ("sum",), "max": ("min",), "min": ("max",), "amax": ("amin",),
    "amin": ("amax",), "argmax": ("argmin",), "argmin": ("argmax",), "zeros": ("ones",),
    "ones": ("zeros",), "new_zeros": ("new_ones",), "zeros_like": ("ones_like",),
    "tril": ("triu",), "triu": ("tril",), "sin": ("cos",), "cos": ("sin",),
    "softmax": ("log_softmax",), "log_softmax": ("softmax",), "any": ("all",), "all": ("any",),
    "std": ("var",), "var": ("std",), "sqrt": ("square",), "square": ("abs",),
    "relu": ("tanh",), "tanh": ("sigmoid",), "sigmoid": ("tanh",), "ceil": ("floor",),
    "floor": ("ceil",),
    "repeat_interleave": ("repeat",), "repeat": ("repeat_interleave",),
}  # fmt: skip
SHORTER = {"range", "arange", "clamp", "topk"}  # calls that also work with fewer arguments
UNORDERED = {"transpose", "swapaxes", "min", "max", "isclose", "allclose", "equal", "minimum"}
AXIS_WORDS = {"dim", "axis"}
OTHER_AXES = {-2: (-1, 0), -1: (-2, 0), 0: (-1, 1), 1: (0, 2), 2: (1, -1)}


def parameters_of(function: Any) -> set[str]:
    """The names of a function's arguments."""
    return {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}


def broken_statements(statement: Any, function: Any) -> Iterator[tuple[str, Any]]:
    """Mutants of a whole statement: dropped, its condition forced, its gradient cut."""
    if isinstance(statement, ast.Expr | ast.AugAssign | ast.Raise | ast.Break | ast.Continue):
        yield "with one statement left out", None
    if isinstance(statement, ast.Assign) and _is_reassigned(statement, function):
        yield "with one assignment left out", None
    if isinstance(statement, ast.If):
        for value in (True, False):
            forced = copy.deepcopy(statement)
            forced.test = ast.Constant(value)
            yield "in which one condition always gives the same answer", forced
    if isinstance(statement, ast.Return) and statement.value is not None:
        yield "whose result is cut off from the gradient", ast.Return(_detached(statement.value))


def _detached(value: Any) -> Any:
    """The value without its gradient; of a tuple, each of its items."""
    if isinstance(value, ast.Tuple):
        return ast.Tuple([_detached(item) for item in value.elts], value.ctx)
    if isinstance(value, ast.IfExp):
        return ast.IfExp(value.test, _detached(value.body), _detached(value.orelse))
    return ast.Call(ast.Attribute(value, "detach", ast.Load()), [], [])


def _is_reassigned(statement: Any, function: Any) -> bool:
    """Whether the names assigned were there before, so that the program works without it."""
    names = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    before = parameters_of(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            before |= {node.id} if node.lineno < statement.lineno else set()
    attributes = any(isinstance(n, ast.Attribute) for n in statement.targets)
    return bool(names) and names <= before or attributes


def broken_expressions(node: Any, parameters: set[str]) -> Iterator[tuple[str, Any]]:
    """Pairs (words, replacement) of an expression."""
    kind = type(node)
    makers = {
        ast.Compare: _compare, ast.BinOp: _operation, ast.UnaryOp: _unary, ast.BoolOp: _boolean,
        ast.Constant: _constant, ast.Call: _call, ast.IfExp: _branches, ast.Tuple: _pair,
        ast.Slice: _bounds, ast.keyword: _keyword,
    }  # fmt: skip
    if kind in makers:
        yield from makers[kind](node)
    if kind is ast.Name and isinstance(node.ctx, ast.Load) and node.id in parameters:
        for other in sorted(parameters):
            if other != node.id:
                yield f"with `{other}` once where `{node.id}` belongs", ast.Name(other, ast.Load())


def _compare(node: Any) -> Iterator[tuple[str, Any]]:
    if len(node.ops) == 1:
        for other in COMPARISONS.get(type(node.ops[0]), ()):
            signs = SIGNS[other], SIGNS[type(node.ops[0])]
            yield (
                f"with `{signs[0]}` once where `{signs[1]}` belongs",
                ast.Compare(node.left, [other()], node.comparators),
            )


def _operation(node: Any) -> Iterator[tuple[str, Any]]:
    sign = SIGNS.get(type(node.op), "@")
    other = OPERATIONS.get(type(node.op))
    if other is not None:
        words = f"with `{SIGNS[other]}` once where `{sign}` belongs"
        yield words, ast.BinOp(node.left, other(), node.right)
    if not isinstance(node.op, SYMMETRIC):
        words = f"with the two sides of one `{sign}` exchanged"
        yield words, ast.BinOp(node.right, node.op, node.left)
    names = {"*": "factor", "/": "division", "+": "term", "-": "difference", "**": "power"}
    what = names.get(sign, f"`{sign}`")
    yield f"with one {what} left out", node.left
    yield f"with one {what} left out", node.right


def _unary(node: Any) -> Iterator[tuple[str, Any]]:
    words = {ast.USub: "minus sign", ast.Not: "`not`", ast.Invert: "`~`"}.get(type(node.op))
    if words:
        yield f"with one {words} left out", node.operand
    last = isinstance(node.op, ast.USub) and getattr(node.operand, "value", None) == 1
    if last:
        yield "with the first axis or item once where the last belongs", ast.Constant(0)


def _boolean(node: Any) -> Iterator[tuple[str, Any]]:
    other = ast.Or if isinstance(node.op, ast.And) else ast.And
    yield "with `and` and `or` exchanged in one place", ast.BoolOp(other(), node.values)
    for index in range(len(node.values)):
        rest = node.values[:index] + node.values[index + 1 :]
        left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield "with one part of a condition left out", left


def _constant(node: Any) -> Iterator[tuple[str, Any]]:
    value = node.value
    if isinstance(value, bool):
        yield f"with {not value} once where {value} belongs", ast.Constant(not value)
    elif isinstance(value, int):
        for other in (value + 1, value - 1):
            yield "with one whole number off by one", ast.Constant(other)
    elif isinstance(value, float) and value:
        yield "with one constant twice as large", ast.Constant(value * 2)


def _call(node: Any) -> Iterator[tuple[str, Any]]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    method = isinstance(node.func, ast.Attribute)
    of_module = method and isinstance(node.func.value, ast.Name) and node.func.value.id in (
        "torch", "math", "F", "nn", "random", "np", "itertools",
    )  # fmt: skip
    for other in EXCHANGED.get(name, ()):
        changed = copy.deepcopy(node)
        if method:
            changed.func.attr = other
        else:
            changed.func.id = other
        yield f"with `{other}` once where `{name}` belongs", changed
    inner = node.func.value if method and not of_module else node.args[0] if node.args else None
    if inner is not None and not isinstance(inner, ast.Starred):
        yield f"with one call of `{name}` left out", inner
    if name == "sqrt" and inner is not None:
        half = ast.BinOp(inner, ast.Mult(), ast.Constant(0.5))
        yield "with half of a number where its square root belongs", half
    for index in range(0 if name in UNORDERED else len(node.args) - 1):
        if ast.dump(node.args[index]) == ast.dump(node.args[index + 1]):
            continue  # the same program, but for its columns
        changed = copy.deepcopy(node)
        changed.args[index : index + 2] = node.args[index + 1], node.args[index]
        yield f"with two arguments of one call of `{name}` exchanged", changed
    for index, keyword in enumerate(node.keywords):
        changed = copy.deepcopy(node)
        del changed.keywords[index]
        yield f"without `{keyword.arg}` in one call of `{name}`", changed
    if name in SHORTER and len(node.args) > 1:
        for index in range(len(node.args)):
            changed = copy.deepcopy(node)
            del changed.args[index]
            yield f"with one argument of `{name}` left out", changed


def _branches(node: Any) -> Iterator[tuple[str, Any]]:
    exchanged = ast.IfExp(node.test, node.orelse, node.body)
    yield "with the two branches of one condition exchanged", exchanged
    yield "in which one condition always gives the same answer", node.body
    yield "in which one condition always gives the same answer", node.orelse


def _pair(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield "with the two items of a pair exchanged", ast.Tuple(node.elts[::-1], node.ctx)


def _bounds(node: Any) -> Iterator[tuple[str, Any]]:
    for field in ("lower", "upper"):
        if getattr(node, field) is not None:
            changed = copy.deepcopy(node)
            setattr(changed, field, None)
            yield "with one bound of a slice left out", changed


def _keyword(node: Any) -> Iterator[tuple[str, Any]]:
    """An axis given by name: another one."""
    if node.arg in AXIS_WORDS:
        try:
            number = ast.literal_eval(node.value)
        except ValueError:
            return
        for other in OTHER_AXES.get(number, ()) if type(number) is int else ():
            value = ast.parse(str(other), mode="eval").body
            yield "with another axis in one place", ast.keyword(node.arg, value)
