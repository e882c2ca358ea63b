"""Where an answer fails: the expressions in which a value of a right answer makes it right.

It runs beside the student's code, as all of this room: what it finds is asked again from outside.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from autograder.inside.expressions import Program, Watch
from autograder.inside.messages.codec import pack
from autograder.inside.messages.values import copied, same, same_refusal

# What is tried: values, and evaluations in all. A clock would decide otherwise on another machine.
TRIES, STEPS = 1500, 60_000
SECONDS = 0.8  # of processor time, or 20 times as long asleep: who takes that is told nothing
FOUND, FOR_ONE = 4, 2  # places in all, and values for one expression

Passes = list[Any]  # the values of one expression in one request, pass by pass
Make = Callable[[Any, Watch], Any]  # an answer of a target at whose expressions a watch stands


def exchanged(
    target: Any, make: Make, place: Sequence[int], way: str, values: Sequence[Any]
) -> Any:
    """The answer in which ``values``, one for each request that runs code, stand at a ``place``.

    place  the numbers of its expressions, from ``places``, which says ``way``, too

    Raises ValueError where the text of the answer is not there.
    """
    watch = Watch(put=_puts(values, way))
    return make(Program(target).made(watch, place), watch)


def places(target: Any, make: Make, trials: Sequence[Any], named: int) -> list[dict[str, Any]]:
    """Where a value of a right answer makes all ``trials`` right: those first that run first.

    trials  each [requests to an answer, (kind, value) of the right reply to the last, values]: of
            each value that right answers have, by request that runs code, its passes or None. A
            request is [number of the object, its kind, details, number of a new object, how]
    named   so many of the values, the first, are of a name: only such stand where a name is read
    returns of each place the numbers of its expressions, ``place``, which all have one text;
            ``right`` and ``way``: which value stood there, and how; ``lines``, ``text`` and
            ``within`` as in Expression; ``passes``: its values in request ``at`` of the first
            trial's, or None

    Raises ValueError where the text of the answer is not there.
    """
    program, search, found = Program(target), _Search(trials, named), list[dict[str, Any]]()
    watch, last = Watch(notes=True), len(trials[0][2][0]) - 1
    if search.reply(make(program.made(watch), watch), trials[0]):
        return found  # whatever is put there: its fault is in what it keeps between calls
    own = {n: (at, passes) for at, one in enumerate(watch.values()) for n, passes in one.items()}
    sites, seen = program.places(own), set[Any]()
    reached = [one for one in sites if all(own.get(n, (0, None))[1] for n in one)]
    strange = [one for one in reached if search.is_strange(*own[one[0]])]
    missed = [one for one in sites if search.raised and not any(n in own for n in one)]
    known = [one for one in reached if one not in strange]

    def look(some: Sequence[Any]) -> None:
        for place in some:
            if place in seen or search.is_over(len(found)):
                continue
            seen.add(place)
            at, mine = own.get(place[0], (last, None))
            hits = list(search.hits(program, make, place, at, mine))
            if hits and not program.is_constant(place):  # it may come of what was there before
                look([one for one in sites[: sites.index(place)] if one in known])
            for right, way in hits:
                put = {"right": right, "way": way, "at": at, "passes": mine}
                found.append(program.about(place) | put)

    # A value that no right answer has is the first to be looked at, and of these a number.
    look(sorted(strange, key=lambda one: not program.is_constant(one)))
    look(missed)
    look([] if found else known)
    return [] if search.is_late else found


class _Search:
    """Tries values at expressions, as many as there are to be tried."""

    def __init__(self, trials: Sequence[Any], named: int) -> None:
        self._trials, self._named = trials, named
        self._alike = dict[int, list[list[int]]]()  # by request: the values that are alike there
        self._tries = self._steps = 0
        self._start = time.process_time(), time.monotonic()
        self.is_late = self.raised = False

    def is_over(self, found: int = 0) -> bool:
        """Whether enough was found, or tried."""
        busy, past = time.process_time() - self._start[0], time.monotonic() - self._start[1]
        self.is_late = self.is_late or busy > SECONDS or past > 20 * SECONDS
        return self.is_late or found >= FOUND or self._tries > TRIES or self._steps > STEPS

    def is_strange(self, at: int, mine: Passes | None) -> bool:
        """Whether no right answer has these values in a request."""
        values = self._trials[0][2]
        return not any(same(mine, values[numbers[0]][at]) for numbers in self._alike_at(at))

    def hits(
        self, program: Program, make: Make, place: Sequence[int], at: int, mine: Passes | None
    ) -> Iterator[tuple[int, str]]:
        """The right values, and ways to put them, that make all trials right at one place."""
        fitting, hits = list[tuple[int, list[int], str]](), 0
        is_name = program.expressions[place[0]].is_name
        for every in self._alike_at(at):
            numbers = [one for one in every if one < self._named] if is_name else every
            passes = self._trials[0][2][numbers[0]][at] if numbers else []
            ways = _ways(mine, passes) if numbers else ()
            apart = ((_unlike(mine, passes, way), way) for way in ways)
            fitting += [(far, numbers, way) for far, way in apart if far is not None]
        target = program.made(watch := Watch(), place) if fitting else None
        for _, alike, way in sorted(fitting):
            if hits == FOR_ONE or self.is_over():
                return
            first, *others = self._trials
            if not self._is_right(make(target, watch), alike[0], way, first):
                continue  # nor are those that are alike there
            for right in alike:
                if hits < FOR_ONE and all(
                    self._is_right(make(target, watch), right, way, one) for one in others
                ):
                    hits += 1
                    yield right, way

    def _alike_at(self, at: int) -> list[list[int]]:
        """The numbers of the right values, those together that are alike in a request."""
        if at not in self._alike:
            alike = dict[bytes, list[int]]()
            for number, values in enumerate(self._trials[0][2]):
                if values[at] is not None:
                    alike.setdefault(pack({"": values[at]}), []).append(number)
            self._alike[at] = list(alike.values())
        return self._alike[at]

    def _is_right(self, answer: Any, right: int, way: str, trial: Any) -> bool:
        answer.watch.begin(_puts(trial[2][right], way))
        self._tries += 1
        try:
            return self.reply(answer, trial)
        finally:
            self._steps += answer.watch.taken

    def reply(self, answer: Any, trial: Any) -> bool:
        """Put the requests of a trial to an answer; whether the last reply is right."""
        requests, (kind, wanted), _ = trial
        objects = {0: answer}
        try:
            for handle, request, details, built, how in requests:
                reply = getattr(objects[handle], request)(*details, **how)
                if built:
                    objects[built] = reply
        except Exception as error:
            self.raised = True
            raised = getattr(error, "kind", ""), getattr(error, "message", "")
            return kind == "raised" and same_refusal(raised, wanted)
        self.raised = False
        return kind == "value" and same(getattr(reply, "value", None), wanted)


def _puts(values: Iterable[Passes | None], way: str) -> Iterator[Callable[[int], Any] | None]:
    return (None if one is None else given(one, way) for one in values)


def given(passes: Passes, way: str) -> Callable[[int], Any]:
    """The value of each pass of an expression, made of a right one's ``passes`` in this ``way``.

    'pass': that of the same pass; 'same': always the one there is; '0', '1', …: its pieces along
    this axis; '-2', '-3', …: those along the first two, three, … axes together.
    """
    if way == "pass":
        return lambda number: copied(passes[number])
    if way == "same":
        return lambda number: copied(passes[0])
    axis, whole = int(way), passes[0]
    pieces = whole.movedim(axis, 0) if axis >= 0 else whole.flatten(0, -axis - 1)
    return lambda number: copied(pieces[number])


def _ways(mine: Passes | None, right: Passes) -> Iterator[str]:
    """How a right value may stand in the place of the learner's, of which all may be unknown."""
    yield "pass"
    if mine is not None and len(mine) > len(right) == 1:
        yield "same"
        if isinstance(right[0], torch.Tensor):
            shape = right[0].shape
            yield from (str(axis) for axis, size in enumerate(shape) if size == len(mine))
            for axes in range(2, len(shape) + 1):
                if shape[:axes].numel() == len(mine):
                    yield str(-axes)


def _unlike(mine: Passes | None, right: Passes, way: str) -> int | None:
    """How far two values are apart in their form, 0 or 1; None where trying one is no use."""
    if mine is None:
        return 1
    value, count = given(right, way), min(len(mine), len(right) if way == "pass" else len(mine))
    theirs = [value(number) for number in range(count)]
    far = [_apart(*pair) for pair in zip(mine, theirs, strict=False)]
    return None if None in far or same(mine, theirs) else max(one for one in far if one is not None)


def _apart(mine: Any, right: Any) -> int | None:
    kinds = _kind(mine), _kind(right)
    if set(kinds) == {"tensor", "number"}:
        return None if type(mine) is int and right.numel() > 1 else 1  # it is a size or an axis
    if kinds[0] != kinds[1] or type(mine) is int and type(right) is float:
        return None
    if kinds[0] != "tensor" or mine.shape == right.shape:
        return 0
    sizes = [sorted(size for size in one.shape if size > 1) for one in (mine, right)]
    return 1 if sizes[0] in ([], sizes[1]) else None


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "tensor" if value.dtype != torch.bool else "tensor of truths"
    if type(value) in (int, float):
        return "number"
    return "list" if isinstance(value, list | tuple) else type(value).__name__
