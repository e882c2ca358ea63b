"""The questions that a check asks of a right answer, and what any answer replies to them.

A check stops at the first thing that is wrong. To say what is wrong, more must be known: so the
questions that the right answer was asked are put to the failing one too, all of them, and its
replies compared as a whole.
"""

import functools
import importlib
from dataclasses import dataclass

from autograder.checking.expect import CheckFailed
from autograder.checking.inputs import Draw
from autograder.checking.probes import probes_of, proves
from autograder.checking.student import Student
from autograder.inside.answer import AnswerLost, AnswerRaised, LocalAnswer
from autograder.inside.values import copied, same

DRAWN = 20_000  # the seed of what an answer draws while questions are put to it


@dataclass(frozen=True)
class Question:
    """One request: to object number ``handle`` (0 is the answer, others were built from it)."""

    handle: int
    request: str  # call, gradients, build, parameters, load, train
    details: tuple
    built: int = 0  # of a build: the number of the new object
    how: tuple = ()  # on which device
    probe: str = ""  # '' if the check itself asks it
    origin: int = -1  # of a probe: the number of the check's question that it is made from


@dataclass(frozen=True)
class Replied:
    """What came back: ``kind`` is 'value', 'raised' or 'absent' (the object was never built)."""

    kind: str
    value: object = None
    modified: tuple = ()
    where: str = ""  # the failing line of the answer's own code

    def agrees(self, other):
        """Whether two replies are the same, up to rounding."""
        alike = self.kind == other.kind and self.modified == other.modified
        return alike and same(self.value, other.value)


class _Recorder:
    """An answer that notes what it is asked."""

    def __init__(self, answer, asked, count, handle=0):
        self._answer, self._asked, self._count, self._handle = answer, asked, count, handle

    def _note(self, request, details, built=0):
        self._asked.append(Question(self._handle, request, copied(details), built))

    def call(self, args, kwargs, **how):
        self._note("call", (list(args), kwargs))
        return self._answer.call(args, kwargs, **how)

    def gradients(self, args, kwargs, cotangent, **how):
        self._note("gradients", (list(args), kwargs, cotangent))
        return self._answer.gradients(args, kwargs, cotangent, **how)

    def build(self, args, kwargs, **how):
        self._count.append(None)
        built = len(self._count)
        self._note("build", (list(args), kwargs), built)
        made = self._answer.build(args, kwargs, **how)
        return _Recorder(made, self._asked, self._count, built)

    def parameters(self):
        self._note("parameters", ())
        return self._answer.parameters()

    def load(self, values):
        self._note("load", (values,))
        self._answer.load(values)

    def train(self, mode):
        self._note("train", (mode,))
        self._answer.train(mode)


def reference(item):
    """The library's own answer to an exercise, or None where there is none."""
    if item.reference is not None:
        return item.reference
    try:
        return getattr(importlib.import_module(f"attention.{item.lesson}"), item.name, None)
    except ImportError:
        return None


@functools.lru_cache(maxsize=16)
def asked(item, seed):
    """What every answer is asked: a tuple of the check's own questions, then the probes'.

    It is () where there is no right answer to ask first.
    """
    target = reference(item)
    if target is None:
        return ()
    noted = []
    try:
        item.run(Student(_Recorder(LocalAnswer(target), noted, [])), Draw(seed))
    except CheckFailed:
        return ()  # the check refuses the library: `autograder verify` says so
    first = replies(LocalAnswer(target), noted)
    if not agree(first, replies(LocalAnswer(target), noted, DRAWN + 1)):
        return tuple(noted)  # it draws at random: another answer may draw otherwise
    further = probes_of(item, noted, first)
    answered = replies(LocalAnswer(target), [*noted, *further])[len(noted) :]
    return (*noted, *_answerable(further, answered, first))


def _answerable(further, answered, first):
    """The probes' questions that the right answer has a reply to that proves something."""
    kept = []
    for question, reply in zip(further, answered, strict=True):
        narrow = question.probe == "float32" and question.request == "call"
        fit = not narrow or proves(reply.value, first[question.origin].value)
        if reply.kind == "value" and fit:
            kept.append(question)
    return kept


def replies(answer, questions, seed=DRAWN, patient=True):
    """What ``answer`` replies to ``questions``: a list.

    An answer that is lost on the way raises AnswerLost, or, without ``patient``, ends the list.
    """
    objects, given = {0: answer}, []
    for question in questions:
        holder = objects.get(question.handle)
        if holder is None:
            given.append(Replied("absent"))
            continue
        try:
            given.append(_put(question, holder, objects, seed))
        except AnswerRaised as error:
            words = error.kind, _plain_words(error.message)
            given.append(Replied("raised", words, where=error.where))
        except AnswerLost:
            if patient:
                raise
            break
    return given


def _put(question, holder, objects, seed):
    """Put one question to the object that it is for."""
    details = copied(question.details)
    if question.request == "build":
        objects[question.built] = holder.build(*details, seed=seed)
        return Replied("value")
    if question.request in ("call", "gradients"):
        how = {**dict(question.how), "seed": seed}
        reply = getattr(holder, question.request)(*details, **how)
        return Replied("value", reply.value, tuple(reply.modified))
    return Replied("value", getattr(holder, question.request)(*details))


def _plain_words(message):
    """An exception's message without what differs from one function to another: its name."""
    head, mark, rest = message.partition("() ")
    return rest if mark and " " not in head else message


@functools.lru_cache(maxsize=256)
def replies_of(target, item, seed):
    """The replies of a stored answer, or of the reference, kept for the next failing answer."""
    return tuple(replies(LocalAnswer(target), asked(item, seed)))


def agree(left, right):
    """Whether two lists of replies are the same as a whole."""
    return len(left) == len(right) and all(a.agrees(b) for a, b in zip(left, right, strict=True))
