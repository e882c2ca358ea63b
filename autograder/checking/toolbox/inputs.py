"""Random inputs for checks: one seed, float64 everywhere."""

import random
from collections.abc import Iterable
from typing import TypeVar

import torch

T = TypeVar("T")
LONG = 200  # positions: more than a mask or a table of a fixed size has room for


class Draw:
    """A seeded source of check inputs. The same seed and calls give the same tensors."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._generator = torch.Generator().manual_seed(seed)
        self._random = random.Random(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Standard normal numbers times ``scale``, float64."""
        return scale * torch.randn(shape, generator=self._generator, dtype=torch.float64)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """Numbers between ``low`` and ``high``, float64."""
        unit = torch.rand(shape, generator=self._generator, dtype=torch.float64)
        return low + (high - low) * unit

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Integers from ``low`` to ``high - 1``, int64."""
        return torch.randint(low, high, shape, generator=self._generator)

    def permutation(self, n: int) -> torch.Tensor:
        """A permutation of 0 … n-1, never the identity for n > 1 (it would test nothing)."""
        identity = torch.arange(n)
        order = torch.randperm(n, generator=self._generator)
        return order.roll(1) if n > 1 and torch.equal(order, identity) else order

    def choice(self, options: Iterable[T]) -> T:
        """One of ``options``."""
        return self._random.choice(list(options))

    @staticmethod
    def strided(tensor: torch.Tensor) -> torch.Tensor:
        """The same values, laid out so that the tensor is not contiguous in memory."""
        padded = torch.stack([tensor, torch.full_like(tensor, 77)], dim=-1)
        return padded[..., 0]
