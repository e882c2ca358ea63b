"""The student's side of the door: everything that a check may ask of an answer.

``LocalAnswer`` holds a function, a class or a module in this process. The grader has a second
implementation that sends the same requests into a sandbox; a check cannot tell them apart.
"""

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import torch

from autograder.inside.device.rehearsal import (
    landed,
    loose_tensors,
    moved,
    rehearsal,
    rehearsed,
    stayed,
)
from autograder.inside.expressions import Program, Watch
from autograder.inside.messages.values import Foreign, copied, plain, same
from autograder.inside.places import exchanged, places
from autograder.inside.side_effects import watched
from autograder.inside.stand_ins import METHOD, standing_in

LEGIBLE = 300  # characters; a message from the sandbox is cut after 500
LEFT_BEHIND = "a tensor on the CPU"  # in a reply from the rehearsal device
STUDENT_FILE = re.compile(r"ipykernel_\d+|^<(?!frozen|__array)")  # a notebook's cell

T = TypeVar("T")
Args = Sequence[Any]
Kwargs = dict[str, Any]
Seed = int | None
Cotangent = torch.Tensor | None


class AnswerRaised(Exception):
    """The student's code raised. ``where`` is the failing line of their code, or ''."""

    def __init__(self, kind: str, message: str, where: str = "") -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind, self.message, self.where = kind, message, where


class AnswerLost(Exception):
    """The answer can be asked nothing more; str() says why. It ends the check at once."""


@dataclass
class Reply:
    """What came back: a plain value, and which arguments the answer modified."""

    value: Any
    modified: list[str] = field(default_factory=list)
    drew: bool = False  # whether it drew at random, of a call with a seed


class AnyAnswer(Protocol):
    """The requests, which LocalAnswer describes. All values in and out are plain."""

    def call(self, args: Args, kwargs: Kwargs, *, seed: Seed = None, device: str = "") -> Reply: ...

    def gradients(
        self, args: Args, kwargs: Kwargs, cotangent: Cotangent, *, seed: Seed = None
    ) -> Reply: ...

    def build(self, args: Args, kwargs: Kwargs, *, seed: Seed = None) -> "AnyAnswer": ...

    def parameters(self) -> Any: ...

    def load(self, values: dict[str, torch.Tensor]) -> None: ...

    def train(self, mode: bool) -> None: ...

    def places(self, trials: Sequence[Any]) -> Any: ...

    def exchanged(self, place: Sequence[int], values: Sequence[Any]) -> "AnyAnswer": ...


