"""A question to an answer, its reply, and whether two replies agree."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.checking.toolbox.failure import current_stage, is_care
from autograder.checking.toolbox.same_tensors import is_real
from autograder.inside import side_effects
from autograder.inside.answer import AnswerLost, AnswerRaised, AnyAnswer, Reply
from autograder.inside.limits import NO_MEMORY
from autograder.inside.messages.values import copied, same, same_refusal

KEPT = 16  # exercises with a seed: more than a lesson has, since a class goes through all of them
DRAWN = 20_000  # from here on are the seeds of what an answer draws while it is asked
# Requests that come with a seed, as constructions do, and whose reply says more than its value.
SEEDED = ("call", "gradients")
FRESH = (("fresh", True),)  # parameters as a module was built: their numbers are drawn at random
# For probes to refuse.
OF_A_SEED = (side_effects.SEEDED, side_effects.DRAWN_FROM, side_effects.MODE)


@dataclass(frozen=True)
class Question:
    """One request: to object number ``handle`` (0 is the answer, others were built from it)."""

    handle: int
    request: str  # call, gradients, build, parameters, load, train
    details: tuple[Any, ...]
    built: int = 0  # of a build: the number of the new object
    how: tuple[Any, ...] = ()  # on which device, drawing from which seed
    probe: str = ""  # '' if the check itself asks it
    origin: int = -1  # of a probe: the number of the check's question that it is made from
    stage: str = ""  # the stage of the exercise that it belongs to, if any
    is_care: bool = False  # whether only the care share depends on the reply

    @property
    def form(self) -> tuple[Any, ...]:
        """All of it but the arguments."""
        return self.handle, self.request, self.built, self.how, self.probe


@dataclass(frozen=True)
class Replied:
    """What came back: ``kind`` is 'value', 'raised' or 'absent' (the object was never built)."""

    kind: str
    value: Any = None
    modified: tuple[str, ...] = ()
    where: str = ""  # the failing line of the answer's own code
    drew: bool = False  # whether it drew at random

    def agrees(self, other: "Replied", exactly: bool = False) -> bool:
        """Whether two replies are the same, up to rounding; ``exactly`` also among tiny numbers."""
        if self.kind != other.kind or self.modified != other.modified:
            return False
        if not (same_refusal if self.refuses() else same)(self.value, other.value):
            return False
        return not exactly or _same_signs(self.value, other.value)

    def refuses(self) -> bool:
        """Whether this is a ValueError, whatever it says."""
        return self.kind == "raised" and self.value[0] == "ValueError"


Pair = tuple[Question, Replied]
Exchange = tuple[Question, Replied, Replied]  # a question, the reply to it, and the right reply


Near = Callable[[int, Question, Replied], Replied]


def _same_signs(one: Any, other: Any) -> bool:
    """Whether tensors have their zeros in the same places: what rounding does not change."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one == 0, other == 0)
    if isinstance(one, list | tuple):
        return all(map(_same_signs, one, other))
    return True


class _Recorder:
    """An answer that notes what it is asked, and what it replies."""

    def __init__(self, answer: AnyAnswer, session: "Session", handle: int = 0) -> None:
        self._answer, self._session, self._handle = answer, session, handle
        self.target = getattr(answer, "target", None)

    def __getattr__(self, request: str) -> Callable[..., Any]:
        def ask(*details: Any) -> Any:
            found = self._session.ask(self._handle, request, details)
            if request == "build":
                return _Recorder(found, self._session, self._session.count)
            if request not in SEEDED:
                return found.value
            return Reply(found.value, [name for name in found.modified if name not in OF_A_SEED])

        return ask


class Session:
    """The questions of a check to an answer and to the objects that it builds, with the replies.

    ``keeps`` is whether the questions are kept as they were asked, whatever becomes of the tensors.
    ``near`` makes of each reply, with its number, what it stands for: see ``rounding``.
    """

    def __init__(
        self, answer: AnyAnswer, keeps: bool = False, near: Near = lambda _, __, reply: reply
    ) -> None:
        self.objects: dict[int, Any] = {0: answer}
        self.questions: list[Question] = []
        self.replies: list[Replied] = []
        self.count = 0  # of the objects that were built, or should have been
        self._keeps, self._near = keeps, near

    def recorder(self) -> _Recorder:
        """What stands in the place of the answer."""
        return _Recorder(self.objects[0], self)

    def all_replies(self, questions: Sequence[Question]) -> Iterator[Replied]:
        """Yield the replies to ``questions``: those that were given, then those to the rest.

        All of them are asked anew where others were asked: what a check asks may depend on what
        came back, as where it hands on the state that a step returned.
        """
        given = zip(self.questions, questions, strict=False)
        fits = all(one.form == two.form and same(one.details, two.details) for one, two in given)
        if fits and len(self.questions) <= len(questions):
            yield from self.replies
            start, objects = len(self.questions), self.objects
        else:
            start, objects = 0, {0: self.objects[0]}
        rest = questions[start:]
        for number, reply in enumerate(replies_of(objects, rest), start):
            yield self._near(number, questions[number], reply)

    def ask(self, handle: int, request: str, details: Any) -> Any:
        """Put a question, which draws from a seed of its own; raises what the answer raises."""
        details = copied(details) if self._keeps else details
        self.count += request == "build"
        built = self.count if request == "build" else 0
        how = (("seed", DRAWN + len(self.questions)),) if request in (*SEEDED, "build") else ()
        if request == "parameters":
            before = {one.request for one in self.questions if one.handle == handle}
            how = FRESH if before <= {"parameters"} else ()
        question = Question(
            handle, request, details, built, how, stage=current_stage(), is_care=is_care()
        )
        self.questions.append(question)
        try:
            reply = _put(question, self.objects[handle], self.objects)
        except AnswerRaised as error:
            self.replies.append(_raised(error))
            raise
        reply = self._near(len(self.questions) - 1, question, reply)
        noted = _as_noted(question, reply)
        self.replies.append(dataclasses.replace(noted, value=copied(noted.value)))
        return self.objects[built] if built else reply


