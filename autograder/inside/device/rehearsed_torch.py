"""What PyTorch does on CUDA and not on the rehearsal device: autocast, and modules keep their ties.

Autocast is CUDA's, by its two lists; what is on neither keeps the types that it is given.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from autograder.inside.messages.values import within

DEVICE = "meta"  # the borrowed name of the rehearsal device
SHORTENED = {
    *("__matmul__", "__rmatmul__", "addbmm", "addmm", "addmv", "baddbmm", "bmm", "conv1d"),
    *("conv2d", "conv3d", "einsum", "gru", "linear", "lstm", "matmul", "mm", "multi_dot"),
    *("multi_head_attention_forward", "mv", "prelu", "scaled_dot_product_attention"),
}
WIDENED = {
    *("__pow__", "__rpow__", "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "exp"),
    *("expm1", "group_norm", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log1p", "log2"),
    *("log_softmax", "mse_loss", "nll_loss", "norm", "pow", "prod", "reciprocal", "rsqrt"),
    *("smooth_l1_loss", "softmax", "softplus", "sum"),
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32)  # float64 is left alone


class Autocast(torch.autocast):
    """Takes the place of torch.autocast; of other devices it is PyTorch's own."""

    chosen: list[torch.dtype | None] = []  # of the blocks that are open, the innermost last

    def __init__(
        self,
        device_type: str,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.here = device_type == DEVICE
        if self.here:
            self.wanted = (dtype or torch.get_autocast_dtype("cuda")) if enabled else None
            device_type, dtype, enabled = "cpu", torch.bfloat16, False
        super().__init__(device_type, dtype, enabled, cache_enabled)

    def __enter__(self) -> Any:
        if not self.here:
            return super().__enter__()
        self.chosen.append(self.wanted)
        return self

    def __exit__(self, *error: Any) -> Any:
        if not self.here:
            return super().__exit__(*error)
        self.chosen.pop()
        return False


def in_its_type(func: Any, values: Any) -> Any:
    """The arguments of ``func``, or some of them, in the type that autocast wants them to have."""
    if not Autocast.chosen or Autocast.chosen[-1] is None:
        return values
    name, lower = getattr(func, "__name__", ""), Autocast.chosen[-1]
    if name not in SHORTENED | WIDENED:
        return values
    return _cast(values, lower if name in SHORTENED else torch.float32)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        floats = value.dtype in FLOATS and value.device.type == DEVICE
        return value.to(dtype) if floats else value
    return within(value, lambda item: _cast(item, dtype))


_APPLY = torch.nn.Module._apply


def _apply(module: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
    """``module.to(device)`` and the like: a weight that was moved twice is one weight again."""
    places = [
        (part._parameters, name, parameter)
        for part in module.modules()
        for name, parameter in part._parameters.items()
    ]
    _APPLY(module, *args, **kwargs)
    made = {id(parameter): owner[name] for owner, name, parameter in places}
    for owner, name, parameter in places:
        owner[name] = made[id(parameter)]
    return module


@contextlib.contextmanager
def replaced() -> Iterator[None]:
    """Let these take the places of PyTorch's own meanwhile."""
    known = torch.autocast
    torch.autocast = torch.amp.autocast = Autocast  # type: ignore[misc]
    torch.nn.Module._apply = _apply  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        torch.nn.Module._apply = _APPLY  # type: ignore[method-assign]
        torch.autocast = torch.amp.autocast = known  # type: ignore[misc]
        Autocast.chosen.clear()  # of blocks that were never left
