"""The student's side of the door: everything that a check may ask of an answer.

``LocalAnswer`` holds a function, a class or a module in this process. The grader has a second
implementation that sends the same five requests into a sandbox; a check cannot tell them apart.
"""

import traceback
from dataclasses import dataclass, field

import torch

from autograder.plain import Foreign, plain, same


class AnswerRaised(Exception):
    """The student's code raised. ``where`` is the failing line of their code, or ''."""

    def __init__(self, kind, message, where=""):
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind, self.message, self.where = kind, message, where


@dataclass
class Reply:
    """What came back: a plain value, and which arguments the answer modified."""

    value: object
    modified: list[str] = field(default_factory=list)


class LocalAnswer:
    """An answer in this process. All values in and out are plain."""

    def __init__(self, target):
        self.target = target

    def call(self, args, kwargs):
        """Call the answer; return a Reply, or raise AnswerRaised."""
        before = plain([list(args), kwargs])
        with torch.enable_grad():
            result = _guarded(lambda: self.target(*args, **kwargs))
        return Reply(plain(result), _modified(before, args, kwargs))

    def gradients(self, args, kwargs, cotangent):
        """Differentiate ``(result * cotangent).sum()``; Reply of (parameter gradients, inputs')."""
        inputs = [_leaf(item) for item in args]
        named = self._parameters()
        with torch.enable_grad():
            result = _guarded(lambda: self.target(*inputs, **kwargs))
            if not isinstance(result, torch.Tensor):
                return Reply(Foreign("not a tensor"))
            loss = _guarded(lambda: (result if cotangent is None else result * cotangent).sum())
        leaves = [item for item in inputs if isinstance(item, torch.Tensor) and item.requires_grad]
        wanted = [*named.values(), *leaves]
        if not wanted or not loss.requires_grad:
            found = [None] * len(wanted)
        else:
            found = _guarded(lambda: torch.autograd.grad(loss, wanted, allow_unused=True))
        by_name = dict(zip(named, found, strict=False))
        return Reply((plain(by_name), plain(list(found[len(named) :]))))

    def build(self, args, kwargs):
        """Construct the class; return the instance as an answer of its own."""
        return LocalAnswer(_guarded(lambda: self.target(*args, **kwargs)))

    def parameters(self):
        """The trainable parameters by name."""
        return plain(self._parameters())

    def load(self, values):
        """Copy ``values`` into the parameters of the same names, which must be all of them."""
        named = self._parameters()
        if named.keys() != values.keys():
            raise AnswerRaised(
                "ParameterNames", f"parameters {sorted(named)}, expected {sorted(values)}"
            )
        with torch.no_grad():
            for name, parameter in named.items():
                if parameter.shape != values[name].shape:
                    raise AnswerRaised(
                        "ParameterShape",
                        f"{name} has shape {tuple(parameter.shape)}, "
                        f"expected {tuple(values[name].shape)}",
                    )
                parameter.data = values[name].detach().clone()

    def train(self, mode):
        """Put the module into training (True) or evaluation (False) mode."""
        _guarded(lambda: self.target.train(mode))

    def _parameters(self):
        if not isinstance(self.target, torch.nn.Module):
            return {}
        return dict(_guarded(lambda: list(self.target.named_parameters())))


def _guarded(action):
    try:
        return action()
    except AnswerRaised:
        raise
    except (Exception, SystemExit) as error:
        raise AnswerRaised(type(error).__name__, _message(error), _where(error)) from None


def _message(error):
    try:
        return str(error).strip()[:500]
    except Exception:  # a student's exception may fail to print itself
        return ""


def _where(error):
    """The last line of notebook code in the traceback, as 'line 3: weights = …'."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "ipykernel" in frame.filename or frame.filename.startswith("<"):
            return f"line {frame.lineno}: {frame.line}" if frame.line else f"line {frame.lineno}"
    return ""


def _leaf(item):
    if isinstance(item, torch.Tensor) and item.is_floating_point():
        return item.detach().clone().requires_grad_()
    return item


def _modified(before, args, kwargs):
    """Names of the arguments that no longer equal their copy."""
    after = plain([list(args), kwargs])
    changed = [
        f"argument {index + 1}"
        for index, (old, new) in enumerate(zip(before[0], after[0], strict=True))
        if not same(old, new)
    ]
    return changed + [name for name in kwargs if not same(before[1][name], after[1][name])]
