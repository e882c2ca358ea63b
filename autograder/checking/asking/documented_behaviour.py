"""What an exercise's text and its right answer promise: exceptions, and reductions that are exact.

Both are read off the library's own answer, so a new exercise has them for nothing.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.checking.asking.questions import Replied

PROMISED = re.compile(r"\b([A-Z]\w*Error)\b")
SPREADS = {"var", "std", "layer_norm"}  # each takes a mean, and the squares around it
SQUARES = {"square", "pow"}
FAR = 1000.0  # how many times larger than their spread numbers are that lie far from 0


def unmet(target: Callable[..., Any] | None, replied: Sequence[Replied]) -> list[str]:
    """The exceptions that a right answer promises, and that it never raised when it was asked."""
    raised = [reply.value for reply in replied if reply.kind == "raised"]
    missing = [
        f"{kind}: {pattern.pattern}"
        for kind, pattern in _raises(target)
        if not any(kind == name and pattern.fullmatch(words) for name, words in raised)
    ]
    return missing + sorted(_in_words(target) - {name for name, _ in raised})


def _raises(target: Callable[..., Any] | None) -> list[tuple[str, re.Pattern[str]]]:
    """Pairs (class, what its message is like) for each ``raise`` in the right answer."""
    found = [node.exc for node in _nodes(target) if isinstance(node, ast.Raise)]
    return [
        (call.func.id, re.compile(_like(call.args[0] if call.args else None), re.DOTALL))
        for call in found
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    ]


def _like(message: ast.expr | None) -> str:
    """A pattern for a message: what is filled in may be anything."""
    if isinstance(message, ast.Constant):
        return re.escape(str(message.value))
    if isinstance(message, ast.JoinedStr):
        parts = [part if isinstance(part, ast.Constant) else None for part in message.values]
        return "".join(_like(part) for part in parts)
    return ".*"


def _in_words(target: Callable[..., Any] | None) -> set[str]:
    """The exceptions that the docstrings name, of a class those of its methods as well."""
    texts = [inspect.getdoc(target) or ""] if target else []
    if inspect.isclass(target):
        texts += [inspect.getdoc(one) or "" for one in vars(target).values() if callable(one)]
    return {name for text in texts for name in PROMISED.findall(text)}


def measures_a_spread(target: Callable[..., Any] | None) -> bool:
    """Whether a right answer adds up squares around a mean: if that is far from 0, digits go."""
    names = {node.attr for node in _nodes(target) if isinstance(node, ast.Attribute)}
    return bool(names & SPREADS or "mean" in names and names & SQUARES)


def lies_far(tensor: torch.Tensor) -> bool:
    """Whether all numbers of a tensor lie far from 0, and near each other."""
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return False
    spread = tensor.max() - tensor.min()
    return bool(spread > 0) and bool(tensor.mean().abs() > FAR * spread)


def _nodes(target: Callable[..., Any] | None) -> list[ast.AST]:
    if target is None:
        return []
    try:
        return list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(target)))))
    except (OSError, TypeError, SyntaxError):  # built in, say
        return []
