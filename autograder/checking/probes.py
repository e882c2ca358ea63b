"""What every answer is asked beyond its check: on a GPU, in float32, for gradients, once more.

The probes are made from the questions that the check asks of the right answer, so a new exercise
has them for nothing. Where the right answer itself cannot be asked, the probe is left out; where
the exercise's text does not demand what a probe asks for, its check says ``without``.
"""

import dataclasses
from collections.abc import Container, Iterator, Sequence
from typing import Any

import torch

from autograder.checking.expect import CheckFailed
from autograder.checking.questions import Question, Replied, floating_places
from autograder.checking.registry import Check
from autograder.inside.answer import LEFT_BEHIND
from autograder.inside.rehearsal import DEVICE, Unrehearsable
from autograder.inside.values import copied

Pair = tuple[Question, Replied]

PROBES = ("device", "float32", "gradients", "again")
MOST = 6  # questions for a probe, save float32, where all are asked
LARGE = 100_000  # numbers among the arguments: a call with more is not repeated
AGAIN = 1  # the seed of what an answer draws where it is asked once more
OFFSET = 1000  # what is added to the number of an object that is built in float32
MOVED = 2000  # and of one that is built to be called on the rehearsal device
ROOM = 2e-3  # how far float32 may be from float64, in shares of the largest number
NOTHING = 1e-9  # a gradient below this is 0 but for rounding: of a bias of the keys, say
WELL = 1e-4  # where the right answer itself is farther than this from float64, it proves nothing


def probes_of(
    item: Check, questions: Sequence[Question], replied: Sequence[Replied]
) -> list[Question]:
    """The further questions: a list of Question, each with ``probe`` set to its probe's name."""
    left_out = {name for name, _ in item.without}
    makers = {"device": _device, "float32": _float32, "gradients": _gradients, "again": _again}
    numbered = [
        (dataclasses.replace(question, origin=number), reply)
        for number, (question, reply) in enumerate(zip(questions, replied, strict=True))
    ]
    return [
        dataclasses.replace(one, probe=name)
        for name in PROBES
        if name not in left_out
        for one in makers[name](numbered)
    ]


def answerable(
    further: Sequence[Question], answered: Sequence[Replied], first: Sequence[Replied]
) -> list[Pair]:
    """Pairs (question, reply) of those that the right answer has a reply to that proves something.

    ``first`` are its replies to the check's own questions.
    """
    kept = []
    for question, reply in zip(further, answered, strict=True):
        narrow = question.probe == "float32" and question.request == "call"
        fit = not narrow or proves(reply.value, first[question.origin].value)
        if question.probe == "again":  # a cache, say, remembers
            fit = reply.agrees(first[question.origin])
        if question.probe == "gradients":
            fit = reply.kind == "value" and _has_gradient(reply.value)
        if reply.kind == "value" and fit:
            kept.append((question, reply))
    return kept


def _has_gradient(value: Any) -> bool:
    """Whether the right answer has any gradient that is not 0."""
    found = [*value[0].values(), *value[1]] if isinstance(value, tuple) else []
    return any(one is not None and bool((one != 0).any()) for one in found)


def _calls(pairs: list[Pair]) -> list[Pair]:
    """Questions that are calls and were answered, unlike each other in form, and not huge."""
    seen, chosen = set(), []
    for question, reply in pairs:
        if question.request == "call" and reply.kind == "value" and _small(question.details):
            args, kwargs = question.details
            form = (question.handle, len(args), tuple(kwargs), _axes(args))
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
        for question, _ in _calls(pairs)
        if _has_tensor(question.details) or "device" in question.details[1]
    ]
    handles = {question.handle for question in calls} - {0}
    made = []
    for question, _ in pairs:
        if any(question is call for call in calls):
            how = (("device", "rehearsal"),)
            made.append(_moved(question, how=how, details=_there(question.details)))
        elif question.built in handles or _prepares(question, handles):
            made.append(_moved(question))
    return made


def _prepares(question: Question, handles: Container[int]) -> bool:
    return question.handle in handles and question.request in ("load", "train")


def _moved(question: Question, **changes: Any) -> Question:
    """The same question to, or building, an object of its own."""
    handle = question.handle and question.handle + MOVED
    built = question.built and question.built + MOVED
    return dataclasses.replace(question, handle=handle, built=built, **changes)


def _there(details: Any) -> tuple[Any, Any]:
    args, kwargs = details
    return args, {**kwargs, "device": DEVICE.type} if "device" in kwargs else kwargs


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
        if not isinstance(first, torch.Tensor) or not first.is_floating_point():
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
        dataclasses.replace(
            question,
            handle=question.handle and question.handle + OFFSET,
            built=question.built and question.built + OFFSET,
            details=_narrowed(copied(question.details)),
        )
        for question in questions
    ]


