"""What a check holds in its hands: the student's answer, with a record of every exchange."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from autograder.checking.toolbox.describe_values import describe, show
from autograder.checking.toolbox.failure import CheckFailed, of_form
from autograder.checking.toolbox.same_tensors import is_real
from autograder.inside.answer import AnswerRaised, AnyAnswer
from autograder.inside.stand_ins import KEYWORD, METHOD, STAND_IN

CALLS = ("call", "gradients", "build")
ORDINALS = ("first", "second", "third", "fourth")
FEW, SHORT = 8, 40  # items and characters of what is shown of an argument


class Student:
    """Calls an answer and records what came back.

    The record has (request, result, what the call modified) of each exchange.
    """

    def __init__(self, answer: AnyAnswer, before: "Student | None" = None) -> None:
        self._answer = answer
        self.record: list[Any] = before.record if before else []
        self._called: list[tuple[Any, str]] = before._called if before else []

    def place(self, failure: CheckFailed) -> None:
        """Say in a failure of a result's form of which call, and which of its results, it is."""
        for result, called in reversed(self._called):
            parts = list(result) if isinstance(result, list | tuple) else []
            number = next((n for n, one in enumerate(parts) if one is failure.about), None)
            if number is not None and len(parts) <= len(ORDINALS):
                failure.what = _of_one(failure.what, ORDINALS[number])
            if number is not None or result is failure.about:
                failure.got += f"\ncalled with {called}"
                return

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the answer with plain arguments and return its plain result."""
        return self._ask("call", list(args), kwargs)

    def outcome(self, *args: Any, **kwargs: Any) -> tuple[str | None, Any]:
        """Return (None, result), or (name of the exception, its message) if the answer raises."""
        try:
            return None, self(*args, **kwargs)
        except _Raised as failure:
            if failure.kind == "NotImplementedError":  # a stub: nothing is to be learned from it
                raise
            return failure.kind, failure.message

    def gradients(self, *args: Any, cotangent: torch.Tensor | None = None, **kwargs: Any) -> Any:
        """Gradient of (result * cotangent).sum() for each floating tensor among ``args``.

        Of a tuple, such as (context, weights), the first item is differentiated.
        """
        return self._differentiate(args, kwargs, cotangent)[1]

    def beside(self, name: str) -> Any:
        """What is called ``name`` where the answer was written; None if it is not of this process.

        Only a check in a student's own copy asks: no right answer is there but what they wrote.
        """
        target = getattr(self._answer, "target", None)
        return getattr(target, "__globals__", {}).get(name)

    def build(self, *args: Any, **kwargs: Any) -> "Module":
        """Construct the class under test; returns a Module."""
        return Module(self._exchange("build", list(args), kwargs), self)

    def _differentiate(
        self, args: Sequence[Any], kwargs: dict[str, Any], cotangent: torch.Tensor | None
    ) -> Any:
        pair = self._ask("gradients", list(args), kwargs, cotangent)
        if not isinstance(pair, tuple):
            what = "the result is not a tensor, so it has no gradient"
            raise of_form(what, describe(pair), "a tensor", pair)
        inputs = sum(map(is_real, args))
        if not _are_gradients(pair, inputs):
            raise CheckFailed(
                "what came back is not a set of gradients",
                describe(pair),
                f"a tensor or None for each parameter by name, and for {inputs} tensor arguments",
            )
        return pair

    def _ask(self, request: str, *details: Any) -> Any:
        """Send a request whose reply is a value, and record it."""
        reply = self._exchange(request, *details)
        self.record.append((request, reply.value, reply.modified))
        if request == "call":
            self._called.append((reply.value, called_with(*details[:2])))
        return reply.value

    def _exchange(self, request: str, *details: Any) -> Any:
        try:
            return getattr(self._answer, request)(*details)
        except AnswerRaised as error:
            self.record.append(("raised", [error.kind, error.message], []))
            called = called_with(*details[:2]) if request in CALLS else ""
            raise _Raised(error, called) from None


def _of_one(what: str, ordinal: str) -> str:
    """A sentence about a result, of which there are several."""
    for form in ("the shape", "the dtype"):
        what = what.replace(f"{form} is", f"{form} of the {ordinal} result is")
    return what.replace("the result", f"the {ordinal} result")


def called_with(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Say what a function was called with: '(tensor (2, 5) float64, dim=1)'."""
    words = [brief(item) for item in args]
    shown = [name for name in kwargs if name not in (KEYWORD, METHOD)]
    words += [f"{name}={brief(kwargs[name])}" for name in shown]
    return f"({', '.join(words)})"


