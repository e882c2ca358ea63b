"""A question to an answer as a program of a few lines, to be pasted below the answer's cell."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from autograder.checking.asking.questions import Question
from autograder.explaining.literals import size, written
from autograder.inside.messages.values import leaves
from autograder.inside.stand_ins import KEYWORD, STAND_IN

MOST = 250  # numbers that are written out
PARAMETERS = {
    "load": "{name: tuple(one.shape) for name, one in built.named_parameters()}",
    "parameters": "dict(built.named_parameters())",
}
IMPORT = "from autograder.inside.answer import LocalAnswer\n"


@dataclasses.dataclass(frozen=True)
class Asked:
    """A question with what has to come before it: how its object was built, and its weights."""

    before: tuple[Question, ...]
    question: Question

    @property
    def size(self) -> int:
        """How many numbers and words a program of it holds."""
        return sum(size(list(one.details)) for one in (*self.before, self.question))

    @property
    def is_small(self) -> bool:
        return self.size <= MOST

    @property
    def is_plain(self) -> bool:
        """Whether Python alone can ask it: no device to rehearse on, no parts that stand in."""
        every = (*self.before, self.question)
        keys = {key for one in every for key in _keys(list(one.details))}
        special = keys & {KEYWORD, STAND_IN} or "device" in dict(self.question.how)
        return not special and self.question.request != "gradients"


def asked(history: Sequence[Question], question: Question) -> Asked | None:
    """``question`` with what it needs of the ``history`` before it.

    None where it takes several objects, used in turn.
    """
    if question.probe == "turns":
        return None
    needed = []
    for one in history:
        if one is question:
            break
        own = one.built if one.request == "build" else one.handle
        if question.handle and own == question.handle and one.request in ("build", "load", "train"):
            needed.append(one)
    if question.probe == "again":
        needed.append(history[question.origin])
    if question.request == "load":  # no weight was read where their names or shapes are wrong
        question = dataclasses.replace(question, details=({},))
    return Asked(tuple(needed), question)


def text(name: str, one: Asked, exactly: bool = False, whole: bool = False, digits: int = 0) -> str:
    """The program that asks the answer called ``name``, and prints what it replies.

    exactly  as the check does: with its seeds, the tensors' layout in memory and copies of them
    whole    the whole reply is printed, with what the call changed
    digits   so many are printed of each number, if not 0
    """
    exactly = exactly or whole or not one.is_plain
    make = _exactly if exactly else _plainly
    steps = [make(name, step) for step in one.before]
    last = make(name, one.question)
    if not exactly and one.question.request in PARAMETERS:
        last = PARAMETERS[one.question.request]
    elif exactly and not whole and one.question.request in ("call", "gradients"):
        last += ".value"
    if one.question.probe == "again":
        steps[-1] = f"print({steps[-1]}{'.value' * (exactly and not whole)})"
    used = any("torch." in part for part in (*steps, last)) or digits
    lines = ["import torch\n"] * bool(used) + [IMPORT] * exactly
    lines += [f"torch.set_printoptions(precision={digits})"] * bool(digits)
    return "\n".join([*lines, *steps, f"print({last})"]) + "\n"


def by_seed(name: str, seed: int) -> str:
    """The program that has the check itself ask the answer again."""
    return (
        "import os\n\n"
        f'os.environ["AUTOGRADER_SEED"] = "{seed}"\n'
        "from autograder import check\n\n"
        f'check.preview("{name}", {name})\n'
    )


def _plainly(name: str, one: Question) -> str:
    if one.request == "build":
        return f"built = {_called(name, *one.details)}"
    if one.request == "load":
        weights = written(one.details[0])
        return (
            f"for weight, value in {weights}.items():\n    built.get_parameter(weight).data = value"
        )
    if one.request == "train":
        return f"built.train({one.details[0]})"
    if one.request == "parameters":
        return ""
    return _called("built" if one.handle else name, *one.details[:2])


def _exactly(name: str, one: Question) -> str:
    holder = "built" if one.handle else f"LocalAnswer({name})"
    how = [f"{key}={value!r}" for key, value in one.how]
    details = list(one.details)
    if one.request in ("call", "gradients", "build"):
        details[0] = list(details[0])
    given = [written(item, layout=True, indent=4) for item in details]
    start = "built = " if one.request == "build" else ""
    return f"{start}{holder}.{one.request}({_arguments([*given, *how])})"


def _called(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    given = [written(item, indent=4) for item in args]
    given += [f"{key}={written(item, indent=4)}" for key, item in kwargs.items()]
    return f"{name}({_arguments(given)})"


def _arguments(given: Sequence[str]) -> str:
    line = ", ".join(given)
    if len(line) <= 60 and "\n" not in line:
        return line
    return "".join(f"\n    {one}," for one in given) + "\n"


def _keys(value: Any) -> set[str]:
    """All keys of the dicts in a plain value."""
    if isinstance(value, dict):
        return {*value, *(key for item in value.values() for key in _keys(item))}
    if isinstance(value, list | tuple):
        return {key for item in value for key in _keys(item)}
    return set()


def shapes(one: Asked) -> str:
    """How large the tensors of a question are: '(5, 7), (7, 3) and weights of 3024 numbers'."""
    tensors = [item for item in leaves(list(one.question.details)) if hasattr(item, "shape")]
    found = [str(tuple(item.shape)) for item in tensors]
    weights = sum(size(list(step.details)) for step in one.before if step.request == "load")
    found += [f"weights of {weights} numbers"] if weights else []
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)
