"""Run one check against one answer, and name the mistake when it fails."""

from autograder.checking import registry
from autograder.checking.expect import CheckFailed, describe
from autograder.checking.inputs import Draw
from autograder.checking.student import Student, same_record
from autograder.inside.answer import AnswerLost, LocalAnswer


def run_check(item, answer, seed, trials=None):
    """Run the Check ``item`` on ``answer``; return None, or the CheckFailed that a student reads.

    ``answer`` is a LocalAnswer, or the grader's remote one. ``seed`` draws the inputs; it never
    decides whether a right answer passes. ``trials`` is a dict in which the trials of the named
    mistakes are kept for the next call with the same check.
    """
    failure, record = _trial(item, answer, seed)
    if failure is None:
        return None
    failure.exercise = item.name
    failure.seed = seed if failure.got or failure.expected else None
    failure.likely = _likely(item, record, seed, {} if trials is None else trials)
    return failure


def _likely(item, record, seed, trials):
    """The hint of the named mistake that gives the same record on the same inputs, or ''."""
    if not record:
        return ""
    for known in registry.mistakes(item):
        key = known.name, seed
        if key not in trials:
            trials[key] = _trial(item, LocalAnswer(known.target), seed)
        failure, other = trials[key]
        if failure is not None and same_record(record, other):
            return known.hint
    return ""


def _trial(item, answer, seed):
    student = Student(answer)
    try:
        item.run(student, Draw(seed))
        _refuse_modified_inputs(student.record)
    except CheckFailed as failure:
        return failure, student.record
    except AnswerLost:
        raise
    except Exception as error:
        # A result that no expectation foresaw (a ragged list, say) is the answer's fault: on right
        # answers `autograder verify` proves that checks raise nothing else.
        return _unusable(student.record, error), student.record
    return None, student.record


def _unusable(record, error):
    """The failure of an answer whose last result made the check itself stumble."""
    last = f"{describe(record[-1][1])}\n" if record else ""
    reason = (str(error).splitlines() or [""])[0]
    return CheckFailed(
        "the check could not use the result", f"{last}{type(error).__name__}: {reason}"
    )


def _refuse_modified_inputs(record):
    for _, _, modified in record:
        if modified:
            raise CheckFailed(
                "the values are right, but the function changes its inputs",
                f"{' and '.join(modified)} changed by the call",
                "inputs as they were: write to a new tensor",
            )
