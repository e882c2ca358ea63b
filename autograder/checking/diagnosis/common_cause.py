"""What all the failing calls of an answer have in common: in their results, and where they fail."""

from collections.abc import Sequence
from typing import Any

import torch

from autograder.checking.asking.probe_failures import has_gradient
from autograder.checking.asking.questions import Exchange, Question, Replied, floating_places
from autograder.checking.diagnosis.relations import ALONE, between
from autograder.checking.toolbox.same_tensors import ENOUGH, name_of, tensors_of
from autograder.inside.messages.values import same

ONLY = "Of the calls tried, it is wrong only"
STRIDED = f"{ONLY} where an argument is not contiguous in memory."
LARGE = f"{ONLY} where an argument holds large numbers."
OWN_ERRORS = ("KeyError", "NameError", "UnboundLocalError", "AttributeError")


def relation(pairs: Sequence[Exchange]) -> str:
    """What holds, in the same words but for numbers, of every result that is wrong."""
    wrong = [pair for pair in pairs if _is_wrong("call", *pair)]
    if not wrong:  # else the gradients are wrong because the results are
        wrong = [pair for pair in pairs if _is_wrong("gradients", *pair)]
    if any(got.kind != "value" or same(got.value, right.value) for _, got, right in wrong):
        return ""  # it raised, or it did something besides giving the right value
    found = [
        (between if one.request == "call" else _of_gradients)(got.value, right.value, one)
        for one, got, right in wrong
    ]
    told = [
        (said, pair)
        for said, pair in zip(found, wrong, strict=True)
        if said or not all(_says_little(reply.value) for reply in pair[1:])
    ]
    found = [said for said, _ in told]
    if len({_without_numbers(said) for said in found}) != 1 or not found[0]:
        return ""
    said = [words for words, (question, _, _) in told if not question.probe] or found
    first = said[0]
    others = len(told) < len(wrong) or any(
        _without_sizes(one) != _without_sizes(first) for one in said
    )
    if others:
        first = f"In one of the calls, {first[0].lower()}{first[1:]}"
    elif len(set(said)) > 1:
        first = f"{_without_sizes(first)}."
    if ALONE in first:
        first = first.replace(ALONE, f"{ALONE}{_unless_asked_for_more(pairs)}")
    return first


def _unless_asked_for_more(pairs: Sequence[Exchange]) -> str:
    """Which switch asks for a pair, in the words that follow 'returned alone'."""
    calls = [pair for pair in pairs if pair[0].request == "call" and pair[2].kind == "value"]
    several = [one for one, _, right in calls if isinstance(right.value, tuple)]
    alone = [one for one, _, right in calls if not isinstance(right.value, tuple)]
    if not several:
        return ""
    switches = set().union(*map(_switched_on, several)) - set().union(*map(_switched_on, alone))
    return f" unless {switches.pop()}=True" if len(switches) == 1 else " where no more is asked for"


def _switched_on(question: Question) -> set[str]:
    return {name for name, value in question.details[1].items() if value is True}


def _is_wrong(request: str, question: Question, got: Replied, expected: Replied) -> bool:
    asks = question.request == request and expected.kind == "value"
    return asks and not got.agrees(expected)


def _without_sizes(said: str) -> str:
    return said.partition(" (")[0].rstrip(".")


def _without_numbers(said: str) -> str:
    return "".join(letter for letter in said.partition(" (")[0] if letter not in "0123456789.-e+")


def _of_gradients(got: Any, expected: Any, question: Question) -> str:
    """Where no gradient arrives although one should."""
    if not isinstance(got, tuple) or not isinstance(got[0], dict):
        return ""
    if got[0].keys() != expected[0].keys():
        return ""  # the parameters have other names: that says more
    names = [name for name, wanted in expected[0].items() if wanted is not None]
    missing = [name for name in names if got[0].get(name) is None]
    if missing:
        return f"No gradient reaches {', '.join(missing)}."
    if len(got[1]) > 1 and all(one is None for one in got[1]):
        return "No gradient reaches any of the arguments."
    parts = zip(floating_places(question), got[1], expected[1], strict=False)
    lost = [place for place, one, other in parts if one is None and has_gradient(other)]
    return f"No gradient reaches argument {lost[0]}." if lost else ""


def where(pairs: Sequence[Exchange]) -> str:
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


def _shapes(question: Question) -> list[torch.Size]:
    return [tensor.shape for tensor in tensors_of(question)]


def _other_gradients(question: Question, got: Replied, expected: Replied) -> bool:
    if (
        question.request != "gradients"
        or got.kind == expected.kind == "value"
        and _other_names(got.value, expected.value)
    ):
        return False
    return got.kind != expected.kind or not same(got.value, expected.value)


def _other_names(got: Any, expected: Any) -> bool:
    """Whether the parameters, of which there are gradients, have other names."""
    pairs = isinstance(got, tuple) and isinstance(got[0], dict)
    return pairs and got[0].keys() != expected[0].keys()


def _says_little(value: Any) -> bool:
    """Whether a result holds so few numbers that they bear any relation."""
    if isinstance(value, torch.Tensor):
        return 0 < value.numel() < ENOUGH
    return isinstance(value, int | float)


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
        if value is not None:
            found.add(f"{ONLY} where `{name}` is given.")
    found |= {_given_as(n) for n in range(2, len(args) + 1)}
    for tensor in tensors_of(question):
        if 1 in tensor.shape:
            found.add(f"{ONLY} where an axis has size 1.")
        if tensor.is_floating_point():
            if tensor.dtype != torch.float64:  # which nearly all calls have
                found.add(f"{ONLY} with {name_of(tensor.dtype)}.")
            if tensor.numel() and tensor.abs().max() > 50:
                found.add(LARGE)
        if not tensor.is_contiguous():
            found.add(STRIDED)
    if args and isinstance(args[0], torch.Tensor):
        axes = f"{args[0].dim()} {'axis' if args[0].dim() == 1 else 'axes'}"
        found.add(f"{ONLY} where argument 1 has {axes}.")
    return found
