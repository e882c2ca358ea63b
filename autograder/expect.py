"""What a check may expect of a result. Each function raises CheckFailed when it is not so.

A failure says what is wrong, what came, what was expected and, where the answer matches a known
mistake, what is likely. ``what`` is a sentence without the exercise's name and without full stop.
"""

import math

import torch

from autograder.plain import Foreign


class CheckFailed(AssertionError):
    """A failed expectation; str() is the message that the student reads.

    ``exercise``, ``likely`` and ``seed`` are filled in by the runner.
    """

    def __init__(self, what, got="", expected=""):
        super().__init__(what)
        self.what, self.got, self.expected = what, got, expected
        self.exercise, self.likely, self.seed = "", "", None

    def __str__(self):
        head = f"{self.exercise}: {self.what}." if self.exercise else f"{self.what}."
        parts = {
            "got": self.got,
            "expected": self.expected,
            "likely": self.likely,
            "seed": "" if self.seed is None else str(self.seed),
        }
        lines = [
            f"  {label:<10}" + str(text).replace("\n", "\n" + " " * 12)
            for label, text in parts.items()
            if text
        ]
        return "\n".join([head, *lines])

    def _render_traceback_(self):
        """IPython shows these lines instead of a traceback."""
        return str(self).splitlines()


def describe(value):
    """Say in a few words what a plain value is."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}, {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, Foreign):
        return value.description
    if value is None:
        return "None (is there a return?)"
    text = repr(value)
    article = "an" if type(value).__name__[0] in "aeiou" else "a"
    return f"{article} {type(value).__name__}: {text if len(text) <= 60 else text[:57] + '...'}"


def tensor(got, shape=None, axes=""):
    """``got`` is a tensor."""
    if not isinstance(got, torch.Tensor):
        expected = "a tensor" if shape is None else f"a tensor of shape {_shape(shape, axes)}"
        raise CheckFailed("the result is not a tensor", describe(got), expected)


def shape(got, expected, axes=""):
    """``got`` is a tensor of this shape; ``axes`` names them, as in 'T_q, T_k'."""
    tensor(got, expected, axes)
    if tuple(got.shape) != tuple(expected):
        raise CheckFailed(
            "the shape is wrong",
            f"shape {tuple(got.shape)}",
            f"shape {_shape(expected, axes)}",
        )


def dtype(got, expected):
    """``got`` has this dtype."""
    tensor(got)
    if got.dtype != expected:
        raise CheckFailed(
            "the dtype is wrong: the result should keep the precision of the input",
            str(got.dtype),
            str(expected),
        )


def finite(got, what="the result is not finite"):
    """No entry is NaN or infinite."""
    tensor(got)
    bad = (~torch.isfinite(got)).nonzero()
    if len(bad):
        index = tuple(bad[0].tolist())
        raise CheckFailed(what, f"{_at(index)}{_number(got[index])}", "finite numbers")


def close(got, expected, what, rtol=1e-6, atol=1e-9):
    """``got`` equals ``expected`` up to rounding: tensor, shape, dtype, then every value.

    A Python number is compared as a number.
    """
    if isinstance(expected, int | float):
        _close_number(got, expected, what, rtol, atol)
        return
    shape(got, expected.shape)
    dtype(got, expected.dtype)
    try:
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError:
        index = _worst(got, expected)
        raise CheckFailed(
            what,
            f"{_at(index)}{_number(got[index])}",
            f"{_at(index)}{_number(expected[index])}",
        ) from None


def rows_sum_to_one(weights, dim=-1, what="the weights do not sum to 1"):
    """Every slice of ``weights`` along ``dim`` is non-negative and sums to 1."""
    finite(weights, "the weights are not finite")
    negative = (weights < 0).nonzero()
    if len(negative):
        index = tuple(negative[0].tolist())
        raise CheckFailed(
            "a weight is negative", f"{_at(index)}{_number(weights[index])}", "weights from 0 to 1"
        )
    sums = weights.sum(dim)
    if not torch.allclose(sums, torch.ones_like(sums), rtol=1e-6, atol=1e-9):
        index = _worst(sums, torch.ones_like(sums))
        place = f" in row {', '.join(map(str, index))}" if index else ""
        raise CheckFailed(what, f"a sum of {_number(sums[index])}{place}", "a sum of 1")


def equal(got, expected, what):
    """``got == expected`` for plain values other than tensors."""
    if type(got) is not type(expected) or got != expected:
        raise CheckFailed(what, describe(got), describe(expected))


def true(condition, what, got="", expected=""):
    """``condition`` holds."""
    if not bool(condition):
        raise CheckFailed(what, got, expected)


def raises(student, error, *args, what, **kwargs):
    """Calling ``student`` raises ``error``; returns the message."""
    raised, message = student.outcome(*args, **kwargs)
    if raised == error.__name__:
        return message
    got = f"{raised}: {message}" if isinstance(raised, str) else f"it returned {describe(message)}"
    raise CheckFailed(what, got, f"a {error.__name__}")


def gradients(student, reference, *args, what="the gradient is wrong", cotangent=None, **kwargs):
    """Gradients through ``student`` equal those through ``reference`` on the same inputs."""
    leaves = [item.detach().clone().requires_grad_() if _floating(item) else item for item in args]
    with torch.enable_grad():
        result = reference(*leaves, **kwargs)
        loss = (result if cotangent is None else result * cotangent).sum()
        wanted = torch.autograd.grad(loss, [item for item in leaves if _floating(item)])
    found = student.gradients(*args, cotangent=cotangent, **kwargs)
    for position, (got, expected) in enumerate(zip(found, wanted, strict=True), start=1):
        if got is None:
            raise CheckFailed(
                f"no gradient flows back to argument {position}",
                "no gradient (detached, or rebuilt from plain numbers)",
                "a gradient: every step stays a tensor operation",
            )
        close(got, expected, what)


def _floating(item):
    return isinstance(item, torch.Tensor) and item.is_floating_point()


def _close_number(got, expected, what, rtol, atol):
    if isinstance(got, torch.Tensor) and got.dim() == 0:
        got = got.item()
    if not isinstance(got, int | float) or isinstance(got, bool):
        raise CheckFailed(f"{what}: the result is not a number", describe(got), _number(expected))
    if not math.isclose(got, expected, rel_tol=rtol, abs_tol=atol):
        raise CheckFailed(what, _number(got), _number(expected))


def _worst(got, expected):
    """Index of the entry that is furthest off; NaN counts as furthest."""
    if got.dim() == 0:
        return ()
    if not (got.is_floating_point() or got.is_complex()):
        return tuple((got != expected).nonzero()[0].tolist())
    gap = (got.double() - expected.double()).abs()
    gap = torch.where(got == expected, 0.0, gap).nan_to_num(nan=math.inf, posinf=math.inf)
    return tuple(
        torch.unravel_index(gap.argmax(), gap.shape)[axis].item() for axis in range(gap.dim())
    )


def _at(index):
    return f"[{', '.join(map(str, index))}] = " if index else ""


def _number(value):
    value = value.item() if isinstance(value, torch.Tensor) else value
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shape(expected, axes):
    text = str(tuple(expected))
    return f"{text}, that is ({axes})" if axes else text
