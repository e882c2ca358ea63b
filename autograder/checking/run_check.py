"""Run one check against one answer, put the probes to it, and say why it fails."""

from collections.abc import Sequence
from typing import Any

from autograder.checking.diagnose import diagnose
from autograder.checking.expect import describe
from autograder.checking.failure import CheckFailed, care, careless, noting
from autograder.checking.inputs import Draw
from autograder.checking.narrow import Narrow, by_precision
from autograder.checking.questions import Question, Replied, Session, asked, until_lost
from autograder.checking.refusals import refuse, refuse_changes, refuse_numbers
from autograder.checking.registry import Check
from autograder.checking.student import Student
from autograder.inside.answer import AnswerLost, AnyAnswer
from autograder.inside.limits import out_of_memory
from autograder.settings import CARE_SHARE


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
    answer that is right but for its care fails at the cost of ``care_share``, however much is
    missing: the first of it is said.
    """
    session = Session(answer)
    with noting() as careless_ones:
        failure = _trial(item, session, seed)
        if failure is not None and _right_in_float32(item, answer, failure, seed):
            failure.exercise, failure.cost, failure.is_careless = item.name, care_share, True
            return failure
        asks_on = failure is None or explain and not failure.is_stub
        questions, _ = asked(item, seed) if asks_on else ((), ())
        given = (list if failure is None else until_lost)(session.all_replies(questions))
        failure = failure or _probed(item, given, seed)
    if failure is None and careless_ones:
        failure = careless_ones[0]
        failure.cost = care_share
    if failure is None:
        return None
    failure.exercise = item.name
    drawn = item.has_one_right_answer and (failure.got or failure.expected)
    failure.seed = seed if drawn else None
    if not explain:
        failure.likely = ""
    elif asks_on:
        failure.likely = failure.likely or _likely(item, given, seed)
    return failure


def _likely(item: Check, given: Sequence[Replied], seed: int) -> str:
    if not item.has_one_right_answer:
        return ""
    try:
        return diagnose(item, given, seed)
    except Exception:  # a result may be anything: a diagnosis that stumbles over it says nothing
        return ""


def _trial(item: Check, session: Session, seed: int) -> CheckFailed | None:
    student = Student(session.recorder())
    try:
        item.run(student, Draw(seed))
        _refuse_modified_inputs(student.record, "inputs" in item.core)
    except CheckFailed as failure:
        return failure
    except AnswerLost:
        raise
    except Exception as error:
        # A result that no expectation foresaw (a ragged list, say) is the answer's fault: on right
        # answers `autograder verify` proves that checks raise nothing else.
        return _unusable(student.record, error)
    return None


def _right_in_float32(item: Check, answer: AnyAnswer, failure: CheckFailed, seed: int) -> bool:
    """Whether an answer that stumbles over float64 is right where it is asked in float32."""
    raised = getattr(failure, "kind", ""), getattr(failure, "message", "")
    if not by_precision(*raised):
        return False
    with noting():
        return _trial(item, Session(Narrow(answer)), seed) is None


def _probed(item: Check, given: Sequence[Replied], seed: int) -> CheckFailed | None:
    """The failure of the first probe for which the core is asked; what is care is noted.

    Of the check's own questions it is the kind of the replies that is compared.
    """
    questions, wanted = asked(item, seed)
    for question, got, right in zip(questions, given, wanted, strict=False):
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
        if _is_core(item, question, right):
            return failure
        careless(failure)
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
    return CheckFailed(
        "the check could not use the result", f"{last}{type(error).__name__}: {reason}"
    )


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
