"""When tensors of two replies are the same, up to the rounding of the less precise of the two."""

from typing import Any

import torch

# The rounding of a dtype: (rtol, atol).
ROUNDING = {
    torch.bfloat16: (2e-2, 1e-3),
    torch.float16: (4e-3, 1e-4),
    torch.float32: (1e-4, 1e-5),
    torch.float64: (1e-6, 1e-10),
}
ENOUGH = 3  # numbers of which a relation between numbers must hold, lest it be chance


def is_real(value: Any) -> bool:
    """Whether this is a tensor of floating-point numbers."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def unpacked(value: Any) -> Any:
    """A number as a tensor, so that one relation serves for both."""
    if isinstance(value, bool | int | float):
        return torch.tensor(value, dtype=torch.float64)
    return value


def rounding(*dtypes: torch.dtype) -> tuple[float, float]:
    """(rtol, atol) of the least precise of some dtypes; whole numbers have none of their own."""
    found = [ROUNDING[dtype] for dtype in dtypes if dtype in ROUNDING]
    return max(found, default=ROUNDING[torch.float64])


def same_places(got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Where two tensors of one shape hold the same."""
    if got.dtype == torch.bool or expected.dtype == torch.bool:
        return got == expected
    rtol, atol = rounding(got.dtype, expected.dtype)
    return torch.isclose(got.double(), expected.double(), rtol=rtol, atol=atol, equal_nan=True)


def same(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors are of the same shape and hold the same."""
    return got.shape == expected.shape and bool(same_places(got, expected).all())


def constant(x: torch.Tensor) -> bool:
    """Whether a tensor holds one number only, however often: too little for many a relation."""
    return x.numel() < 2 or bool((x == x.flatten()[0]).all())


def all_equal(numbers: torch.Tensor, room: float = 0.0) -> bool:
    """Whether these are enough numbers, all finite and the same, save for ``room``."""
    if len(numbers) < ENOUGH or not torch.isfinite(numbers).all():
        return False
    return bool(torch.allclose(numbers, numbers.median(), rtol=2e-6, atol=room))


def comparable(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors of one shape hold enough finite numbers, not all the same."""
    numbers = got.is_floating_point() or expected.is_floating_point()
    finite = torch.isfinite(got).all() and torch.isfinite(expected).all()
    return numbers and bool(finite) and got.numel() >= ENOUGH and not constant(expected)


def tensors_of(question: Any) -> list[torch.Tensor]:
    """The tensors among the arguments of a call, or of a question about its gradients."""
    args, kwargs = question.details[:2]
    return [item for item in (*args, *kwargs.values()) if isinstance(item, torch.Tensor)]


def name_of(dtype: torch.dtype) -> str:
    """float32 for torch.float32."""
    return str(dtype).removeprefix("torch.")