def moved(question: Question, offset: int, **changes: Any) -> Question:
    """The same question to, or building, an object of its own, whose number is so much larger."""
    handle = question.handle and question.handle + offset
    built = question.built and question.built + offset
    return dataclasses.replace(question, handle=handle, built=built, **changes)


def replies(answer: AnyAnswer, questions: Iterable[Question]) -> Iterator[Replied]:
    """Yield what ``answer`` replies to ``questions``, one after the other; raises AnswerLost."""
    return replies_of({0: answer}, questions)


def replies_of(objects: dict[int, Any], questions: Iterable[Question]) -> Iterator[Replied]:
    """Yield the same of the ``objects`` that there are by now, by their numbers."""
    for question in questions:
        holder = objects.get(question.handle)
        if holder is None:
            yield Replied("absent")
            continue
        try:
            yield _as_noted(question, _put(question, holder, objects))
        except AnswerRaised as error:
            yield _raised(error)


def _as_noted(question: Question, reply: Replied) -> Replied:
    """A reply as it is compared: of fresh parameters, a fingerprint."""
    if question.how != FRESH or type(reply.value) is not dict:
        return reply
    return dataclasses.replace(reply, value={n: _fingerprint(x) for n, x in reply.value.items()})


def _fingerprint(drawn: Any) -> Any:
    """What no draw decides: the shape, and the number that fills it or whether it is large."""
    if not isinstance(drawn, torch.Tensor) or drawn.numel() < 2:
        return drawn
    first = drawn.flatten()[0]
    is_large = bool(drawn.abs().double().mean() > 0.5)  # a standard normal is, nn.Linear's is not
    return [*drawn.shape, first.item() if (drawn == first).all() else is_large]


def _raised(error: AnswerRaised) -> Replied:
    return Replied("raised", (error.kind, _plain_words(error.message)), where=error.where)


def until_lost(given: Iterable[Replied]) -> list[Replied]:
    """The replies as a list, which ends where the answer is lost."""
    found = []
    with contextlib.suppress(AnswerLost):
        for reply in given:
            found.append(reply)
    return found


def _put(question: Question, holder: Any, objects: dict[int, Any]) -> Replied:
    details, how = question.details, how_asked(question)  # answers copy them
    if question.request == "build":
        objects[question.built] = holder.build(*details, **how)
        return Replied("value")
    if question.request in SEEDED:
        reply = getattr(holder, question.request)(*details, **how)
        return Replied("value", reply.value, tuple(reply.modified), drew=reply.drew)
    return Replied("value", getattr(holder, question.request)(*details))


def how_asked(question: Question) -> dict[str, Any]:
    """With which seed, and on which device: nothing where none of the answer's code runs."""
    seeded = question.request in ("build", *SEEDED)
    return {"seed": DRAWN, **dict(question.how)} if seeded else {}


def floating_places(question: Question) -> list[int]:
    """Which arguments, counted from 1, a question about gradients has a gradient of each."""
    return [n for n, x in enumerate(question.details[0], start=1) if is_real(x)]


def _plain_words(message: str) -> str:
    """An exception's message without what differs from one function to another: its name."""
    if NO_MEMORY in message:
        return NO_MEMORY  # the rest is of the machine
    head, mark, rest = message.partition("() ")
    return rest if mark and " " not in head else message


def agree(left: Iterable[Replied], right: Iterable[Replied], exactly: bool = False) -> bool:
    """Whether two lists of replies are the same as a whole; either may be an iterator."""
    pairs = itertools.zip_longest(left, right)  # one that was interrupted is shorter
    return all(one and other and one.agrees(other, exactly) for one, other in pairs)
