"""How far rounding in float32 takes a right reply: no reply that is as near is wrong.

Checks ask in float64, and learners compute some of it in float32, which is what PyTorch makes of
numbers. What that costs depends on the numbers: a score in the thousands has lost three digits more
than one of about 1. So the right answer itself is asked once more, with each of its steps rounded
to float32, and its replies say how much room there is.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from autograder.checking.asking import recordings
from autograder.checking.asking.questions import (
    KEPT,
    SEEDED,
    Question,
    Replied,
    Session,
    replies,
    until_lost,
)
from autograder.checking.asking.right_answer import asked
from autograder.checking.toolbox.registry import Check, reference
from autograder.checking.toolbox.same_tensors import is_real, unpacked
from autograder.inside.answer import AnyAnswer, LocalAnswer
from autograder.inside.messages.values import leaves, mapped, same

TIMES = 8  # another way to the same result takes other steps, and may take more of them
MOST = 1e-2  # of the largest number: where float32 does worse, it is the question that is at fault
NOTHING = 1e-9  # a number below this is 0 but for the rounding of others
WAYS = 4  # to round, by chance: two numbers that are alike may differ in float32
COPY = (torch.ops.aten.clone, torch.ops.aten.set_)
LIKE_THE_FIRST = ("again", "turns")  # probes that ask the check's own questions once more


class _Rounding(TorchDispatchMode):
    """Within, each float64 result of an operation is rounded to one of float32's two next to it."""

    def __init__(self, way: int) -> None:
        super().__init__()
        self._drawn = torch.Generator().manual_seed(way)
        self._copies = bool(way % 2)  # every other time the arguments as well

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket in COPY and not self._copies:
            return result
        aliases = [one.alias_info for one in func._schema.returns]
        if not any(aliases):
            return tree_map_only(torch.Tensor, self._rounded, result)
        if all(one is not None and one.is_write for one in aliases):
            return tree_map_only(torch.Tensor, self._round, result)
        return result  # a view has nothing of its own to round

    def _round(self, written: torch.Tensor) -> torch.Tensor:
        expanded = any(
            size > 1 and not step
            for size, step in zip(written.shape, written.stride(), strict=True)
        )
        return written if expanded else written.copy_(self._rounded(written))

    def _rounded(self, exact: torch.Tensor) -> torch.Tensor:
        if exact.dtype != torch.float64:
            return exact
        near = exact.float()
        up = torch.rand(exact.shape, generator=self._drawn) < 0.5
        end = torch.where(up, torch.inf, -torch.inf)
        misses = (exact - near) * end > 0
        return torch.where(misses, near.nextafter(end), near).double()


@functools.lru_cache(maxsize=KEPT)
def rooms(item: Check, seed: int) -> Sequence[Any]:
    """Of each question that all answers are asked, how far from the right reply float32 may lead.

    A float in the place of each number and tensor of the reply.
    """
    target = reference(item)
    if target is None:
        return recordings.rooms(item, seed)
    return rooms_of(target, *asked(item, seed))


def rooms_of(
    target: Callable[..., Any], questions: Sequence[Question], wanted: Sequence[Replied]
) -> list[Any]:
    """The same of a right answer that gave the replies ``wanted``."""
    found = [mapped(lambda _: 0.0, right.value) for right in wanted]
    most = [_most(right.value) for right in wanted]
    here = [number for number, one in enumerate(questions) if one.probe in ("", "gradients")]
    for way in range(WAYS):
        with _Rounding(way):
            given = until_lost(replies(LocalAnswer(target), [questions[one] for one in here]))
        for number, got in zip(here, given, strict=False):
            found[number] = _paired(_farther, got.value, wanted[number].value, found[number])
    for number, one in enumerate(questions):
        found[number] = found[one.origin if one.probe in LIKE_THE_FIRST else number]
    return [_at_most(end, one) for one, end in zip(found, most, strict=True)]


def _at_most(end: float, rooms: Any) -> Any:
    """The rooms for the distances found, none larger than ``end``."""
    return mapped(lambda distance: min(TIMES * distance, end), rooms)


def session(item: Check, answer: AnyAnswer, seed: int) -> Session:
    """A session with an answer whose numbers become the right ones where they are as near."""
    return Session(answer, near=functools.partial(nearest, item, seed))