class LocalAnswer:
    """An answer in this process. All values in and out are plain."""

    def __init__(
        self, target: Any, watch: Watch | None = None, changed: Sequence[str] = ()
    ) -> None:
        self.target = target
        self.watch = watch or Watch()  # at the expressions of its code, if any
        self._at_first = loose_tensors(target)
        self._changed = list(changed)  # by its construction; the first reply says so

    def call(self, args: Args, kwargs: Kwargs, seed: Seed = None, device: str = "") -> Reply:
        """Call the answer with copies of the arguments; return a Reply, or raise AnswerRaised.

        With ``seed`` what it draws at random is drawn from there. With device="rehearsal" it is
        called with tensors of the rehearsal device (see there), and a module is moved to it.
        """
        given, given_kwargs = copied(list(args)), copied(kwargs)
        self.watch.turn()
        with torch.enable_grad(), watched(seed, self.target) as changed:
            if device:
                result = self._rehearse(given, given_kwargs)
                return Reply(plain(landed(result)), [LEFT_BEHIND] if stayed(result) else [])
            before = torch.get_rng_state()
            result = _called(self.target, given, given_kwargs)
            drew = not torch.equal(before, torch.get_rng_state())
        modified = _modified(args, kwargs, given, given_kwargs) + _asking(given)
        return Reply(plain(result), modified + self._also(changed), drew)

    def _also(self, changed: list[str]) -> list[str]:
        """What a call changed around it, and what was changed when the object was built."""
        earlier, self._changed = self._changed, []
        return earlier + [name for name in changed if name not in earlier]

    def _rehearse(self, args: list[Any], kwargs: Kwargs) -> Any:
        target = self.target
        # All of it within: a tensor of the rehearsal device that is used outside has PyTorch import
        # its distributed tensors, for more than a second.
        with rehearsal():
            if isinstance(target, torch.nn.Module):
                target = _guarded(lambda: moved(target, self._at_first))
            return _called(target, rehearsed(args), rehearsed(kwargs))

    def gradients(
        self, args: Args, kwargs: Kwargs, cotangent: Cotangent, seed: Seed = None
    ) -> Reply:
        """Differentiate ``(result * cotangent).sum()``; Reply of (parameter gradients, inputs').

        Of a tuple or list, such as (context, weights), the first item is the result.
        """
        inputs, given_kwargs = [_leaf(item) for item in args], copied(kwargs)
        leaves = [item for item in inputs if isinstance(item, torch.Tensor) and item.requires_grad]
        named = self._parameters()
        with torch.enable_grad(), watched(seed, self.target) as changed:
            given = list(map(_changeable, inputs))
            result = _called(self.target, given, given_kwargs)
            if isinstance(result, tuple | list) and isinstance([*result, None][0], torch.Tensor):
                result = result[0]
            described = plain(result)  # what only claims to be a tensor can crash PyTorch
            if isinstance(described, Foreign):
                return Reply(described)
            if not isinstance(described, torch.Tensor):
                return Reply(Foreign(f"a {type(described).__name__}"))
            loss = _guarded(lambda: (result if cotangent is None else result * cotangent).sum())
        found = _guarded(lambda: _gradients(loss, [*named.values(), *leaves]))
        by_name = dict(zip(named, found, strict=False))
        value = plain(by_name), plain(found[len(named) :])
        modified = _modified(args, kwargs, given, given_kwargs)
        return Reply(value, modified + self._also(changed))

    def build(self, args: Args, kwargs: Kwargs, seed: Seed = None) -> "LocalAnswer":
        """Construct the class, or ask a method of an object for a new one; return an answer of it.

        method="merged" among ``kwargs`` is the method's name, and goes no further.
        """
        given, given_kwargs = copied(list(args)), copied(kwargs)
        method = given_kwargs.pop(METHOD, None)
        self.watch.turn()
        with watched(seed) as changed:
            target = _guarded(lambda: getattr(self.target, method) if method else self.target)
            made = _called(target, given, given_kwargs)
        return LocalAnswer(made, self.watch, changed)

    def parameters(self) -> Any:
        """The trainable parameters by name."""
        return plain(self._parameters())

    def load(self, values: dict[str, torch.Tensor]) -> None:
        """Copy ``values`` into the parameters of the same names, which must be all of them."""
        named = self._parameters()
        if named.keys() != values.keys():
            raise AnswerRaised("ParameterNames", _other_names(set(named), set(values)))
        with torch.no_grad():
            for name, parameter in named.items():
                if parameter.shape != values[name].shape:
                    raise AnswerRaised(
                        "ParameterShape",
                        f"{name} has shape {tuple(parameter.shape)}, "
                        f"expected {tuple(values[name].shape)}",
                    )
                parameter.data = values[name].detach().clone()

    def places(self, trials: Sequence[Any]) -> list[dict[str, Any]]:
        """Where a value of a right answer makes this one right; see ``inside.places``."""
        return places(Program(self.target), LocalAnswer, trials)

    def exchanged(self, place: Sequence[int], values: Sequence[Any]) -> "LocalAnswer":
        """This answer with other ``values`` at one ``place``; see ``inside.places``."""
        return exchanged(Program(self.target), LocalAnswer, place, values)

    def train(self, mode: bool) -> None:
        """Put the module into training (True) or evaluation (False) mode."""
        _guarded(lambda: self.target.train(mode))

    def _parameters(self) -> dict[str, torch.nn.Parameter]:
        if not isinstance(self.target, torch.nn.Module):
            return {}
        return dict(_guarded(lambda: list(self.target.named_parameters())))