def brief(item: Any) -> str:
    """An argument in a few words: of a tensor its shape and dtype; a short list as it is."""
    if isinstance(item, torch.Tensor):
        return show(item)
    if isinstance(item, dict) and STAND_IN in item:
        return str(item[STAND_IN])
    if isinstance(item, list | tuple | dict):
        plain_items = type(item) in (list, tuple) and len(item) <= FEW
        if plain_items and all(type(one) in (str, int, float, bool) for one in item):
            text = repr(item)
            if len(text) <= SHORT:
                return text
        return f"{type(item).__name__} of {len(item)}"
    text = repr(item)
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


class Module(Student):
    """An instance of a class under test: load weights, call, take gradients."""

    def parameters(self) -> dict[str, torch.Tensor]:
        """The trainable parameters by name."""
        named = self._exchange("parameters")
        if type(named) is not dict or not _all_tensors(named.values()):
            raise CheckFailed(
                "the parameters are not named tensors", describe(named), "a tensor for each name"
            )
        self.record.append(("parameters", named, []))
        return named

    def load(self, values: dict[str, torch.Tensor]) -> None:
        """Copy ``values`` (name → tensor) into the parameters."""
        self._exchange("load", values)

    def made_by(self, method: str) -> "Module":
        """The new object that a method without arguments returns."""
        return self.build(**{METHOD: method})

    def train(self) -> None:
        """Switch to training mode."""
        self._exchange("train", True)

    def eval(self) -> None:
        """Switch to evaluation mode."""
        self._exchange("train", False)

    def gradients(self, *args: Any, cotangent: torch.Tensor | None = None, **kwargs: Any) -> Any:
        """Pair of ({parameter name: gradient}, [gradients of floating tensor arguments])."""
        return self._differentiate(args, kwargs, cotangent)


def _are_gradients(pair: Any, inputs: int) -> bool:
    """Whether ``pair`` is ({name: tensor or None}, as many tensors or None as ``inputs``).

    A tensor is no sequence here: a check that takes its rows for gradients would make an object for
    each of a million.
    """
    if len(pair) != 2 or type(pair[0]) is not dict or type(pair[1]) not in (list, tuple):
        return False
    found = [item for item in (*pair[0].values(), *pair[1]) if item is not None]
    return len(pair[1]) == inputs and _all_tensors(found)


def _all_tensors(values: Iterable[Any]) -> bool:
    return all(isinstance(value, torch.Tensor) for value in values)


class _Raised(CheckFailed):
    """The answer raised where the check expected a result."""

    def __init__(self, error: AnswerRaised, called: str = "") -> None:
        self.kind, self.message = error.kind, error.message
        if error.kind == "NotImplementedError":
            # The stub says 'softmax: write about 3 lines', or 'LearnedBandwidth.forward: write …'.
            self.is_stub = True
            name, _, todo = error.message.partition(": ")
            todo += f" in {name.partition('.')[2]}" if todo and "." in name else ""
            super().__init__(f"nothing here yet: {todo}" if todo else "nothing here yet")
        elif error.kind == "BdbQuit":
            super().__init__("your code stops at a breakpoint: take it out", error.where)
        elif error.kind == "ParameterNames":
            super().__init__("the module has other parameters", *_got_and_expected(error.message))
        elif error.kind == "ParameterShape":
            super().__init__("a parameter has the wrong shape", *_got_and_expected(error.message))
        else:
            message = (error.message.splitlines() or [error.kind])[0]
            place = f"\n{error.where}" if error.where else ""
            given = f"\ncalled with {called}" if called else ""
            super().__init__(f"your code raised {error.kind}", f"{message}{place}{given}")


_Raised.__name__ = CheckFailed.__name__  # the name that a notebook and `nbgrader validate` show


def _got_and_expected(message: str) -> tuple[str, str]:
    got, _, expected = message.partition(", expected ")
    return got, expected
