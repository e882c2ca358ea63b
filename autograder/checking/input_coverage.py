"""Which classes of faults a check looks for: a table of checks and classes, filled or excused.

Most wrong answers that a check lets through do so because some sort of input never comes: no size
of 1, no large number, one size everywhere. What comes is seen in the questions that the check asks.
"""

from collections.abc import Iterable

import torch

from autograder.checking.asking.documented_behaviour import lies_far, measures_a_spread, unmet
from autograder.checking.asking.probes import PROBES
from autograder.checking.asking.questions import Question
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
    found["refusals"] = not unmet(reference(item), replied)
    found["offset"] = any(lies_far(tensor) for tensor in every)
    if not measures_a_spread(reference(item)):
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