def _narrowed(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype == torch.float64 else value
    if type(value) in (list, tuple):
        return type(value)(_narrowed(item) for item in value)
    if type(value) is dict:
        return {key: _narrowed(item) for key, item in value.items()}
    return value


def _has_tensor(value: Any) -> bool:
    return any(isinstance(item, torch.Tensor) and item.dim() for item in leaves(value))


def _has_float64(value: Any) -> bool:
    return any(getattr(item, "dtype", None) == torch.float64 for item in leaves(value))


def leaves(value: Any) -> Iterator[Any]:
    """Yield the items of containers, however deep."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def refuse(question: Question, got: Replied, wanted: Replied, earlier: Replied) -> None:
    """Raise CheckFailed if the reply to a probe is not that of the right answer, or near it.

    ``earlier`` is the answer's own reply to the question that the probe is made from.
    """
    if question.probe == "device":
        _refuse_device(got, wanted)
        return
    if got.modified != wanted.modified and got.kind == "value":
        raise CheckFailed(
            "the values are right, but something else is changed",
            f"{', '.join(got.modified) or 'nothing'} changed by the call",
            "everything outside of the function as it was",
        )
    if question.probe == "float32":
        _refuse_float32(got, wanted)
    elif question.probe == "gradients":
        _refuse_gradients(got, wanted, floating_places(question))
    elif not got.agrees(earlier):
        raise CheckFailed(
            "the same call gives another result the second time",
            "a result that depends on the calls before, or on chance",
            "the same result for the same arguments",
        )


def _refuse_device(got: Replied, wanted: Replied) -> None:
    if LEFT_BEHIND in got.modified and LEFT_BEHIND not in wanted.modified:
        raise CheckFailed(
            "on a GPU the result would be left on the CPU",
            LEFT_BEHIND,
            "a result on the device of the arguments, or on the one that is asked for",
        )
    if got.kind != "raised":
        return
    kind, message, where = (*got.value, "")[:3]
    if "inference tensor" in message or kind == Unrehearsable.__name__:
        return  # the rehearsal cannot go into inference_mode, say; a GPU can
    reason = f"{kind}: {message.splitlines()[0] if message else ''}"
    raise CheckFailed(
        "on a GPU this fails",
        "\n".join(part for part in (reason, where) if part),
        "tensors made where the arguments are: pass device=x.device, or use x.new_zeros(…)",
    )


def _refuse_float32(got: Replied, wanted: Replied) -> None:
    if got.kind == "raised":
        raise CheckFailed(
            "with float32 arguments your code raises an exception",
            ": ".join(got.value[:2]),
            "a result in float32",
        )
    for one, other in _paired(got.value, wanted.value):
        if not isinstance(other, torch.Tensor) or isinstance(one, float):
            continue
        if not isinstance(one, torch.Tensor) or one.shape != other.shape:
            raise CheckFailed("with float32 arguments the result has another form")
        if one.dtype != other.dtype:
            raise CheckFailed(
                "the dtype is wrong: float32 goes in, something else comes out",
                str(one.dtype),
                str(other.dtype),
            )
        if other.is_floating_point() and not _near(one, other, ROOM):
            raise CheckFailed(
                "with float32 arguments the values are wrong",
                _worst(one, other),
                "the values of float64, up to rounding",
            )


def _worst(one: Any, other: Any) -> str:
    broken = int((~torch.isfinite(one) & torch.isfinite(other)).sum())
    if broken:
        return f"{broken} of {one.numel()} numbers are NaN or infinite"
    return f"off by up to {(one - other).abs().nan_to_num().max().item():.3g}"


def _refuse_gradients(got: Replied, wanted: Replied, places: list[int]) -> None:
    if got.kind == "raised":
        raise CheckFailed("asked for gradients, your code raises", ": ".join(got.value[:2]))
    if not isinstance(got.value, tuple):
        raise CheckFailed("the result is not a tensor, so it has no gradient")
    for name, other in wanted.value[0].items():
        _refuse_gradient(got.value[0].get(name), other, name)
    for place, one, other in zip(places, got.value[1], wanted.value[1], strict=False):
        _refuse_gradient(one, other, f"argument {place}")


def _refuse_gradient(one: Any, other: Any, name: str) -> None:
    if other is None or not other.abs().max() > NOTHING:
        return
    if one is None:
        raise CheckFailed(
            f"no gradient flows back to {name}",
            "no gradient (detached, or rebuilt from plain numbers)",
            "a gradient: every step stays a tensor operation",
        )
    if one.shape != other.shape or not _near(one, other, 1e-5):
        raise CheckFailed(f"the gradient of {name} is wrong", _worst(one, other), "autograd's")


def _near(one: Any, other: Any, room: float) -> bool:
    """Whether two tensors are equal up to ``room`` times the largest number in the right one."""
    if not torch.equal(torch.isnan(one), torch.isnan(other)):
        return False
    finite = torch.isfinite(other)
    if not torch.equal(one[~finite].nan_to_num(0), other[~finite].nan_to_num(0).to(one.dtype)):
        return False
    if not torch.isfinite(one[finite]).all():
        return False
    scale = max(1e-30, other[finite].abs().max().item()) if finite.any() else 1.0
    return bool(((one[finite] - other[finite]).abs() <= room * scale).all())


def _paired(one: Any, other: Any) -> list[tuple[Any, Any]]:
    """Pairs of items of two values of the same build; a lone value is one pair."""
    if isinstance(other, list | tuple) and isinstance(one, list | tuple):
        return list(zip(one, other, strict=False))
    if isinstance(other, dict) and isinstance(one, dict):
        return [(one.get(name), item) for name, item in other.items()]
    return [(one, other)]


def proves(in_float32: Any, in_float64: Any) -> bool:
    """Whether a right answer's reply in float32 is near that in float64: else it proves nothing."""
    pairs = [
        (narrow.double(), wide)
        for narrow, wide in _paired(in_float32, in_float64)
        if isinstance(wide, torch.Tensor)
        and isinstance(narrow, torch.Tensor)
        and wide.is_floating_point()
        and narrow.shape == wide.shape
    ]
    return bool(pairs) and all(_near(*pair, WELL) for pair in pairs)
