"""Large values in short: what is kept of a tensor to recognise it, not to rebuild it.

Of a tensor of many numbers stay its shape, its dtype, some of its numbers, and its sums under
random signs. Two tensors that differ by more than rounding in one row, or in one number that is not
tiny beside the others, differ in these.
"""

import functools
from typing import Any

import torch

from autograder.inside.messages.values import mapped, same

LARGE = 64  # from here on a tensor is shortened
SAMPLES, SUMS = 24, 6
NARROW = (torch.float16, torch.bfloat16, torch.float32, torch.complex64)


def fingerprint(value: Any) -> Any:
    """The plain value with each large tensor replaced by a dict that describes it."""

    def shortened(item: Any) -> Any:
        is_large = isinstance(item, torch.Tensor) and item.numel() > LARGE
        return _of_tensor(item) if is_large else item

    return mapped(shortened, value)


def fits(short: Any, value: Any, exactly: bool = False) -> bool:
    """Whether ``short`` is that of ``value``, up to rounding; ``exactly``: zeros as well."""
    if isinstance(value, torch.Tensor):
        if value.numel() <= LARGE or not isinstance(short, dict):
            return same(short, value) and (not exactly or torch.equal(short == 0, value == 0))
        return _tensors_fit(short, _of_tensor(value), exactly)
    if type(short) is not type(value):
        return False
    if isinstance(value, list | tuple):
        pairs = zip(short, value, strict=False)
        return len(short) == len(value) and all(fits(*pair, exactly) for pair in pairs)
    if isinstance(value, dict):
        named = short.keys() == value.keys()
        return named and all(fits(short[key], value[key], exactly) for key in value)
    return same(short, value)


def _tensors_fit(short: dict[str, Any], other: dict[str, Any], exactly: bool) -> bool:
    if any(short.get(key) != other[key] for key in ("shape", "dtype")):
        return False
    if not same(short["samples"], other["samples"]) or exactly and short["zeros"] != other["zeros"]:
        return False
    rounding = 1e-4 if short["samples"].dtype in NARROW else 1e-7
    scale = max(short["length"], other["length"], 1e-12)
    away = (short["sums"] - other["sums"]).abs().max()
    return bool(away <= 10 * rounding * scale)


def _of_tensor(value: torch.Tensor) -> dict[str, Any]:
    flat = value.detach().reshape(-1)
    wide = torch.view_as_real(flat).sum(-1).double() if flat.is_complex() else flat.double()
    finite = torch.where(wide.isfinite(), wide, 1e3 * wide.sign().nan_to_num(2.0))
    places, signs = _drawn(flat.numel())
    return {
        "shape": list(value.shape),
        "dtype": str(value.dtype),
        "samples": flat[places],
        "sums": signs.to(torch.float64) @ finite,
        "length": float(finite.norm()),
        "zeros": int((wide == 0).sum()),
    }


@functools.lru_cache(maxsize=32)
def _drawn(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair (places of the samples, signs of the sums) for ``count`` numbers: always the same."""
    drawn = torch.Generator().manual_seed(count)
    places = torch.randint(count, (SAMPLES,), generator=drawn)
    signs = torch.randint(2, (SUMS, count), generator=drawn, dtype=torch.int8) * 2 - 1
    return places, signs
