"""Where an answer is right and where it is wrong: what all the failing calls have in common."""

from collections.abc import Sequence

import torch

from autograder.checking.questions import Question, Replied
from autograder.inside.values import same

ONLY = "Of the calls tried, it is wrong only"
STRIDED = f"{ONLY} where an argument is not contiguous in memory."
LARGE = f"{ONLY} where an argument holds large numbers."
OWN_ERRORS = ("KeyError", "NameError", "UnboundLocalError", "AttributeError")


def where(pairs: Sequence[tuple[Question, Replied, Replied]]) -> str:
    """'Right without `mask`, wrong with it.': a feature that separates wrong replies from right.

    ``pairs`` are triples (question, reply, right reply). A feature is said only if every wrong
    reply has it and no right one does, and there are some of both.
    """
    calls = [pair for pair in pairs if pair[0].request == "call"]
    if any(got.kind == "raised" and got.value[0] in OWN_ERRORS for _, got, _ in calls):
        return ""  # a name or a key that is missing: the error says more than the calls it ends
    wrong = [question for question, got, expected in calls if not got.agrees(expected)]
    # What is rightly refused, by an object that was never built even, separates nothing.
    right = [one for one, got, due in calls if due.kind == "value" and got.agrees(due)]
    if not wrong:
        slopes = any(_other_gradients(*pair) for pair in pairs)
        return "The results are right, the gradients are not." if slopes and right else ""
    if not right:
        return ""
    shared = set.intersection(*map(_features, wrong))
    others = set.union(*map(_features, right), *map(_given, right))
    separating = shared - others
    if not any(_shapes(one) == _shapes(other) for one in wrong for other in right):
        separating -= {STRIDED, LARGE}  # it may as well be their sizes
    return min(separating, key=lambda text: (len(text), text), default="")


def _shapes(question: Question) -> list[tuple[int, ...]]:
    args, kwargs = question.details
    items = (*args, *kwargs.values())
    return [tuple(item.shape) for item in items if isinstance(item, torch.Tensor)]


def _other_gradients(question: Question, got: Replied, expected: Replied) -> bool:
    alike = got.kind == expected.kind and same(got.value, expected.value)
    return question.request == "gradients" and not alike


def _given(question: Question) -> set[str]:
    """The sentences on arguments that are given by place, if those by name are counted, too."""
    args, kwargs = question.details
    return {_given_as(n) for n in range(2, len(args) + len(kwargs) + 1)}


def _given_as(number: int) -> str:
    return f"{ONLY} where argument {number} is given."


def _features(question: Question) -> set[str]:
    """Sentences that are true of one call, if it is wrong and calls without them are right."""
    args, kwargs = question.details
    found = set()
    for name, value in kwargs.items():
        if isinstance(value, bool | str) and name != "device":
            found.add(f"{ONLY} where `{name}={value!r}` is given.")
        elif value is not None:
            found.add(f"{ONLY} where `{name}` is given.")
    found |= {_given_as(n) for n in range(2, len(args) + 1)}
    tensors = [item for item in (*args, *kwargs.values()) if isinstance(item, torch.Tensor)]
    for tensor in tensors:
        if 1 in tensor.shape:
            found.add(f"{ONLY} where an axis has size 1.")
        if tensor.is_floating_point():
            if tensor.dtype != torch.float64:  # which nearly all calls have
                found.add(f"{ONLY} with {str(tensor.dtype).removeprefix('torch.')}.")
            if torch.isinf(tensor).any():
                found.add(f"{ONLY} where an argument holds infinite numbers.")
            elif tensor.numel() and tensor.abs().max() > 50:
                found.add(LARGE)
        if not tensor.is_contiguous():
            found.add(STRIDED)
    if args and isinstance(args[0], torch.Tensor):
        axes = f"{args[0].dim()} {'axis' if args[0].dim() == 1 else 'axes'}"
        found.add(f"{ONLY} where argument 1 has {axes}.")
    return found
