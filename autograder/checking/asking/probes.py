"""What every answer is asked beyond its check: on a GPU, in float32, for gradients, again, in turn.

The probes are made from the questions that the check asks of the right answer, so a new exercise
has them for nothing. Where the right answer itself cannot be asked, the probe is left out; where
the exercise's text does not demand what a probe asks for, its check says ``without``.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from autograder.checking.asking.probe_failures import proves
from autograder.checking.asking.questions import Pair, Question, Replied, moved
from autograder.checking.toolbox.registry import Check
from autograder.inside.device.rehearsal import DEVICE
from autograder.inside.messages.values import copied, leaves, mapped

MOST = 6  # questions for a probe, save float32, where all are asked
PRECISE = (torch.float64, torch.float32)
LARGE = 100_000  # numbers among the arguments: a call with more is not repeated
AGAIN = 1  # the seed of what an answer draws where it is asked once more
OFFSET = 1000  # what is added to the number of an object that is built in float32
MOVED = 2000  # and of one that is built to be called on the rehearsal device
ONE, OTHER, THIRD = 3000, 4000, 5000  # and of those that are used in turn
TURNS = 2  # calls of each of these


def probes_of(
    item: Check, questions: Sequence[Question], replied: Sequence[Replied]
) -> list[Question]:
    """The further questions: a list of Question, each with ``probe`` set to its probe's name."""
    left_out = {name for name, _ in item.without}
    numbered = [
        (dataclasses.replace(question, origin=number), reply)
        for number, (question, reply) in enumerate(zip(questions, replied, strict=True))
    ]
    return [
        dataclasses.replace(one, probe=name, is_care=one.is_care or name == "device")
        for name, made_from in PROBES.items()
        if name not in left_out
        for one in made_from(numbered)
    ]


def answerable(
    further: Sequence[Question], answered: Sequence[Replied], first: Sequence[Replied]
) -> list[Pair]:
    """Pairs (question, reply) of those that the right answer has a reply to that proves something.

    ``first`` are its replies to the check's own questions. Of an object that is built for a probe
    nothing is kept behind a question that is not: another step would then be its second.
    """
    kept, incomplete = [], set()
    for question, reply in zip(further, answered, strict=True):
        narrow = question.probe == "float32" and question.request == "call"
        fit = not narrow or proves(reply.value, first[question.origin].value)
        if question.probe in ("again", "turns"):  # a cache, say, remembers
            fit = reply.agrees(first[question.origin])
        if question.probe == "gradients":
            fit = reply.kind == "value" and _has_gradient(reply.value)
        if reply.kind == "value" and fit and question.handle not in incomplete:
            kept.append((question, reply))
        elif question.handle >= OFFSET:
            incomplete.add(question.handle)
    return kept


def _has_gradient(value: Any) -> bool:
    """Whether the right answer has any gradient that is not 0."""
    found = [*value[0].values(), *value[1]] if isinstance(value, tuple) else []
    return any(one is not None and bool((one != 0).any()) for one in found)


def _calls(pairs: list[Pair], of_one: bool = False) -> list[Pair]:
    """Questions that are calls and were answered, unlike each other in form, and not huge.

    With ``of_one``, calls of several objects count as alike.
    """
    seen, chosen = set(), []
    for question, reply in pairs:
        if question.request == "call" and reply.kind == "value" and _small(question.details):
            args, kwargs = question.details
            form = (of_one or question.handle, len(args), tuple(kwargs), _axes(args))
            if form not in seen:
                seen.add(form)
                chosen.append((question, reply))
    return chosen[:MOST]


def _small(details: Any) -> bool:
    return sum(getattr(item, "numel", int)() for item in leaves(details)) < LARGE


def _axes(args: Any) -> tuple[int | str | None, ...]:
    """Of tensors how many axes they have, and words as they are: they choose among formulas."""
    return tuple(
        item.dim() if isinstance(item, torch.Tensor) else item if isinstance(item, str) else None
        for item in args
    )


def _device(pairs: list[Pair]) -> list[Question]:
    """The same calls on the rehearsal device; of objects that remember nothing of other calls.

    The device is also given where one is asked for.
    """
    calls = [
        question
        for question, _ in _calls(pairs, of_one=True)  # the rehearsal takes its time
        if _has_tensor(question.details) or "device" in question.details[1]
    ]
    handles = {question.handle for question in calls} - {0}
    made = []
    for question, _ in pairs:
        if any(question is call for call in calls):
            args, kwargs = question.details
            if "device" in kwargs:
                kwargs = {**kwargs, "device": DEVICE.type}
            how = (("device", "rehearsal"),)
            made.append(moved(question, MOVED, how=how, details=(args, kwargs)))
        elif question.built in handles or (
            question.handle in handles and question.request in ("load", "train")
        ):
            made.append(moved(question, MOVED))
    return made


