"""Matrix products in float32 by oneDNN, on CPUs where those of PyTorch are only half as fast.

On a CPU PyTorch leaves float32 to MKL, Intel's library, which on a processor of AMD with AVX-512
does half of what oneDNN does, another part of PyTorch.
"""

import functools
import os
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from attention.provided.measuring.timing import shortest

CLEARLY = 1.25  # times as fast: less is not worth it
ROWS = 4096  # of what is added to a total, at a time
SHAPES = 16  # of the last products: for each, oneDNN keeps kernels that take up to 3 MiB


@functools.cache
def onednn_is_faster() -> bool:
    """Whether oneDNN multiplies clearly faster here than PyTorch of its own accord: both are tried.

    It takes less than 50 ms, once in a process.
    """
    if onednn() is None:
        return False
    left, right = torch.ones(256, 512), torch.ones(512, 512)  # random numbers would be missed later
    usual = shortest(lambda: F.linear(left, right), least=7)
    return usual > CLEARLY * shortest(lambda: by_onednn(left, right), least=7)


def onednn() -> Any:
    """PyTorch's operator for a linear layer by oneDNN, as `by_onednn` calls it, None without it.

    Compiled graphs call it. It has no public name, and another version may not have it.
    """
    there = torch.backends.mkldnn.is_available()
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None) if there else None


def by_onednn(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return left @ right.T + bias by oneDNN, shapes as for `product`; there has to be one."""
    made: Tensor = onednn()(left, right, bias, "none", [], "")
    return made


def _applies(*tensors: Tensor) -> bool:
    """Whether oneDNN is to multiply them: otherwise, PyTorch decides."""
    return (
        not torch.compiler.is_compiling()
        and all(x.dtype == torch.float32 and x.device.type == "cpu" and x.numel() for x in tensors)
        and not torch.is_autocast_enabled("cpu")
        and onednn_is_faster()
    )


def product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return left @ right.T + bias, (..., n): left (..., m), right (n, m), bias (n,)."""
    return (by_onednn if _applies(left, right) else F.linear)(left, right, bias)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right.T to a total (n, m) in place: left (n, k), right (m, k), of any float type.

    What is added is made a few rows at a time, which the processor's cache holds until it is added.
    """
    if left.dtype == total.dtype and not _applies(left, right):
        total.addmm_(left, right.T)
        return
    for some, of in zip(total.split(ROWS), left.split(ROWS), strict=True):
        some += product(of, right)


def linear(x: Tensor, *layers: nn.Linear) -> Tensor:
    """Apply linear layers to one x (..., m) in one product: their results side by side, (..., n).

    Either all of the layers have a bias, or none.
    """
    weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
    if _applies(x, *weights):
        joined: Tensor = JoinedLinear.apply(x, *weights, *biases)
        return joined
    return F.linear(x, _join(weights), _join(biases))


def _join(parts: list[Any]) -> Any:
    """The tensors one below the other; None for None, where layers have no bias."""
    return parts[0] if len(parts) == 1 or parts[0] is None else torch.cat(parts)


class JoinedLinear(torch.autograd.Function):
    """Linear layers side by side: apply(x (..., m), weights (n_i, m), biases (n_i,) or None).

    It remembers x and the layers' own weights; joined, they would be remembered once more.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Any) -> Tensor:
        """Return x @ weight.T + bias of the joined layers, (..., n)."""
        n = len(parameters) // 2
        weights, biases = list(parameters[:n]), list(parameters[n:])
        ctx.save_for_backward(x, *(weights if ctx.needs_input_grad[0] else []))
        ctx.sizes, ctx.biased = [len(weight) for weight in weights], biases[0] is not None
        return product(x, _join(weights), _join(biases))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, of each weight and of each bias."""
        x, *weights = ctx.saved_tensors
        grad_x = product(grad, _join(weights).T) if weights else None
        rows = grad.reshape(-1, grad.shape[-1])  # (N, n)
        grad_weight = product(rows.T, x.reshape(len(rows), -1).T)  # (n, m)
        grad_bias = rows.sum(dim=0).split(ctx.sizes) if ctx.biased else [None] * len(ctx.sizes)
        return grad_x, *grad_weight.split(ctx.sizes), *grad_bias


def keep_few_kernels() -> None:
    """Have oneDNN keep the kernels of few shapes, if it has not multiplied yet in this process.

    Almost every batch has a shape of its own, and making them anew costs little. In bfloat16
    PyTorch leaves all products to oneDNN, so this is for every model, also for those that are not
    quickened. Variables that are set already stay as they are.
    """
    for capacity in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(capacity, str(SHAPES))


def quicken(model: nn.Module) -> None:
    """Let oneDNN multiply for the linear layers of a model on a CPU, where it is faster."""
    keep_few_kernels()
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear  # the same parameters under the same names


class Linear(nn.Linear):
    """nn.Linear, multiplied by oneDNN where that is faster."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x @ weight.T + bias, (..., out_features): x (..., in_features)."""
        return linear(x, self)
