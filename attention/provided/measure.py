"""Measure what a computation costs: time and memory."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attention.provided import demand


def milliseconds(action: Callable[[], object], repeats: int = 20) -> float:
    """Return the shortest of several runs of ``action()``, in milliseconds.

    The shortest is the one least disturbed by whatever else the machine is doing.
    Raises ValueError for less than one repeat.
    """
    demand.counts(repeats=repeats)
    spent = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        spent.append(time.perf_counter() - begin)
    return 1000 * min(spent)


def megabytes(action: Callable[[], object]) -> float:
    """Return how much memory ``action()`` asks for in all, in megabytes (10⁶ bytes).

    Every tensor that is made counts once; views of it are free.

    >>> x = torch.zeros(500, 500)
    >>> megabytes(lambda: (x.T + 1).exp())  # two tensors of 250 000 numbers, 4 bytes each
    2.0
    """
    with _Count() as count, torch.no_grad():
        action()
    return count.bytes / 1e6


def both_ways(action: Callable[[], Tensor], inputs: Sequence[Tensor]) -> Callable[[], object]:
    """Return a function that runs ``action`` forward and backward.

    inputs  what ``action`` reads, and what gets gradients: those of the sum of its result

    >>> x = torch.ones(3, requires_grad=True)
    >>> both_ways(lambda: 2 * x, [x])()
    (tensor([2., 2., 2.]),)
    """

    def run() -> object:
        with torch.enable_grad():
            return torch.autograd.grad(action().sum(), inputs)

    return run


class _Count(TorchDispatchMode):
    """Adds up the sizes of the storages that operations make."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        old = {item.untyped_storage().data_ptr() for item in args if torch.is_tensor(item)}
        result = function(*args, **(kwargs or {}))
        for item in result if isinstance(result, tuple | list) else [result]:
            if torch.is_tensor(item) and item.untyped_storage().data_ptr() not in old:
                self.bytes += item.untyped_storage().nbytes()
        return result