def _again(pairs: list[Pair]) -> list[Question]:
    """The first calls once more, after all others, and whatever is drawn elsewhere."""
    quiet = [(one, reply) for one, reply in pairs if not reply.drew]
    other = (("seed", AGAIN),)
    return [dataclasses.replace(question, how=other) for question, _ in _calls(quiet)]


def _gradients(pairs: list[Pair]) -> list[Question]:
    """The gradient of each result with respect to all arguments and weights."""
    made = []
    for question, reply in _calls([pair for pair in pairs if not pair[1].drew]):
        first = reply.value[0] if isinstance(reply.value, tuple) and reply.value else reply.value
        if not isinstance(first, torch.Tensor) or first.dtype not in PRECISE:
            continue
        generator = torch.Generator().manual_seed(7)
        cotangent = torch.randn(first.shape, generator=generator, dtype=torch.float64)
        details = (*question.details, cotangent.to(first.dtype))
        made.append(dataclasses.replace(question, request="gradients", details=details))
    return made


def _float32(pairs: list[Pair]) -> list[Question]:
    """Everything once more with float32 in the place of float64."""
    questions = [
        question
        for question, reply in pairs
        # Parameters begin as they like: their first values are drawn, and weights are loaded.
        if question.request not in ("gradients", "parameters")
        and not reply.drew
        and _small(question.details)
        # A function that is given no precision chooses its own; a module has that of its weights.
        and (question.handle or question.built or _has_float64(question.details))
    ]
    if not any(_has_float64(question.details) for question in questions):
        return []
    return [
        moved(question, OFFSET, details=mapped(_narrowed, copied(question.details)))
        for question in questions
    ]


def _narrowed(value: Any) -> Any:
    """Float32 in the place of float64, laid out alike: a fault of layout is none of precision."""
    if getattr(value, "dtype", None) != torch.float64:
        return value
    if value.layout is not torch.strided:
        return value.float()
    whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
    return whole.float().as_strided(value.shape, value.stride(), value.storage_offset())


def _has_tensor(value: Any) -> bool:
    return any(isinstance(item, torch.Tensor) and item.dim() for item in leaves(value))


def _has_float64(value: Any) -> bool:
    return any(getattr(item, "dtype", None) == torch.float64 for item in leaves(value))


def _in_turn(pairs: Sequence[Pair]) -> list[Question]:
    """The questions to two objects that are built alike, and to one that is built otherwise.

    Each of the two is to answer as if it were alone.
    The first object of the check that answers twice without drawing is built twice more; else the
    first that answers once.
    """
    lives = [(build, _life(pairs, build.built)) for build, _ in pairs if build.built]
    lives = [(build, life) for build, life in lives if _count_calls(life)]
    if not lives:
        return []
    build, life = max(lives, key=lambda pair: _count_calls(pair[1]))  # the first of several
    ready = [one.request for one in life].index("call")
    made = [moved(one, offset) for offset in (ONE, OTHER) for one in (build, *life[:ready])]
    made += [moved(one, THIRD) for one in _built_otherwise(pairs, build)]
    return made + [moved(one, offset) for one in life[ready:] for offset in (ONE, OTHER)]


def _life(pairs: Sequence[Pair], number: int) -> list[Question]:
    """What object ``number`` is asked, up to its last turn, as far as chance has no part in it."""
    life: list[Question] = []
    for question, reply in pairs:
        if question.handle == number:
            if reply.drew or reply.kind != "value" or _count_calls(life) == TURNS:
                break
            life += [question] if question.request != "parameters" else []
    while life and life[-1].request != "call":
        life.pop()
    return life


def _count_calls(life: Sequence[Question]) -> int:
    return sum(question.request == "call" for question in life)


def _built_otherwise(pairs: Sequence[Pair], build: Question) -> list[Question]:
    """The first construction with other arguments, which may disturb those built before."""
    known = str(build.details)
    others = [one for one, reply in pairs if one.built and reply.kind == "value"]
    return [one for one in others if str(one.details) != known][:1]


# From the check's questions, with the right replies, to the questions of each probe.
PROBES = {
    "device": _device,
    "float32": _float32,
    "gradients": _gradients,
    "again": _again,
    "turns": _in_turn,
}
