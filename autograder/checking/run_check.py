"""Run one check against one answer, put the probes to it, and say why it fails."""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from autograder.checking.asking.probe_failures import refuse, refuse_changes, refuse_numbers
from autograder.checking.asking.questions import Replied, Session, until_lost
from autograder.checking.asking.right_answer import asked
from autograder.checking.asking.rounding import session
from autograder.checking.diagnosis.diagnose import diagnose
from autograder.checking.diagnosis.error_meanings import meaning
from autograder.checking.diagnosis.place import where_it_fails
from autograder.checking.toolbox.expect import describe
from autograder.checking.toolbox.failure import (
    LEARNING,
    CheckFailed,
    Notes,
    care,
    careless,
    noting,
    share_in_words,
)
from autograder.checking.toolbox.inputs import Draw
from autograder.checking.toolbox.registry import Check
from autograder.checking.toolbox.student_answer import Student
from autograder.inside.answer import AnswerLost, AnyAnswer
from autograder.inside.limits import out_of_memory
from autograder.inside.messages.values import mapped
from autograder.lessons import slug_of
from autograder.settings import COURSE, USUAL, Care

SPOKEN_OF = ("dtype", "double", "scalar type")  # in what PyTorch says where precisions meet
# Which kind of care a probe asks for, where what it refuses is of no kind of its own.
KINDS = {"device": "device", "float32": "float32", "again": "again", "turns": "again"}


class OutOfOwnTime(BaseException):
    """A check worked too long by itself.

    Like StudentLost no Exception, so that no check can take it for an error of the answer.
    """


def run_check(
    item: Check,
    answer: AnyAnswer,
    seed: int,
    explain: bool = True,
    rule: Care = USUAL,
    told: dict[str, str] | None = None,
) -> CheckFailed | None:
    """Run the Check ``item`` on ``answer``; return None, or the CheckFailed that a student reads.

    ``answer`` is a LocalAnswer, or the grader's remote one. ``seed`` draws the inputs; it never
    decides whether a right answer passes. Without ``explain`` nothing is said to be likely. An
    answer that is right but for some stages fails at the cost of their points, one that is right
    but for its care at the cost of the ``rule``, however much is missing: of what costs, the first
    is said, and else the first that is a note. Notes, which cost nothing, are for those who still
    work on an answer: they are said where ``told`` is given. Who runs several checks keeps it: of
    which kinds of care a note has spoken, and beside which exercise. None is repeated.
    """
    asking = session(item, answer, seed)
    with noting() as notes:
        failure = _trial(item, asking, seed, notes)
        wrong = list(notes.lost.values()) if failure is None else [failure]
        narrow = bool(wrong) and _right_in_float32(item, answer, wrong, seed)
        if narrow:
            careless(wrong[0], "dtype", first=True)
            notes.lost, failure = {}, None
        asks_on = not narrow and (failure is None or explain and not failure.is_stub)
        questions, _ = asked(item, seed) if asks_on else ((), ())
        given = (until_lost if wrong else list)(asking.all_replies(questions))
        failure = failure or _probed(item, given, seed, notes)
    failure = failure or _costly(item, notes, rule, told)
    if failure is None:
        return None
    failure.exercise = item.name
    drawn = item.has_one_right_answer and (failure.got or failure.expected)
    failure.seed = seed if drawn else None
    if not explain:
        failure.likely = ""
    elif narrow:
        failure.likely = meaning(failure.kind, failure.message)
    elif asks_on and item.has_one_right_answer:
        with contextlib.suppress(OutOfOwnTime):  # the verdict stands, whatever is said of it
            failure.likely = failure.likely or _likely(item, given, seed, notes.lost)
            short = bool(failure.likely)
            failure.place = where_it_fails(item, answer, given, seed, short)
    return failure


def accepts(item: Check, answer: AnyAnswer, seed: int) -> bool:
    """Whether ``run_check`` finds nothing. Of a wrong answer no more is looked at than it takes."""
    with noting() as notes:
        failure = _trial(item, session(item, answer, seed), seed, notes)
        if failure or notes.lost or notes.careless:
            return False
    return run_check(item, answer, seed, explain=False, told={}) is None


def has_asked(item: Check, kind: str) -> bool:
    """Whether the text of an exercise, or of a lesson up to its own, asks for this kind of care."""
    if kind in dict(item.asks):
        return True
    lesson, _ = COURSE.care.get(kind, ("", ""))
    return bool(lesson) and lesson <= slug_of(item.lesson)


def _costly(
    item: Check, notes: Notes, rule: Care, told: dict[str, str] | None
) -> CheckFailed | None:
    """What a student reads whose answer is right but for some stages, or for its care."""
    forgotten = list[CheckFailed]()
    for one in notes.careless:
        one.is_note = not rule.everywhere and not has_asked(item, one.care)
        one.cost = 0.0 if one.is_note else rule.share
        unsaid = one.is_note and (told is None or told.get(one.care, item.name) != item.name)
        if one.stage not in notes.lost and not unsaid:
            forgotten.append(one)
    # What shows on the learner's own machine is said before what shows on another one.
    forgotten.sort(key=lambda one: (one.is_note, one.care == "device"))
    if forgotten and forgotten[0].is_note and forgotten[0].care and told is not None:
        told[forgotten[0].care] = item.name
    if not notes.lost:
        return forgotten[0] if forgotten else None
    lost = {name: worth for name, worth in item.stages if name in notes.lost}
    failure, points = notes.lost[next(iter(lost))], sum(worth for _, worth in item.stages)
    if len(lost) == len(item.stages):
        return failure
    failure.cost, besides = sum(lost.values()) / points, ""
    if forgotten:
        share = forgotten[0].cost
        failure.cost += share * (1 - failure.cost)
        part = f"{share_in_words(share)} of the rest goes for this"
        besides = f"\n{part if share else 'this costs nothing'}: {forgotten[0].what}"
    failure.lost = tuple(lost)
    named = ", ".join(f"{name} ({worth:g})" for name, worth in lost.items())
    failure.points, failure.costs = points, f"{named}{besides}"
    return failure


