"""What an argument must be: what means nothing is refused in a sentence, never obeyed.

Each of these raises ValueError, which names the argument and says its value and the bound. Numbers
are looked at, Python's and numpy's. Of a tensor there is no more than its dtype: its values may lie
on another device, and whoever asks for them waits for all that is going on there.
"""

import math
import operator
from typing import Any

import torch


def counts(least: int = 1, most: int | None = None, /, **numbers: Any) -> None:
    """Refuse what is no whole number from ``least`` on, to ``most`` if there is one.

    >>> counts(n_heads=3, d_model=12)
    >>> counts(n_heads=0)
    Traceback (most recent call last):
    ValueError: n_heads=0 is no whole number from 1 on
    """
    for name, value in numbers.items():
        if not _is_whole(value) or value < least or (most is not None and value > most):
            raise ValueError(f"{name}={_plain(value)!r} is no whole number {_span(least, most)}")


def positive(**numbers: Any) -> None:
    """Refuse what is no finite number above 0.

    >>> positive(bandwidth=-1.0)
    Traceback (most recent call last):
    ValueError: bandwidth=-1.0 is no finite number above 0
    """
    for name, value in numbers.items():
        if not isinstance(value, torch.Tensor) and not (_is_real(value) and 0 < value < math.inf):
            raise ValueError(f"{name}={_plain(value)!r} is no finite number above 0")


def within(low: float, high: float = math.inf, /, **numbers: Any) -> None:
    """Refuse what is no finite number from ``low`` to ``high``, both included.

    >>> within(0, 1, smoothing=1.5)
    Traceback (most recent call last):
    ValueError: smoothing=1.5 is no finite number from 0 to 1
    """
    for name, value in numbers.items():
        if not (_is_real(value) and low <= value <= high and abs(value) < math.inf):
            span = _span(low, None if high == math.inf else high)
            raise ValueError(f"{name}={_plain(value)!r} is no finite number {span}")


def share(**numbers: Any) -> None:
    """Refuse what is no number from 0 on that is below 1, as a share that is dropped must be.

    >>> share(dropout=1.0)
    Traceback (most recent call last):
    ValueError: dropout=1.0 is no number from 0 on that is below 1
    """
    for name, value in numbers.items():
        if not (_is_real(value) and 0 <= value < 1):
            raise ValueError(f"{name}={_plain(value)!r} is no number from 0 on that is below 1")


def masks(*several: Any, **named: Any) -> None:
    """Refuse a mask that is not bool: elsewhere 0 and 1, or 0 and -inf, are added or multiplied.

    >>> masks(mask=torch.tensor([0.0, -torch.inf]))
    Traceback (most recent call last):
    ValueError: mask is of torch.float32, not of torch.bool: True = may attend
    """
    for name, mask in [*(("mask", mask) for mask in several), *named.items()]:
        kind = getattr(mask, "dtype", type(mask).__name__)
        if mask is not None and kind != torch.bool:
            raise ValueError(f"{name} is of {kind}, not of torch.bool: True = may attend")


def _is_whole(value: Any) -> bool:
    """Python's ints, and whatever counts like them: numpy's, and a size that is being compiled."""
    if isinstance(value, bool | float | str):
        return False
    if isinstance(value, int):
        return True
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_real(value: Any) -> bool:
    """Python's numbers, and numpy's, which say that they can become one; strings do not."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or hasattr(value, "__float__")


def _plain(value: Any) -> Any:
    """A number of numpy's as one of Python's, which is written without the name of its type."""
    return value.item() if hasattr(value, "item") else value


def _span(low: float, high: float | None) -> str:
    return f"from {low} on" if high is None else f"from {low} to {high}"
