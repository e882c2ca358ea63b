"""Plain values: what may pass between a check and a student's answer.

Tensors, numbers, strings, None, and lists, tuples and dicts of these. Anything else is replaced by
a ``Foreign`` that only says what it was, so that a check can tell the student about it and no
object of the student's own ever reaches a check.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Foreign:
    """A result that is not plain; ``description`` says what: 'a numpy.ndarray of shape (2,)'."""

    description: str


def plain(value, depth=0):
    """Return a copy of ``value`` made of plain values only."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, torch.Tensor):
        return _plain_tensor(value)
    if depth < 8:
        if type(value) in (list, tuple):
            return type(value)(plain(item, depth + 1) for item in value)
        if type(value) is dict and all(type(key) is str for key in value):
            return {key: plain(item, depth + 1) for key, item in value.items()}
    return Foreign(_describe(value))


def _plain_tensor(value):
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return Foreign(f"a {type(value).__module__}.{type(value).__qualname__}")
    if value.layout is not torch.strided or value.is_quantized or value.device.type == "meta":
        return Foreign(f"a tensor of layout {value.layout} on {value.device}")
    return value.detach().cpu().clone()


def _describe(value):
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    shape = getattr(value, "shape", None) if kind.__module__ == "numpy" else None
    article = "an" if name[0] in "aeiou" else "a"
    return f"{article} {name}" + (f" of shape {tuple(shape)}" if shape is not None else "")


def same(left, right):
    """Whether two plain values are equal: tensors by shape, dtype and value up to rounding."""
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        loose = left.dtype in (torch.float16, torch.bfloat16, torch.float32)
        rtol, atol = (1e-4, 1e-5) if loose else (1e-7, 1e-10)
        return torch.allclose(left, right, rtol=rtol, atol=atol, equal_nan=True)
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float):
        return left == right or abs(left - right) <= 1e-7 * abs(right) or left != left != right
    return left == right
