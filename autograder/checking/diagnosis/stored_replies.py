"""What stored answers reply, asked only as far as somebody wanted to know, and kept.

A class gives many failing answers to one exercise: each is compared with the same mistakes.
"""

import contextlib
import copy
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from autograder.checking.asking import recordings
from autograder.checking.asking.questions import KEPT, Question, Replied, replies
from autograder.checking.asking.right_answer import asked
from autograder.checking.asking.rounding import alike, nearest, rooms
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import Answer, Check
from autograder.inside.answer import LocalAnswer
from autograder.inside.isolation import data_held

T = TypeVar("T")
ROOM = 2**30  # bytes: far more than any right answer takes for what checks ask


class Lazy(Generic[T]):
    """An iterator that can be read again from the start: what it gave is kept."""

    def __init__(self, rest: Iterator[T]) -> None:
        (self._start,) = itertools.tee(rest, 1)

    def __iter__(self) -> Iterator[T]:
        return copy.copy(self._start)


@dataclass(frozen=True)
class Comparison:
    """An exercise and a seed; without ``care``, what only the care share depends on is left out."""

    item: Check
    seed: int
    care: bool

    def questions(self) -> list[Question]:
        """What is asked of all that are compared."""
        return [one for one in asked(self.item, self.seed)[0] if self.care or not one.is_care]


@functools.lru_cache(maxsize=KEPT * 250)
def of_answer(one: Answer, comparison: Comparison) -> Lazy[Replied]:
    """What a stored answer replies."""
    questions = comparison.questions()
    if one.target is recordings.unseen:
        return Lazy(_recorded(one, comparison, questions))
    numbers = _numbers(comparison, questions)

    def roomy() -> Iterator[Replied]:
        given = replies(LocalAnswer(one.target), questions)
        for number, question, reply in zip(numbers, questions, given, strict=False):
            near = nearest(comparison.item, comparison.seed, number, question, reply)
            yield _Roomy(**vars(near), comparison=comparison, number=number)

    return Lazy(roomy())


def _numbers(comparison: Comparison, questions: Sequence[Question]) -> list[int]:
    """The places of some questions among all that are asked."""
    everything, _ = asked(comparison.item, comparison.seed)
    known = {id(question): number for number, question in enumerate(everything)}
    return [known[id(question)] for question in questions]


@contextlib.contextmanager
def little_memory(room: int = ROOM) -> Iterator[None]:
    """Let this process take only so many more bytes: an answer in which a number is another one may
    ask for any number of them. What it cannot have is an error like any other.
    Where the system has no such limit, nothing is limited.
    """
    held = data_held()
    if held is None:
        yield
        return
    import resource  # Unix alone has it

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = [held + room, *(one for one in (soft, hard) if one != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(most), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def mistakes_of(comparison: Comparison) -> tuple[Answer, ...]:
    """The stored mistakes, and those of which only the replies on this seed are here."""
    here = registry.mistakes(comparison.item)
    names = {one.name for one in here}
    only_replies = [
        Answer(name, comparison.item.name, recordings.unseen, hint)
        for name, (hint, _) in recordings.mistakes(comparison.item, comparison.seed).items()
        if name not in names
    ]
    return (*here, *only_replies)


@dataclass(frozen=True)
class _Roomy(Replied):
    """A reply that is as near to another as float32 may lead from one to the other."""

    comparison: Comparison | None = None
    number: int = 0

    def agrees(self, other: Replied, exactly: bool = False) -> bool:
        if super().agrees(other, exactly):
            return True
        if exactly or self.comparison is None or not self.kind == other.kind == "value":
            return False
        item, seed = self.comparison.item, self.comparison.seed
        room, right = rooms(item, seed)[self.number], asked(item, seed)[1][self.number]
        if alike(self.value, right.value, room):
            return False  # its form alone is at fault, which no room is for
        return self.modified == other.modified and alike(self.value, other.value, room)


class _InShort(Replied):
    """A reply that was recorded: of a large tensor only a fingerprint is there."""

    def agrees(self, other: Replied, exactly: bool = False) -> bool:
        if self.kind != "value" or other.kind != "value":
            return super().agrees(other, exactly)
        return self.modified == other.modified and recordings.fits(self.value, other.value, exactly)


def _recorded(
    one: Answer, comparison: Comparison, questions: Sequence[Question]
) -> Iterator[Replied]:
    _, wanted = asked(comparison.item, comparison.seed)
    _, kept = recordings.mistakes(comparison.item, comparison.seed)[one.name]
    for number in _numbers(comparison, questions):
        if kept[number] is None:
            yield wanted[number]
        else:
            kind, value, modified = kept[number]
            value = tuple(value) if kind == "raised" else value
            yield _InShort(kind, value, tuple(modified))
