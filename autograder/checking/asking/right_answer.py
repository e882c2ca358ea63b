"""The questions that a check asks of a right answer: what a failing one is asked as well.

A check stops at the first thing that is wrong. To say what is wrong, more must be known: so the
questions that the right answer was asked are put to the failing one too, all of them, and its
replies compared as a whole.
"""

import functools

from autograder.checking.asking import recordings
from autograder.checking.asking.probes import answerable, probes_of
from autograder.checking.asking.questions import KEPT, Question, Replied, Session, replies_of
from autograder.checking.toolbox.failure import CheckFailed, noting
from autograder.checking.toolbox.inputs import Draw
from autograder.checking.toolbox.registry import Check, reference
from autograder.checking.toolbox.student_answer import Student
from autograder.inside.answer import AnyAnswer, LocalAnswer


@functools.lru_cache(maxsize=KEPT)
def asked(item: Check, seed: int) -> tuple[tuple[Question, ...], tuple[Replied, ...]]:
    """Pair (questions, right replies): what every answer is asked, the probes' questions last.

    Both are empty where there is no right answer to ask first, nor one whose replies are recorded.
    """
    target = reference(item)
    answer = LocalAnswer(target) if target is not None else recordings.right_answer(item, seed)
    return asked_of(answer, item, seed) if answer is not None else ((), ())


def asked_of(
    answer: AnyAnswer, item: Check, seed: int
) -> tuple[tuple[Question, ...], tuple[Replied, ...]]:
    """The same pair, of an answer that is right."""
    session = Session(answer, keeps=True)
    try:
        with noting() as notes:
            item.run(Student(session.recorder()), Draw(seed))
    except CheckFailed:
        return (), ()
    if notes.careless or notes.lost:
        return (), ()  # the check refuses the library: `autograder verify` says so
    noted, first = tuple(session.questions), tuple(session.replies)
    further = probes_of(item, noted, first)
    kept = answerable(further, list(replies_of(session.objects, further)), first)
    return (*noted, *(question for question, _ in kept)), (*first, *(reply for _, reply in kept))
