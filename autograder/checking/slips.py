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

MARKER = re.compile(r"^\s*# exercise: ")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip
OPERATIONS = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
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
    parameters = _parameters(function) - {"self"}
    for statement in _statements(function, start):
        for words, variant in _whole(statement, function):
            yield words, *_replaced(definition, order[id(statement)], variant, statement)
        for node in _own_nodes(statement):
            for words, variant in _variants(node, parameters):
                yield words, *_replaced(definition, order[id(node)], variant, statement, order)


def _parameters(function):
    return {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}


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


def _whole(statement, function):
    """Mutants of a whole statement: dropped, its condition forced, its gradient cut."""
    if isinstance(statement, ast.Expr | ast.AugAssign | ast.Raise | ast.Break | ast.Continue):
        yield "with one statement left out", None
    if isinstance(statement, ast.Assign) and _is_reassigned(statement, function):
        yield "with one assignment left out", None
    if isinstance(statement, ast.If):
        for value, words in ((True, "always"), (False, "never")):
            forced = copy.deepcopy(statement)
            forced.test = ast.Constant(value)
            yield f"in which one condition {words} holds", forced
    if isinstance(statement, ast.Return) and statement.value is not None:
        yield "whose result is cut off from the gradient", ast.Return(_detached(statement.value))


def _detached(value):
    """The value without its gradient; of a tuple, each of its items."""
    if isinstance(value, ast.Tuple):
        return ast.Tuple([_detached(item) for item in value.elts], value.ctx)
    if isinstance(value, ast.IfExp):
        return ast.IfExp(value.test, _detached(value.body), _detached(value.orelse))
    return ast.Call(ast.Attribute(value, "detach", ast.Load()), [], [])


def _is_reassigned(statement, function):
    """Whether the names assigned were there before, so that the program works without it."""
    names = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    before = _parameters(function)
    for node in ast.walk(function):
        stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if stored and node.lineno < statement.lineno:
            before.add(node.id)
    attributes = any(isinstance(n, ast.Attribute) for n in statement.targets)
    return bool(names) and names <= before or attributes


def _variants(node, parameters):
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


def _compare(node):
    if len(node.ops) == 1:
        for other in COMPARISONS.get(type(node.ops[0]), ()):
            signs = SIGNS[other], SIGNS[type(node.ops[0])]
            yield (
                f"with `{signs[0]}` once where `{signs[1]}` belongs",
                ast.Compare(node.left, [other()], node.comparators),
            )


def _operation(node):
    sign = SIGNS.get(type(node.op), "@")
    for other in OPERATIONS.get(type(node.op), ()):
        words = f"with `{SIGNS[other]}` once where `{sign}` belongs"
        yield words, ast.BinOp(node.left, other(), node.right)
    if not isinstance(node.op, SYMMETRIC):
        words = f"with the two sides of one `{sign}` exchanged"
        yield words, ast.BinOp(node.right, node.op, node.left)
    names = {"*": "factor", "/": "division", "+": "term", "-": "difference", "**": "power"}
    what = names.get(sign, f"`{sign}`")
    yield f"with one {what} left out", node.left
    yield f"with one {what} left out", node.right


def _unary(node):
    words = {ast.USub: "minus sign", ast.Not: "`not`", ast.Invert: "`~`"}.get(type(node.op))
    if words:
        yield f"with one {words} left out", node.operand
    last = isinstance(node.op, ast.USub) and getattr(node.operand, "value", None) == 1
    if last:
        yield "with the first axis or item once where the last belongs", ast.Constant(0)


def _boolean(node):
    other = ast.Or if isinstance(node.op, ast.And) else ast.And
    yield "with `and` and `or` exchanged in one place", ast.BoolOp(other(), node.values)
    for index in range(len(node.values)):
        rest = node.values[:index] + node.values[index + 1 :]
        left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield "with one part of a condition left out", left


def _constant(node):
    value = node.value
    if isinstance(value, bool):
        yield f"with {not value} once where {value} belongs", ast.Constant(not value)
    elif isinstance(value, int):
        for other in (value + 1, value - 1):
            yield "with one whole number off by one", ast.Constant(other)
    elif isinstance(value, float):
        yield "with one constant twice as large", ast.Constant(value * 2)


def _call(node):
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


def _branches(node):
    exchanged = ast.IfExp(node.test, node.orelse, node.body)
    yield "with the two branches of one condition exchanged", exchanged
    yield "in which one condition always holds", node.body
    yield "in which one condition never holds", node.orelse


def _pair(node):
    if isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield "with the two items of a pair exchanged", ast.Tuple(node.elts[::-1], node.ctx)


def _bounds(node):
    for field in ("lower", "upper"):
        if getattr(node, field) is not None:
            changed = copy.deepcopy(node)
            setattr(changed, field, None)
            yield "with one bound of a slice left out", changed


def _keyword(node):
    """An axis given by name: another one."""
    if node.arg in AXIS_WORDS:
        try:
            number = ast.literal_eval(node.value)
        except ValueError:
            return
        for other in OTHER_AXES.get(number, ()) if type(number) is int else ():
            value = ast.parse(str(other), mode="eval").body
            yield "with another axis in one place", ast.keyword(node.arg, value)
