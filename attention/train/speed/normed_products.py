"""The two halves of a layer of lesson 20 that are products, and all that they keep for backward.

Each begins with the RMSNorm in front of it. A norm's weight is multiplied into the rows of the
weights behind it: these are few, the tokens many. Normalised vectors, and what SwiGLU makes of its
hidden units, are made again in backward, which costs a pass over memory and no product.

Under autocast the products' factors are of its dtype.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class NormedLinear(torch.autograd.Function):
    """RMSNorm, then linear layers side by side: apply(x, eps, norm, *weights).

    x (..., d_model), norm (d_model,), weights (n_i, d_model); returns (..., n). It keeps x.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float, norm: Tensor, *weights: Tensor) -> Tensor:
        """Return norm(x) @ weight.T of the joined layers, (..., n), of the products' dtype."""
        dtype = dtype_of_products(x)
        inverse = inverse_root(x, eps)  # (..., 1)
        ctx.save_for_backward(x, inverse, norm, *weights)
        return (x * inverse).to(dtype) @ _behind(norm, weights).to(dtype).T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, of the norm's weight and of the layers'."""
        x, inverse, norm, *weights = ctx.saved_tensors
        grad_x, grad_norm, *grads = _back_through_norm(grad, x, inverse, norm, weights)
        return grad_x, None, grad_norm, *grads


class NormedSwiGLU(torch.autograd.Function):
    """x + SwiGLU(RMSNorm(x)): apply(x, eps, norm, W_gate, W_up, W_down).

    x (..., d_model), norm (d_model,), W_gate and W_up (d_ff, d_model), W_down (d_model, d_ff). It
    keeps x and 2 · d_ff numbers for each token: what W_gate and W_up give.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, eps: float, norm: Tensor, W_gate: Tensor, W_up: Tensor, W_down: Tensor
    ) -> Tensor:
        """Return what goes on to the next layer, (..., d_model), of x's dtype."""
        dtype = dtype_of_products(x)
        inverse = inverse_root(x, eps)  # (..., 1)
        joined = _behind(norm, (W_gate, W_up)).to(dtype)  # (2 · d_ff, d_model)
        hidden = (x * inverse).to(dtype) @ joined.T  # (..., 2 · d_ff)
        ctx.save_for_backward(x, inverse, hidden, norm, W_gate, W_up, W_down)
        gate, up = hidden.chunk(2, dim=-1)
        return x + F.silu(gate).mul_(up) @ W_down.to(dtype).T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, of the norm's weight and of the three layers'."""
        x, inverse, hidden, norm, W_gate, W_up, W_down = ctx.saved_tensors
        gate, up = hidden.chunk(2, dim=-1)
        update = grad.to(hidden.dtype)
        opened = F.silu(gate)
        grad_down = _gradient_of_weight(update, opened * up)
        grad_units = update @ W_down.to(hidden.dtype)  # (..., d_ff)
        grad_up = opened.mul_(grad_units)
        grad_gate = torch.ops.aten.silu_backward(grad_units.mul_(up), gate)
        grad_hidden = torch.cat([grad_gate, grad_up], dim=-1)
        del opened, grad_units, grad_up, grad_gate
        weights = [W_gate, W_up]
        grad_x, grad_norm, *grads = _back_through_norm(grad_hidden, x, inverse, norm, weights)
        return grad_x.add_(grad), None, grad_norm, *grads, grad_down.to(W_down.dtype)


def dtype_of_products(x: Tensor) -> torch.dtype:
    """The dtype that autocast wants for products with x, else that of x."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def inverse_root(x: Tensor, eps: float) -> Tensor:
    """What RMSNorm multiplies each vector by, (..., 1): x (..., d_model)."""
    return x.square().mean(dim=-1, keepdim=True).add_(eps).rsqrt_()


def _behind(norm: Tensor, weights: Any) -> Tensor:
    """The layers' weights one below the other, (n, d_model), for vectors without norm's weight."""
    return torch.cat(list(weights)).mul_(norm)


def _gradient_of_weight(grad: Tensor, x: Tensor) -> Tensor:
    """grad.T @ x over all tokens, (n, m): grad (..., n), x (..., m)."""
    return grad.flatten(0, -2).T @ x.flatten(0, -2)


def _back_through_norm(
    grad: Tensor, x: Tensor, inverse: Tensor, norm: Tensor, weights: list[Tensor]
) -> tuple[Tensor, ...]:
    """The gradients of x, norm and each weight, where `grad` (..., n) is that of their product."""
    normed = x * inverse  # (..., d_model)
    joined = torch.cat(weights)
    grad_joined = _gradient_of_weight(grad, normed.to(grad.dtype)).to(joined.dtype)
    grad_norm = (grad_joined * joined).sum(dim=0)
    grad_normed = (grad @ joined.mul_(norm).to(grad.dtype)).to(x.dtype)
    along = (grad_normed * normed).mean(dim=-1, keepdim=True)  # (..., 1)
    grad_x = grad_normed.addcmul_(normed, along, value=-1).mul_(inverse)
    sizes = [len(weight) for weight in weights]
    return grad_x, grad_norm, *grad_joined.mul_(norm).split(sizes)