def nearest(item: Check, seed: int, number: int, question: Question, got: Replied) -> Replied:
    """A reply to a question, the ``number``-th of all, with the right numbers where as near."""
    if question.request not in SEEDED or got.kind != "value" or not item.has_one_right_answer:
        return got
    # Outside of the stage, or of the care, in which the answer is asked at the moment.
    questions, wanted = Context().run(asked, item, seed)
    if number >= len(questions) or questions[number].form != question.form:
        return got
    right = wanted[number]
    if right.kind != "value" or got.agrees(right) or not _might_be(got.value, right.value):
        return got
    if not same(question.details, questions[number].details):
        return got  # a check asks on by what came back, so this may be another question
    room = [*rooms(item, seed), *[None] * len(wanted)][number]
    make = _mended if question.request == "gradients" else _mended_but_zeros
    return dataclasses.replace(got, value=_paired(make, got.value, right.value, room))


def alike(one: Any, other: Any, room: Any) -> bool:
    """Whether the numbers of two replies, right or wrong, are as near to each other as that.

    Or as near as float32 has numbers of their own size: wrong ones may be much larger.
    """
    found = []

    def look(one: Any, other: Any, room: Any) -> None:
        off = _off(one, other)
        if off is None:
            found.append(same(one, other))
        else:  # where the right reply is of another build, there is no room
            own = TIMES * 2**-23 * _most(other) / MOST
            found.append(isinstance(room, float) and bool((off <= max(room, own, NOTHING)).all()))

    _paired(look, one, other, room)
    return all(found)


def _paired(make: Callable[..., Any], got: Any, right: Any, room: Any) -> Any:
    """What ``make`` gives for each item of a reply; where the builds differ, for the whole."""
    if isinstance(got, dict) and isinstance(right, dict) and isinstance(room, dict):
        return {
            name: _paired(make, one, right.get(name), room.get(name)) for name, one in got.items()
        }
    several = all(isinstance(one, list | tuple) for one in (got, right, room))
    if several and len(got) == len(right) == len(room):
        return type(got)(_paired(make, *three) for three in zip(got, right, room, strict=True))
    return make(got, right, room)


def _off(got: Any, right: Any) -> torch.Tensor | None:
    """How far each number is from the right one; None where these are no numbers of one form."""
    got, right = unpacked(got), unpacked(right)
    if not (is_real(got) and is_real(right)) or got.shape != right.shape or not right.numel():
        return None
    same = (got == right) | (got.isnan() & right.isnan())  # infinities are no distance apart
    return (got.double() - right.double()).abs().masked_fill(same, 0.0)


def _most(right: Any) -> float:
    """How far off a number of a reply may be at most."""
    items = [item for item in map(unpacked, leaves(right)) if is_real(item)]
    finite = [item[item.isfinite()].abs().max() for item in items if item.isfinite().any()]
    return MOST * max(map(float, finite), default=0.0)


def _farther(got: Any, right: Any, room: Any) -> Any:
    """The room for one item, where rounding once more made it ``got``."""
    off = _off(got, right)
    if off is None or not off.isfinite().all():
        return room
    return max(room, float(off.max()))


def _might_be(got: Any, right: Any) -> bool:
    """Whether an item is off, but by so little that rounding may be why."""
    found = []
    _paired(lambda one, other, _: found.append((_off(one, other), other)), got, right, right)
    return any(
        off is not None and bool(((off > 0) & (off <= _most(other))).any()) for off, other in found
    )


def _mended(got: Any, right: Any, room: Any, but_for: float = torch.nan) -> Any:
    """An item with the right numbers where its own are as near, save those that are ``but_for``."""
    off = _off(got, right)
    if off is None or not room:
        return got
    near = (off <= room) & (unpacked(right) != but_for)
    if isinstance(got, torch.Tensor):
        return torch.where(near, unpacked(right).to(got.dtype), got)
    return float(right) if near else got


def _mended_but_zeros(got: Any, right: Any, room: Any) -> Any:
    """The same; what is exactly 0, a weight of padding, say, has no rounding."""
    return _mended(got, right, room, 0)
