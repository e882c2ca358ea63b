"""What a forward pass keeps in memory for the backward pass."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


def kept_tensors(
    action: Callable[[], Any], parameters: Iterable[Tensor] = ()
) -> list[tuple[tuple[int, ...], int]]:
    """Return what the operations of ``action()`` keep for their gradients: (shape, bytes) each.

    parameters  tensors that are there anyway, and do not count

    What several operations keep counts once, also where they keep it in different shapes.

    >>> x = torch.ones(5, requires_grad=True)
    >>> kept_tensors(lambda: x.exp())  # its own result
    [((5,), 20)]
    """
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    found: dict[int, tuple[Any, tuple[int, ...]]] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found.setdefault(storage.data_ptr(), (storage, tuple(tensor.shape)))
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        result = action()
    del result
    return [(shape, storage.nbytes()) for storage, shape in found.values()]


def kept_bytes(action: Callable[[], Any], parameters: Iterable[Tensor] = ()) -> int:
    """Return how many bytes the operations of ``action()`` keep for their gradients."""
    return sum(size for _, size in kept_tensors(action, parameters))
