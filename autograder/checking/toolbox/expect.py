"""What a check may expect of a result. Each function raises CheckFailed when it is not so.

A failure says what is wrong, what came, what was expected and, where the answer matches a known
mistake, what is likely. ``what`` is a sentence without the exercise's name and without full stop.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from autograder.checking.toolbox.describe_values import (
    describe,
    describe_both,
    identical,
    number,
    two_numbers,
)
from autograder.checking.toolbox.failure import CheckFailed as CheckFailed
from autograder.checking.toolbox.failure import care as care
from autograder.checking.toolbox.failure import careless, no_gradient, of_form
from autograder.checking.toolbox.failure import stage as stage
from autograder.checking.toolbox.failure import stands as stands
from autograder.checking.toolbox.same_tensors import is_real

# Right answers differ by rounding, which depends on the precision: smaller tolerances than these
# are raised to them. (rtol, atol) In float64 as well, for a step in float32 is no mistake.
LEAST_TOLERANCE = {
    torch.float64: (1e-5, 2e-6),
    torch.float32: (1e-4, 1e-6),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (5e-2, 1e-2),
}


def tensor(got: Any, shape: Sequence[int] | None = None, axes: str = "") -> None:
    """``got`` is a tensor."""
    if not isinstance(got, torch.Tensor):
        expected = "a tensor" if shape is None else f"a tensor of shape {_shape(shape, axes)}"
        raise of_form("the result is not a tensor", describe(got), expected, got)


def shape(got: Any, expected: Sequence[int], axes: str = "") -> None:
    """``got`` is a tensor of this shape; ``axes`` names them, as in 'T_q, T_k'."""
    tensor(got, expected, axes)
    if tuple(got.shape) != tuple(expected):
        said = f"shape {tuple(got.shape)}", f"shape {_shape(expected, axes)}"
        raise of_form("the shape is wrong", *said, got)


def dtype(got: Any, expected: torch.dtype) -> None:
    """``got`` has this dtype. To have float32 in the place of float64 is a matter of care."""
    tensor(got)
    if got.dtype != expected:
        precision = got.dtype.is_floating_point and expected.is_floating_point
        reason = ": the result should keep the precision of the input" if precision else ""
        failure = of_form(f"the dtype is wrong{reason}", str(got.dtype), str(expected), got)
        if {got.dtype, expected} != {torch.float32, torch.float64}:
            raise failure
        careless(failure, "dtype")


def finite(got: Any, what: str = "the result is not finite") -> None:
    """No entry is NaN or infinite."""
    tensor(got)
    _refuse_where(~torch.isfinite(got), got, what, "finite numbers")


def close(got: Any, expected: Any, what: str, rtol: float = 1e-6, atol: float = 1e-9) -> None:
    """``got`` equals ``expected`` up to rounding: tensor, shape, dtype, then every value.

    A Python number is compared as a number. Integers have no rounding and are compared exactly.
    """
    if isinstance(expected, int | float):
        _close_number(got, expected, what, rtol, atol)
        return
    shape(got, expected.shape)
    dtype(got, expected.dtype)
    rtol, atol = _tolerance(got.dtype, rtol, atol)
    got = got.to(expected.dtype)
    if not torch.allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True):
        index = _worst(got, expected, rtol, atol)
        shown = two_numbers(got[index].item(), expected[index].item())
        raise CheckFailed(what, *(_at(index) + text for text in shown))


def rows_sum_to_one(weights: Any, dim: int = -1, what: str = "the weights do not sum to 1") -> None:
    """Every slice of ``weights`` along ``dim`` is non-negative and sums to 1."""
    finite(weights, "the weights are not finite")
    if not weights.is_floating_point():
        raise CheckFailed("the weights are not floating-point numbers", describe(weights))
    rtol, atol = _tolerance(weights.dtype, 1e-6, 1e-9)
    _refuse_where(weights < -atol, weights, "a weight is negative", "weights from 0 to 1")
    sums = weights.sum(dim)
    ones = torch.ones_like(sums)
    if not torch.allclose(sums, ones, rtol=rtol, atol=atol):
        index = _worst(sums, ones, rtol, atol)
        place = f" in row {', '.join(map(str, index))}" if index else ""
        shown, _ = two_numbers(sums[index].item(), 1.0)
        raise CheckFailed(what, f"a sum of {shown}{place}", "a sum of 1")


def equal(got: Any, expected: Any, what: str) -> None:
    """``got == expected`` for plain values other than tensors, and of the same types.

    Where a list is expected, a tuple is as good.
    """
    got = _listed(got, expected)
    if not identical(got, expected):
        raise CheckFailed(what, *describe_both(got, expected))


def _listed(got: Any, expected: Any) -> Any:
    """The value with lists where the expected one has them."""
    if isinstance(expected, list) and isinstance(got, list | tuple):
        beside = [*expected, *[None] * len(got)]
        return [_listed(one, other) for one, other in zip(got, beside, strict=False)]
    return got


def parts(got: Any, *names: str) -> Sequence[Any]:
    """``got`` has one item for each of ``names``, as a tuple or a list; returns them."""
    if not isinstance(got, list | tuple) or len(got) != len(names):
        shown = describe(got)
        if isinstance(got, list | tuple):
            shown = "one result" if len(got) == 1 else f"{len(got)} results"
        wanted = f"{len(names)}: {', '.join(names)}"
        raise of_form(f"there should be {len(names)} results", shown, wanted, got)
    return got


def true(condition: object, what: str, got: str = "", expected: str = "") -> None:
    """``condition`` holds."""
    if not bool(condition):
        raise CheckFailed(what, got, expected)


def raises(student: Any, error: type[BaseException], *args: Any, what: str, **kwargs: Any) -> str:
    """Calling ``student`` raises ``error``; returns the message."""
    raised, message = student.outcome(*args, **kwargs)
    if raised == error.__name__:
        return message
    got = f"{raised}: {message}" if isinstance(raised, str) else f"it returned {describe(message)}"
    raise CheckFailed(what, got, f"a {error.__name__}")


def gradients(
    student: Any,
    reference: Callable[..., Any],
    *args: Any,
    what: str = "the gradient is wrong",
    cotangent: torch.Tensor | None = None,
    **kwargs: Any,
) -> None:
    """Gradients through ``student`` equal those through ``reference`` on the same inputs.

    Where these return a tuple, such as (context, weights), its first item is differentiated.
    """
    leaves = [item.detach().clone().requires_grad_() if is_real(item) else item for item in args]
    with torch.enable_grad():
        result = reference(*leaves, **kwargs)
        result = result[0] if isinstance(result, tuple) else result
        loss = (result if cotangent is None else result * cotangent).sum()
        wanted = torch.autograd.grad(loss, [item for item in leaves if is_real(item)])
    positions = [place for place, item in enumerate(args, start=1) if is_real(item)]
    found = student.gradients(*args, cotangent=cotangent, **kwargs)
    for position, got, expected in zip(positions, found, wanted, strict=True):
        if got is None:
            raise no_gradient(f"argument {position}")
        which = f", that of argument {position}" if len(positions) > 1 else ""
        close(got, expected, what + which)


def _refuse_where(bad: torch.Tensor, got: torch.Tensor, what: str, expected: str) -> None:
    """Raise CheckFailed with the first entry of ``got`` that is ``bad``, if there is one."""
    places = bad.nonzero()
    if len(places):
        index = tuple(places[0].tolist())
        raise CheckFailed(what, f"{_at(index)}{number(got[index])}", expected)


def _close_number(got: Any, expected: Any, what: str, rtol: float, atol: float) -> None:
    if isinstance(got, torch.Tensor) and got.dim() == 0:
        got = got.item()
    if not isinstance(got, int | float) or isinstance(got, bool):
        kind = "an int" if isinstance(expected, int) else "a float"
        raise CheckFailed(f"the result should be {kind}", describe(got), describe(expected))
    if not _close_enough(got, expected, rtol, atol):
        raise CheckFailed(what, *two_numbers(got, expected))


def _close_enough(got: Any, expected: Any, rtol: float, atol: float) -> bool:
    if got == expected or (got != got and expected != expected):
        return True
    if isinstance(got, int) and isinstance(expected, int):
        return False
    try:
        return math.isclose(got, expected, rel_tol=rtol, abs_tol=atol)
    except OverflowError:  # an integer beyond the floating-point numbers
        return False


def _tolerance(dtype: torch.dtype, rtol: float, atol: float) -> tuple[float, float]:
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0, 0.0
    least = LEAST_TOLERANCE.get(dtype, (0.0, 0.0))
    return max(rtol, least[0]), max(atol, least[1])


def _worst(got: Any, expected: Any, rtol: float, atol: float) -> tuple[int, ...]:
    """Index of the entry that exceeds the tolerance by most; NaN and infinity exceed any."""
    equal = (got == expected) | ((got != got) & (expected != expected))
    if not got.is_floating_point():
        return tuple((~equal).nonzero()[0].tolist())
    excess = (got.double() - expected.double()).abs() - (atol + rtol * expected.double().abs())
    excess = excess.nan_to_num(nan=math.inf, posinf=math.inf, neginf=math.inf)
    excess = excess.masked_fill(equal, -math.inf)
    # torch.unravel_index would do the same, but the first time it imports sympy for two seconds.
    return tuple(map(int, numpy.unravel_index(excess.argmax().item(), excess.shape)))


def _at(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}] = " if index else ""


def _shape(expected: Sequence[int], axes: str) -> str:
    text = str(tuple(expected))
    return f"{text}, that is ({axes})" if axes else text
