"""What stored answers and slips reply, asked only as far as somebody wanted to know, and kept.

A class gives many failing answers to one exercise: each is compared with the same mistakes.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from autograder.checking.questions import Question, Replied, asked, reference, replies
from autograder.checking.registry import Answer, Check
from autograder.checking.slips import Slip, may_not_end, slips
from autograder.inside.answer import LocalAnswer

KEPT = 16  # exercises with a seed
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


def questions_of(item: Check, seed: int, device: bool) -> list[Question]:
    """What an answer is asked; without ``device``, not on the rehearsal device."""
    questions, _ = asked(item, seed)
    return [one for one in questions if device or one.probe != "device"]


@functools.lru_cache(maxsize=KEPT * 50)
def of_answer(
    one: Answer, item: Check, seed: int, device: bool
) -> tuple[Answer, Remembered[Replied]]:
    """A stored answer with its replies."""
    return one, _replies(one.target, questions_of(item, seed, device))


@functools.lru_cache(maxsize=KEPT * 10)
def of_answers_at(
    stored: tuple[Answer, ...], item: Check, seed: int, device: bool, place: int
) -> list[tuple[Answer, Remembered[Replied]]]:
    """Each of the stored answers with its replies to what leads to one question, and to that."""
    questions = questions_of(item, seed, device)
    leading = [questions[number] for number in leading_to(place, questions)]
    return [(one, _replies(one.target, leading)) for one in stored]


def leading_to(place: int, questions: Sequence[Question]) -> list[int]:
    """The numbers of what an object is asked up to one question; of a function, of that alone."""
    handle = questions[place].handle
    if not handle:
        return [place]
    return [n for n, one in enumerate(questions[: place + 1]) if handle in (one.handle, one.built)]


@functools.lru_cache(maxsize=KEPT)
def of_slips(item: Check, seed: int, device: bool) -> Remembered[tuple[Slip, Remembered[Replied]]]:
    """Each slip of the reference with its replies; none where a slip might never end."""
    questions, target = questions_of(item, seed, device), reference(item)
    if target is None or may_not_end(target):
        return Remembered(iter(()))
    return Remembered((slip, _replies(slip.target, questions)) for slip in slips(target))


def _replies(target: Callable[..., Any], questions: Sequence[Question]) -> Remembered[Replied]:
    return Remembered(replies(LocalAnswer(target), questions))
