"""An answer that is asked in float32 whatever a check hands it.

Checks ask in float64, where rounding hides nothing. Who has written for float32 alone, which is
what PyTorch makes of numbers, is asked again in float32.
"""

from collections.abc import Callable
from typing import Any

import torch

from autograder.inside.answer import AnyAnswer
from autograder.inside.messages.values import mapped

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

    def __getattr__(self, request: str) -> Callable[..., Any]:
        def ask(*details: Any, **how: Any) -> Any:
            found = getattr(self._answer, request)(*mapped(_narrowed, details), **how)
            return Narrow(found) if request == "build" else found

        return ask


def _narrowed(value: Any) -> Any:
    return value.float() if getattr(value, "dtype", None) == torch.float64 else value
