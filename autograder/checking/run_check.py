"""Run one check against one answer, put the probes to it, and say why it fails."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from autograder.checking.asking.probe_failures import refuse, refuse_changes, refuse_numbers
from autograder.checking.asking.questions import Question, Replied, Session, until_lost
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis.diagnose import diagnose
from autograder.checking.diagnosis.error_meanings import meaning
from autograder.checking.toolbox.expect import describe
from autograder.checking.toolbox.failure import (
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
from autograder.settings import CARE_SHARE

SPOKEN_OF = ("dtype", "double", "scalar type")  # in what PyTorch says where precisions meet


def run_check(
    item: Check,
    answer: AnyAnswer,
    seed: int,
    explain: bool = True,
    care_share: float = CARE_SHARE,
) -> CheckFailed | None:
    """Run the Check ``item`` on ``answer``; return None, or the CheckFailed that a student reads.

    ``answer`` is a LocalAnswer, or the grader's remote one. ``seed`` draws the inputs; it never
    decides whether a right answer passes. Without ``explain`` nothing is said to be likely. An
    answer that is right but for some stages fails at the cost of their points, one that is right
    but for its care at the cost of ``care_share``, however much is missing: the first is said.
    """
    session = Session(answer)
    with noting() as notes:
        failure = _trial(item, session, seed, notes)
        wrong = list(notes.lost.values()) if failure is None else [failure]
        narrow = bool(wrong) and _right_in_float32(item, answer, wrong, seed)
        if narrow:
            careless(wrong[0], first=True)
            notes.lost, failure = {}, None
        asks_on = not narrow and (failure is None or explain and not failure.is_stub)
        questions, _ = asked(item, seed) if asks_on else ((), ())
        given = (until_lost if wrong else list)(session.all_replies(questions))
        failure = failure or _probed(item, given, seed, notes)
    failure = failure or _costly(item, notes, care_share)
    if failure is None:
        return None
    failure.exercise = item.name
    drawn = item.has_one_right_answer and (failure.got or failure.expected)
    failure.seed = seed if drawn else None
    if not explain:
        failure.likely = ""
    elif narrow:
        failure.likely = meaning(failure.kind, failure.message)
    elif asks_on:
        failure.likely = failure.likely or _likely(item, given, seed, notes.lost)
    return failure


def accepts(item: Check, answer: AnyAnswer, seed: int) -> bool:
    """Whether ``run_check`` finds nothing. Of a wrong answer no more is looked at than it takes."""
    with noting() as notes:
        if _trial(item, Session(answer), seed, notes) or notes.lost or notes.careless:
            return False
    return run_check(item, answer, seed, explain=False) is None


def _costly(item: Check, notes: Notes, care_share: float) -> CheckFailed | None:
    """What a student reads whose answer is right but for some stages, or for its care."""
    forgotten = [one for one in notes.careless if not one.stage or one.stage not in notes.lost]
    if not notes.lost:
        failure = forgotten[0] if forgotten else None
        if failure is not None:
            failure.cost = care_share
        return failure
    lost = {name: worth for name, worth in item.stages if name in notes.lost}
    failure, points = notes.lost[next(iter(lost))], sum(worth for _, worth in item.stages)
    if len(lost) == len(item.stages):
        return failure
    failure.cost, besides = sum(lost.values()) / points, ""
    if forgotten:
        failure.cost += care_share * (1 - failure.cost)
        part = f"{share_in_words(care_share)} of the rest goes for this"
        besides = f"\n{part if care_share else 'this costs nothing'}: {forgotten[0].what}"
    failure.lost = tuple(lost)
    named = ", ".join(f"{name} ({worth:g})" for name, worth in lost.items())
    failure.points, failure.costs = points, f"{named}{besides}"
    return failure


def _likely(item: Check, given: Sequence[Replied], seed: int, lost: Collection[str]) -> str:
    if not item.has_one_right_answer:
        return ""
    try:
        return diagnose(item, given, seed, lost)
    except Exception:  # a result may be anything: a diagnosis that stumbles over it says nothing
        return ""


def _trial(item: Check, session: Session, seed: int, notes: Notes) -> CheckFailed | None:
    student = Student(session.recorder())
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
        return _trial(item, Session(_Narrow(answer)), seed, notes) is None and not notes.lost


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
        try:
            if question.probe not in ("", "device"):  # a rehearsal says nothing of the rest
                with care():
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
        if not _is_core(item, question, right):
            careless(failure)
        elif stage:
            notes.lost[stage] = failure
        else:
            return failure
    return None


def _is_core(item: Check, question: Question, right: Replied) -> bool:
    """Whether a probe asks for what the exercise is about: what its check says, or learning."""
    learns = question.probe == "gradients" and bool(right.value[0])  # a module's own weights
    return learns or question.probe in item.core


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
            careless(failure, first=True)  # a gradient that is lost by it says less
            return
        with care():
            refuse_changes(modified)
