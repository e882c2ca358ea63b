"""Exercises that ask for an input on which a given wrong answer fails.

The wrong answer is one of the lesson's stored mistakes, and the exercise is called ``break_`` and
the name of the exercise that it answers. What the learner's function returns is given to the
reference and to the wrong answer as it is, where a difference must be larger than rounding, and in
float64, where even a small one is none of rounding's.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch

from autograder import CourseError
from autograder.checking.asking import recordings
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.describe_values import describe
from autograder.checking.toolbox.expect import CheckFailed
from autograder.checking.toolbox.failure import of_form
from autograder.checking.toolbox.registry import reference
from autograder.checking.toolbox.same_tensors import is_real
from autograder.checking.toolbox.student_answer import Student, called_with
from autograder.inside.answer import AnswerRaised, LocalAnswer
from autograder.inside.limits import NO_MEMORY
from autograder.inside.messages.values import Foreign, copied, leaves, mapped, same

BREAK = "break_"
WITHOUT = {
    "again": "an input that is drawn at random may be right, too",
    registry.ONE_RIGHT_ANSWER: "every input on which the wrong answer fails is right",
}
MOST_NUMBERS = 10_000  # in all tensors and lists together
FAR = 0.05  # of the largest number: so far apart are no two roundings of an ordinary sum
LARGEST = 4_096  # whole number: it may be a size


def judge(
    student: Student, exercise: str, wrong: str, allowed: Callable[..., None] | None = None
) -> None:
    """The input that ``student`` returns shows that the answer ``wrong`` to ``exercise`` is wrong.

    ``allowed(*arguments)`` raises CheckFailed for an input that the text of ``exercise`` does not
    allow. Raises CheckFailed, with the hint of the stored wrong input that fits, if any.
    """
    item, returned = registry.find(exercise), student()
    right = reference(item) or _own(student, item, wrong)
    broken = _stored(item, wrong)
    as_given = _arguments(returned, exercise, right)
    arguments = mapped(_wide, as_given)
    if allowed is not None:
        try:
            allowed(*arguments)
        except CheckFailed as unfit:
            raise _named(unfit, right, arguments) from None
    if _far_apart(_outcome(right, as_given), _outcome(broken, as_given)):
        return
    wanted = _outcome(right, arguments)
    if wanted[0] not in ("", "ValueError"):
        raise CheckFailed(
            f"{exercise} cannot take this input",
            f"{_called(arguments)}, a right answer raises {_shown(wanted)}",
            f"arguments as the text of {exercise} describes them",
        )
    given = _outcome(broken, arguments)
    if given[0] == wanted[0] and (given[0] or same(_wide(given[1]), _wide(wanted[1]))):
        failure = CheckFailed(
            f"here {wrong} is right: {exercise} gives the same",
            f"both give {_shown(wanted)}, {_called(arguments)}",
            f"an input on which {wrong} gives something else",
        )
        failure.likely = _hint(registry.find(BREAK + exercise), arguments)
        raise failure


def shaped(*axes: str) -> Callable[..., None]:
    """An ``allowed`` that wants tensors of these shapes, one for each argument that has one.

    axes  as in "B, T, d_model" or "..., T, d"; '' where an argument is no tensor. An axis has the
          same size, at least 1, wherever its name stands.
    """

    def allowed(*arguments: Any) -> None:
        sizes: dict[str, int] = {}
        for argument, wanted in zip(arguments, axes, strict=False):
            if not wanted or argument is None:
                continue
            names = wanted.split(", ")
            found = list(argument.shape) if isinstance(argument, torch.Tensor) else []
            if names[0] == "...":
                names, found = names[1:], found[len(found) - len(names) + 1 :]
            fits = len(names) == len(found) and all(found)
            if not fits or any(
                sizes.setdefault(*pair) != pair[1] for pair in zip(names, found, strict=True)
            ):
                raise of_form(
                    "the result has another form than it should",
                    describe(argument),
                    f"a tensor of shape ({wanted})",
                    argument,
                )

    return allowed


def _named(failure: CheckFailed, right: Callable[..., Any], arguments: list[Any]) -> CheckFailed:
    """The failure with the name of the argument in the place of "the result"."""
    for name, given in zip(inspect.signature(right).parameters, arguments, strict=False):
        if failure.is_form and given is failure.about:
            failure.what, failure.is_form = failure.what.replace("the result", name), False
    return failure


def _own(student: Student, item: registry.Check, wrong: str) -> Callable[..., Any]:
    """The student's own answer to the exercise, once it is right: their copy holds no other."""
    own = student.beside(item.name)
    if own is None:
        raise CheckFailed(
            f"{wrong} is compared with your {item.name}, which is not defined",
            expected=f"run the cell of {item.name} first",
        )
    kept = recordings.seeds(item)
    failure = run_check(item, LocalAnswer(own), kept[0] if kept else 1, explain=False)
    if failure is not None and not failure.is_careless:
        raise CheckFailed(
            f"{wrong} is compared with your {item.name}, which is not right yet",
            expected=f"{item.name} solved first",
        )
    return own


