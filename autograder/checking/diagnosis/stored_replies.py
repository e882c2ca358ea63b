"""What stored answers and slips reply, asked only as far as somebody wanted to know, and kept.

A class gives many failing answers to one exercise: each is compared with the same mistakes.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from autograder.checking.asking import recordings
from autograder.checking.asking.fingerprints import fits
from autograder.checking.asking.questions import KEPT, Question, Replied, replies
from autograder.checking.asking.right_answer import asked, reference
from autograder.checking.diagnosis.mutations import Slip, may_not_end, slips
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import Answer, Check
from autograder.inside.answer import LocalAnswer

T = TypeVar("T")


class Remembered(Generic[T]):
    """An iterator that can be read again from the start: what it gave is kept."""

    def __init__(self, rest: Iterator[T]) -> None:
        self._known: list[T] = []
        self._rest = rest

    def __iter__(self) -> Iterator[T]:
        place = 0
        while True:
            if place == len(self._known):
                try:
                    self._known.append(next(self._rest))
                except StopIteration:
                    return
            yield self._known[place]
            place += 1


def questions_of(item: Check, seed: int, care: bool) -> list[Question]:
    """What an answer is asked; without ``care``, what only the care share depends on is not."""
    questions, _ = asked(item, seed)
    return [one for one in questions if care or not one.is_care]


@functools.lru_cache(maxsize=KEPT * 50)
def of_answer(
    one: Answer, item: Check, seed: int, care: bool
) -> tuple[Answer, Remembered[Replied]]:
    """A stored answer with its replies."""
    return one, _replies_of(one, item, seed, questions_of(item, seed, care))


@functools.lru_cache(maxsize=KEPT * 10)
def of_answers_at(
    stored: tuple[Answer, ...], item: Check, seed: int, care: bool, place: int
) -> list[tuple[Answer, Remembered[Replied]]]:
    """Each of the stored answers with its replies to what leads to one question, and to that."""
    questions = questions_of(item, seed, care)
    leading = [questions[number] for number in leading_to(place, questions)]
    return [(one, _replies_of(one, item, seed, leading)) for one in stored]


def leading_to(place: int, questions: Sequence[Question]) -> list[int]:
    """The numbers of what an object is asked up to one question; of a function, of that alone."""
    handle = questions[place].handle
    if not handle:
        return [place]
    return [n for n, one in enumerate(questions[: place + 1]) if handle in (one.handle, one.built)]


@functools.lru_cache(maxsize=KEPT)
def of_slips(item: Check, seed: int, care: bool) -> Remembered[tuple[Slip, Remembered[Replied]]]:
    """Each slip of the reference with its replies; none where a slip might never end.

    Without ``care``, not on the rehearsal device.
    """
    questions = [one for one in asked(item, seed)[0] if care or one.probe != "device"]
    target = reference(item)
    if target is None or may_not_end(target):
        return Remembered(iter(()))
    return Remembered((slip, _replies(slip.target, questions)) for slip in slips(target))


def mistakes_of(item: Check, seed: int) -> tuple[Answer, ...]:
    """The stored mistakes, and those of which only the replies on this seed are here."""
    here = registry.mistakes(item)
    names = {one.name for one in here}
    kept = recordings.mistakes(item, seed)
    only_replies = [
        Answer(name, item.name, recordings.unseen, hint)
        for name, (hint, _) in kept.items()
        if name not in names
    ]
    return (*here, *only_replies)


class _InShort(Replied):
    """A reply that was recorded: of a large tensor only a sketch is there."""

    def agrees(self, other: Replied, exactly: bool = False) -> bool:
        """As of any reply."""
        if self.kind != "value" or other.kind != "value":
            return super().agrees(other, exactly)
        return self.modified == other.modified and fits(self.value, other.value, exactly)


def _replies_of(
    one: Answer, item: Check, seed: int, questions: Sequence[Question]
) -> Remembered[Replied]:
    if one.target is recordings.unseen:
        return Remembered(_recorded(one, item, seed, questions))
    return _replies(one.target, questions)


def _recorded(
    one: Answer, item: Check, seed: int, questions: Sequence[Question]
) -> Iterator[Replied]:
    everything, wanted = asked(item, seed)
    numbers = {id(question): number for number, question in enumerate(everything)}
    _, kept = recordings.mistakes(item, seed)[one.name]
    for number in (numbers[id(question)] for question in questions):
        if kept[number] is None:
            yield wanted[number]
        else:
            kind, value, modified = kept[number]
            value = tuple(value) if kind == "raised" else value
            yield _InShort(kind, value, tuple(modified))


def _replies(target: Callable[..., Any], questions: Sequence[Question]) -> Remembered[Replied]:
    return Remembered(replies(LocalAnswer(target), questions))
