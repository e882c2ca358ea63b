"""Which classes of faults a check looks for: a table of checks and classes, filled or excused.

Most wrong answers that a check lets through do so because some sort of input never comes: no size
of 1, no large number, one size everywhere. What comes is seen in the questions that the check asks,
what is promised (exceptions, reductions that are exact) in the library's own answer.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from autograder.checking.asking.probes import PROBES
from autograder.checking.asking.questions import Question, Replied
from autograder.checking.asking.right_answer import asked
from autograder.checking.toolbox.registry import ONE_RIGHT_ANSWER, Check, reference
from autograder.inside.messages.values import leaves

CLASSES = {
    "device": "it is called on the rehearsal device",
    "float32": "it is called with float32, too",
    "gradients": "gradients of every argument and weight are compared",
    "again": "the same call gives the same result later",
    "turns": "two objects that are used in turn answer as each would alone",
    "unlike": "in one call all axes have different sizes, so that a swapped axis shows",
    "ones": "in one call an axis has size 1",
    "large": "in one call a number is far from 0 (100 or more, or infinite)",
    "strided": "in one call an argument is not contiguous in memory",
    "refusals": "it is asked for each exception that its text or the right answer promises",
    "offset": "in one call numbers lie close together and far from 0, where a spread is measured",
}
LARGE = 100
PROMISED = re.compile(r"\b([A-Z]\w*Error)\b")
SPREADS = {"var", "std", "layer_norm"}  # each takes a mean, and the squares around it
SQUARES = {"square", "pow"}
FAR = 1000.0  # how many times larger than their spread numbers are that lie far from 0


def coverage(item: Check, seed: int) -> dict[str, bool | str]:
    """For each class: True, False, or the reason why it is not for this exercise."""
    questions, replied = asked(item, seed)
    excused = {**_never(questions), **dict(item.without)}
    probed = {one.probe for one in questions if one.request in ("call", "gradients")}
    calls = [_tensors(one) for one in questions if one.request == "call" and not one.probe]
    every = [tensor for tensors in calls for tensor in tensors]
    axes = [[size for tensor in tensors for size in tensor.shape] for tensors in calls]
    found = {name: name in probed for name in PROBES}
    found["unlike"] = any(_unlike(tensor) for tensor in every)
    found["ones"] = any(1 in sizes for sizes in axes)
    found["large"] = any(_large(tensor) for tensor in every)
    found["strided"] = any(not tensor.is_contiguous() for tensor in every)
    found["refusals"] = not _unmet(reference(item), replied)
    found["offset"] = any(_lies_far(tensor) for tensor in every)
    if not _measures_a_spread(reference(item)):
        excused.setdefault("offset", "no spread is measured")
    return {name: found[name] or excused.get(name, False) for name in CLASSES}


def _never(questions: Iterable[Question]) -> dict[str, str]:
    """What does not apply to exercises without tensors, or without numbers that are rounded."""
    alone = {} if any(one.built for one in questions) else {"turns": "no object is built"}
    every = [x for one in questions if one.request in ("call", "load") for x in _tensors(one)]
    if not every:
        return alone | dict.fromkeys(CLASSES.keys() - {"again", "refusals"}, "no tensor goes in")
    if not any(tensor.is_floating_point() for tensor in every):
        return alone | dict.fromkeys(("float32", "gradients", "large"), "only whole numbers go in")
    return alone


def unknown(item: Check) -> list[str]:
    """Names in ``without`` that are no class: a misspelt excuse excuses nothing."""
    return sorted({name for name, _ in item.without} - CLASSES.keys() - {ONE_RIGHT_ANSWER, "care"})


def _tensors(question: Question) -> list[torch.Tensor]:
    return [item for item in leaves(question.details) if isinstance(item, torch.Tensor)]


def _unlike(tensor: torch.Tensor) -> bool:
    """Two axes or more, all of different sizes above 1; one axis cannot be swapped."""
    sizes = [size for size in tensor.shape if size > 1]
    return len(sizes) == len(set(sizes)) == tensor.dim() and 4 not in sizes[-1:]


def _large(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and bool((tensor.abs() >= LARGE).any())


def _unmet(target: Callable[..., Any] | None, replied: Sequence[Replied]) -> list[str]:
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


def _measures_a_spread(target: Callable[..., Any] | None) -> bool:
    """Whether a right answer adds up squares around a mean: if that is far from 0, digits go."""
    names = {node.attr for node in _nodes(target) if isinstance(node, ast.Attribute)}
    return bool(names & SPREADS or "mean" in names and names & SQUARES)


def _lies_far(tensor: torch.Tensor) -> bool:
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