def _stored(item: registry.Check, name: str) -> Callable[..., Any]:
    known = {answer.name: answer.target for answer in registry.mistakes(item)}
    if name not in known:
        raise CourseError(f"{item.name} has no stored mistake called {name!r}")
    return known[name]


def _arguments(returned: Any, exercise: str, right: Callable[..., Any]) -> list[Any]:
    """The arguments among what came back: as many as ``right`` takes, small, and plain."""
    parameters = list(inspect.signature(right).parameters.values())
    least = sum(one.default is inspect.Parameter.empty for one in parameters)
    names = ", ".join(one.name for one in parameters)
    if len(parameters) == 1 and type(returned) is not tuple:
        returned = (returned,)
    if type(returned) not in (tuple, list) or not least <= len(returned) <= len(parameters):
        raise CheckFailed(
            f"this is no input of {exercise}", describe(returned), f"a tuple ({names})"
        )
    arguments = list(returned)
    for item in leaves(arguments):
        _refuse(item)
    if sum(map(_count, arguments)) > MOST_NUMBERS:
        raise _too_large(_called(arguments), f"at most {MOST_NUMBERS} numbers in all")
    return arguments


def _refuse(item: Any) -> None:
    if isinstance(item, Foreign):
        raise CheckFailed("the input holds something that is no argument", item.description)
    if isinstance(item, torch.Tensor) and torch.isnan(item).any():
        raise CheckFailed("the input holds NaN", describe(item), "numbers")
    if type(item) is int and abs(item) > LARGEST:
        raise _too_large(str(item), f"numbers up to {LARGEST}")


def _too_large(got: str, expected: str) -> CheckFailed:
    return CheckFailed("the input is larger than it needs to be", got, expected)


def _wide(value: Any) -> Any:
    """A tensor of floating-point numbers in float64, anything else as it is."""
    return value.double() if is_real(value) else value


def _far_apart(right: tuple[str, Any], broken: tuple[str, Any]) -> bool:
    """Whether a right result in the learner's own precision is missed by more than rounding."""
    if right[0] or not isinstance(right[1], torch.Tensor) or not right[1].isfinite().all():
        return False
    if broken[0] or not isinstance(broken[1], torch.Tensor):
        return bool(broken[0])
    if broken[1].shape != right[1].shape:
        return True
    away = (broken[1].double() - right[1].double()).abs()
    return not bool((away <= FAR * max(1e-30, float(right[1].abs().max()))).all())  # NaN is far


def _count(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple | dict):
        items = value.values() if isinstance(value, dict) else value
        return sum(map(_count, items)) + len(value)
    return 1


def _outcome(target: Callable[..., Any], arguments: list[Any]) -> tuple[str, Any]:
    """Pair ('', result) or (name of the exception, its message)."""
    try:
        return "", LocalAnswer(target).call(arguments, {}, seed=0).value
    except AnswerRaised as error:  # of any kind: it is what the wrong answer does
        if error.kind == "MemoryError" or NO_MEMORY in error.message:
            got = f"{_called(arguments)}, there is too little memory"
            raise _too_large(got, "an input that is small enough to look at") from None
        return error.kind, error.message


def _called(arguments: list[Any]) -> str:
    return f"called with {called_with(arguments, {})}"


def _shown(outcome: tuple[str, Any]) -> str:
    return f"{outcome[0]}: {outcome[1]}" if outcome[0] else describe(outcome[1])


def _hint(item: registry.Check, arguments: list[Any]) -> str:
    """The hint of the first stored wrong input that is of the same kind, or ''."""
    for known in registry.mistakes(item):
        if known.where is not None and known.where(*copied(arguments)):
            return known.hint or ""
    return ""
