"""Where an answer fails: the expressions in which a value of a right answer makes it right.

It runs beside the student's code, as all of this room: what it finds is asked again from outside.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.inside.expressions import Program, Watch
from autograder.inside.messages.codec import pack
from autograder.inside.messages.values import same, same_refusal

# What is tried: values, and evaluations in all. A clock would decide otherwise on another machine.
TRIES, STEPS = 1500, 60_000
SECONDS = 0.8  # of processor time: who takes that is told nothing
FOUND, FOR_ONE = 4, 2  # places in all, and values for one expression

Passes = list[Any]  # the values of one expression in one request, pass by pass
Make = Callable[[Any, Watch], Any]  # an answer of a target at whose expressions a watch stands


def exchanged(
    program: Program, make: Make, place: Sequence[int], values: Sequence[Passes | None]
) -> Any:
    """The answer in which ``values``, one for each request that runs code, stand at a ``place``."""
    watch = Watch(place=place, put=values)
    return make(program.made(watch), watch)


def places(program: Program, make: Make, trials: Sequence[Any]) -> list[dict[str, Any]]:
    """Where a value of a right answer makes all ``trials`` right: those first that run first.

    trials  each [requests to an answer, (kind, value) of the right reply to the last, values]: of
            each value that right answers have, by request that runs code, its passes or None. A
            request is [number of the object, its kind, details, number of a new object, how]
    returns of each place its ``expressions``, which have one text, and their numbers, ``place``;
            ``right``: which value stood there; ``passes``: its own in request ``at`` of the first
            trial's, or None; nothing where it takes too long
    """
    search, watch = _Search(program, make, trials), Watch(notes=True)
    reply = _reply(make(program.made(watch), watch), trials[0][0])
    search.raised = reply[0] == "raised"
    if _is_right(reply, trials[0][1]):
        return []  # whatever is put there: its fault is in what it keeps between calls
    own = {n: (at, passes) for at, one in enumerate(watch.values()) for n, passes in one.items()}
    found, seen = list[dict[str, Any]](), set[Any]()

    def look(some: Sequence[Any]) -> None:
        for place in some:
            if place in seen or len(found) >= FOUND or search.is_over():
                continue
            seen.add(place)
            expressions = [list(program.expressions[n]) for n in place]
            at, passes = own.get(place[0], (-1, None))
            hits = search.hits(place, at, passes)
            if hits and not expressions[0][-1]:  # it may come of what was there before
                look([one for one in sites[: sites.index(place)] if one in made])
            about = {"place": list(place), "expressions": expressions, "at": at, "passes": passes}
            found.extend({**about, "right": right} for right in hits)

    def is_open(place: Sequence[int]) -> bool:
        noted = [own[n][1] for n in place if n in own]
        return all(noted) and len(noted) in (len(place), 0 if search.raised else -1)

    sites = list(filter(is_open, program.places(own)))
    names = [one.text.isidentifier() and not one.within for one in program.expressions]
    made = [one for one in sites if not names[one[0]]]
    strange = [one for one in sites if one[0] in own and search.is_strange(*own[one[0]])]
    try:
        # A value that no right answer has is the first to be looked at, and of these a number.
        look(sorted(strange, key=lambda one: not program.expressions[one[0]].within))
        look([one for one in made if one[0] not in own])
        # Before a name is read, a step may be missing.
        look([] if found else sorted(sites, key=lambda one: names[one[0]]))
    except TimeoutError:
        return []
    return found


class _Search:
    """Tries values at expressions, as many as there are to be tried."""

    def __init__(self, program: Program, make: Make, trials: Sequence[Any]) -> None:
        self._program, self._make, self._trials = program, make, trials
        self._tries = self._steps = 0
        self.raised = False  # then sizes may be wrong, too
        self._start = time.process_time()

    def is_over(self) -> bool:
        """Whether enough was tried."""
        if time.process_time() - self._start > SECONDS:
            raise TimeoutError
        return self._tries > TRIES or self._steps > STEPS

    def is_strange(self, at: int, mine: Passes | None) -> bool:
        """Whether no right answer has these values in a request."""
        return not any(same(mine, values[at]) for values in self._trials[0][2])

    def hits(self, place: Sequence[int], at: int, mine: Passes | None) -> list[int]:
        """The right values that make all trials right at one place."""
        first, *others = self._trials
        fitting = [
            (mine is not None and _shapes(one[at]) != _shapes(mine), number)
            for number, one in enumerate(first[2])
            if one[at] and (mine is None or _may_stand(one[at], mine, not self.raised))
        ]
        hits, wrong = list[int](), set[bytes]()
        for _, right in sorted(fitting):
            key = pack({"": first[2][right][at]})
            if len(hits) == FOR_ONE or self.is_over() or key in wrong:
                continue
            if not self._is_right(place, right, first):
                wrong.add(key)  # so are those that are alike there
            elif all(self._is_right(place, right, one) for one in others):
                hits.append(right)
        return hits

    def _is_right(self, place: Sequence[int], right: int, trial: Any) -> bool:
        answer = exchanged(self._program, self._make, place, trial[2][right])
        reply = _reply(answer, trial[0])
        self._tries, self._steps = self._tries + 1, self._steps + answer.watch.taken
        return _is_right(reply, trial[1])


def _reply(answer: Any, requests: Sequence[Any]) -> tuple[str, Any]:
    """The kind and the value of what an answer replies to the last of some requests."""
    objects = {0: answer}
    try:
        for handle, request, details, built, how in requests:
            reply = getattr(objects[handle], request)(*details, **how)
            if built:
                objects[built] = reply
    except Exception as error:
        return "raised", (getattr(error, "kind", ""), getattr(error, "message", ""))
    return "value", getattr(reply, "value", None)


def _is_right(reply: tuple[str, Any], wanted: tuple[str, Any]) -> bool:
    alike = same_refusal if reply[0] == "raised" else same
    return reply[0] == wanted[0] and alike(reply[1], wanted[1])


def _may_stand(right: Passes, mine: Passes, sized: bool) -> bool:
    """Whether other values may stand in the place of these: of one form, or for one number."""
    pairs = zip(mine, right, strict=False)
    forms = ((_form(one, sized), _form(other, sized)) for one, other in pairs)
    alike = all(x == y or x == (False,) and y[0] in (False, int) for x, y in forms)
    return alike and not same(mine, right)


def _form(value: Any, sized: bool) -> tuple[Any, ...]:
    if isinstance(value, torch.Tensor):
        sizes = sorted(size for size in value.shape if sized and size > 1)
        return value.dtype == torch.bool, *sizes
    return (False,) if type(value) is float else (list if type(value) is tuple else type(value),)


def _shapes(passes: Passes) -> list[Any]:
    return [getattr(one, "shape", None) for one in passes]
