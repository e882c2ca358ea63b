"""An answer that is asked in float32 whatever a check hands it.

Checks ask in float64, where rounding hides nothing. Who has written for float32 alone, which is
what PyTorch makes of numbers, is asked again in float32.
"""

from collections.abc import Callable
from typing import Any

import torch

from autograder.inside.answer import AnyAnswer

SPOKEN_OF = ("dtype", "double", "scalar type")  # in what PyTorch says where precisions meet


def by_precision(kind: str, message: str) -> bool:
    """Whether an exception comes from tensors of two precisions."""
    return kind in ("RuntimeError", "TypeError") and any(
        word in message.lower() for word in SPOKEN_OF
    )


class Narrow:
    """Passes on every request with float32 in the place of float64."""

    def __init__(self, answer: AnyAnswer) -> None:
        self._answer = answer

    def build(self, *details: Any, **how: Any) -> "Narrow":
        """Construct the class; return the instance as an answer of its own."""
        return Narrow(self._answer.build(*_narrowed(details), **how))

    def __getattr__(self, request: str) -> Callable[..., Any]:
        ask = getattr(self._answer, request)
        return lambda *details, **how: ask(*_narrowed(details), **how)


def _narrowed(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype == torch.float64 else value
    if isinstance(value, dict):
        return {name: _narrowed(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_narrowed, value))
    return value