def _likely(item: Check, given: Sequence[Replied], seed: int, lost: Collection[str]) -> str:
    try:
        return diagnose(item, given, seed, lost)
    except Exception:  # a result may be anything: a diagnosis that stumbles over it says nothing
        return ""


def _trial(item: Check, asking: Session, seed: int, notes: Notes) -> CheckFailed | None:
    student = Student(asking.recorder())
    notes.explain = lambda error: _unusable(student.record, error)
    failure = None
    try:
        item.run(student, Draw(seed))
        _refuse_modified_inputs(student.record, "inputs" in item.core)
    except CheckFailed as error:
        failure = error
    except AnswerLost:
        raise
    except Exception as error:
        # A result that no expectation foresaw (a ragged list, say) is the answer's fault: on right
        # answers `autograder verify` proves that checks raise nothing else.
        failure = _unusable(student.record, error)
    for one in (failure, *notes.lost.values(), *notes.careless):
        if one is not None and one.is_form:
            student.place(one)
    return failure


def _right_in_float32(
    item: Check, answer: AnyAnswer, failures: Sequence[CheckFailed], seed: int
) -> bool:
    """Whether an answer that stumbles over float64 is right where it is asked in float32.

    One stage may show it as the error that it is, and another as an error in place of a refusal.
    """
    if not any(map(_by_precision, failures)):
        return False
    with noting() as notes:
        asking = session(item, _Narrow(answer), seed)
        return _trial(item, asking, seed, notes) is None and not notes.lost


def _by_precision(failure: CheckFailed) -> bool:
    """Whether the answer raised over tensors of two precisions."""
    said = failure.message.lower()
    return failure.kind in ("RuntimeError", "TypeError") and any(one in said for one in SPOKEN_OF)


class _Narrow:
    """Passes every request on with float32 in the place of float64.

    Checks ask in float64, where rounding hides nothing. Who has written for float32 alone, which is
    what PyTorch makes of numbers, is asked again in float32.
    """

    def __init__(self, answer: AnyAnswer) -> None:
        self._answer = answer

    def __getattr__(self, request: str) -> Callable[..., Any]:
        def ask(*details: Any, **how: Any) -> Any:
            found = getattr(self._answer, request)(*mapped(_narrowed, details), **how)
            return _Narrow(found) if request == "build" else found

        return ask


def _narrowed(value: Any) -> Any:
    return value.float() if getattr(value, "dtype", None) == torch.float64 else value


def _probed(item: Check, given: Sequence[Replied], seed: int, notes: Notes) -> CheckFailed | None:
    """The failure of the first probe for which the core is asked; what is care is noted.

    That of a stage is noted, too. Of the check's own questions it is the kind of the replies that
    is compared.
    """
    questions, wanted = asked(item, seed)
    for place, (question, got, right) in enumerate(zip(questions, given, wanted, strict=False)):
        first = question.origin if question.probe else place
        stage = questions[first].stage
        as_right = dataclasses.replace(given[first], modified=wanted[first].modified)
        if notes.lost and (stage in notes.lost or not as_right.agrees(wanted[first])):
            continue  # where the values are wrong, nothing is said of care
        unasked = question.probe == "float32" and questions[first].is_care
        if unasked and not as_right.agrees(wanted[first]):
            continue  # it is noted already, and no fault of the precision
        try:
            if question.probe not in ("", "device"):  # a rehearsal says nothing of the rest
                with care("changes"):
                    refuse_changes([name for name in got.modified if name not in right.modified])
            if question.probe:
                refuse(question, got, right, given[question.origin])
            elif question.request == "call":
                refuse_numbers(got, right)
            continue
        except CheckFailed as error:
            failure = error
        except Exception as error:  # a form that no probe foresaw, as in _trial
            failure = _unusable([("probe", got.value, [])], error)
        failure.stage = stage
        kind = failure.care or ("" if unasked else KINDS.get(question.probe, "gradients"))
        learning = kind == LEARNING and has_asked(item, LEARNING)
        if question.probe not in item.core and not learning:
            careless(failure, "gradients" if kind == LEARNING else kind)
        elif stage:
            notes.lost[stage] = failure
        else:
            return failure
    return None


def _unusable(record: list[Any], error: Exception) -> CheckFailed:
    """The failure of an answer whose last result made the check itself stumble."""
    last = f"{describe(record[-1][1])}\n" if record else ""
    if out_of_memory(error):
        return CheckFailed("the check runs out of memory over the result", last.rstrip())
    reason = (str(error).splitlines() or [""])[0]
    got = f"{last}{type(error).__name__}: {reason}"
    return CheckFailed("the check could not use the result", got)


def _refuse_modified_inputs(record: list[Any], core: bool) -> None:
    for _, _, modified in record:
        inputs = [name for name in modified if "argument" in name or name.isidentifier()]
        if inputs:
            failure = CheckFailed(
                "the values are right, but the function changes its inputs",
                f"{' and '.join(inputs)} changed by the call",
                "inputs as they were: change a copy",
            )
            if core:
                raise failure
            careless(failure, "changes", first=True)  # a gradient that is lost by it says less
            return
        with care("changes"):
            refuse_changes(modified)