def _other_names(found: set[str], wanted: set[str]) -> str:
    """Both lists of names; where these are long, what is missing or too much."""
    whole = f"{', '.join(sorted(found)) or 'no parameters'}, expected {', '.join(sorted(wanted))}"
    if len(whole) <= LEGIBLE:
        return whole
    missing, extra = wanted - found, found - wanted
    got = _some("without", missing) or _some("also", extra)
    return f"{got}, expected {_some('also', missing) or _some('without', extra)}"


def _some(word: str, names: set[str]) -> str:
    first, more = ", ".join(sorted(names)[:2]), f" and {len(names) - 2} more"
    return f"{word} {first}{more * (len(names) > 2)}" if names else ""


def _called(target: Any, args: Args, kwargs: Kwargs) -> Any:
    """Call the answer, or build it, with what is to stand in for its parts, if anything is."""
    with standing_in(target, args, kwargs) as (given, given_kwargs):
        return _guarded(lambda: target(*given, **given_kwargs))


def _guarded(action: Callable[[], T]) -> T:
    try:
        return action()
    except (AnswerRaised, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit, or a class of the student's own
        # Whoever extends ValueError for a name of their own has raised one.
        kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
        raise AnswerRaised(kind, message(error).strip(), _where(error)) from None


def message(said: object) -> str:
    """What an exception says, or its text, in at most 500 characters."""
    try:
        return str(said)[:500].encode("utf-8", "replace").decode()
    except Exception:  # a student's exception may fail to print itself
        return ""


def _where(error: BaseException) -> str:
    """The last line of notebook code in the traceback: 'line 3 of its cell, in softmax: w = …'."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if STUDENT_FILE.search(frame.filename):
            inner = "" if frame.name.startswith("<") else f", in {frame.name}"
            line = f": {frame.line}" if frame.line else ""
            return f"line {frame.lineno} of its cell{inner}{line}"
    return ""


def _leaf(item: Any) -> Any:
    if isinstance(item, torch.Tensor) and item.is_floating_point():
        return item.detach().clone().requires_grad_()
    return copied(item)


def _changeable(item: Any) -> Any:
    """A copy through which gradients flow: a leaf itself refuses to be changed in place."""
    tracked = isinstance(item, torch.Tensor) and item.requires_grad
    return item.clone() if tracked else item


def _gradients(loss: torch.Tensor, wanted: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """The gradient for each tensor of ``wanted``; None where none flows."""
    moving = [item for item in wanted if item.requires_grad]
    if not moving or not loss.requires_grad:
        return [None] * len(wanted)
    found = iter(torch.autograd.grad(loss, moving, allow_unused=True))
    return [next(found) if item.requires_grad else None for item in wanted]


def _modified(args: Args, kwargs: Kwargs, given: Sequence[Any], given_kwargs: Kwargs) -> list[str]:
    """Names of the arguments that the call changed: ``given`` were copies of ``args``."""
    changed = [
        f"argument {position}"
        for position, (old, new) in enumerate(zip(args, given, strict=True), start=1)
        if _changed(old, new)
    ]
    return changed + [name for name in kwargs if _changed(kwargs[name], given_kwargs.get(name))]


def _changed(old: Any, new: Any) -> bool:
    if type(old) is type(new) is torch.Tensor and old.dtype == new.dtype:
        here = all(x.layout is torch.strided and x.device.type == "cpu" for x in (old, new))
        if here and torch.equal(old, new):
            return False  # as mostly: no copies are made to see it
    return not same(plain(old), plain(new))


def _asking(given: Sequence[Any]) -> list[str]:
    """Names of the arguments, plain data before, that the call made ask for gradients."""
    return [
        f"requires_grad of argument {position}"
        for position, item in enumerate(given, start=1)
        if isinstance(item, torch.Tensor) and item.is_leaf and item.requires_grad
    ]
