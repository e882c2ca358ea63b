"""Where a training takes PyTorch's own parts, the student's pieces that do the same.

The library's layers use nn.LayerNorm and nn.RMSNorm, its training step torch.optim.AdamW: lessons
09, 11 and 20 have them written all the same. With --mine they are used, and the shortcuts of
`acceleration`, which pass by the pieces of the lessons, are not.
"""

from typing import Any

import torch
from torch import Tensor, nn

from attention.multi_head_attention import Sublayers
from attention.train.pieces import collected
from attention.training import ModelAndLoss


class RMSNorm(nn.Module):
    """A student's rms_norm as a layer, with the weight of an nn.RMSNorm."""

    def __init__(self, rms_norm: Any, old: nn.RMSNorm):
        super().__init__()
        self.rms_norm, self.weight, self.eps = rms_norm, old.weight, old.eps

    def forward(self, x: Tensor) -> Any:
        """Return the normalised x, (..., d)."""
        return self.rms_norm(x, self.weight, self.eps)


def furnish(model: Any) -> Any:
    """Put the student's norms and FeedForward, if in use, into a model; returns it.

    They take over the weights. A masked_attention of the student's is asked, not PyTorch's kernel.
    """
    norm, rms_norm = collected.own("LayerNorm"), collected.own("rms_norm")
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if norm is not None and isinstance(child, nn.LayerNorm):
                setattr(module, name, _with_weights(norm(len(child.weight), child.eps), child))
            if rms_norm is not None and isinstance(child, nn.RMSNorm):
                setattr(module, name, RMSNorm(rms_norm, child))
        if isinstance(module, Sublayers):
            _furnish_layer(module)
    return model.train(model.training)


def _furnish_layer(layer: Any) -> None:
    feed_forward = collected.own("FeedForward")
    if feed_forward is not None:
        old = layer.feed_forward
        first: nn.Linear = old.linear_1
        made = feed_forward(first.in_features, first.out_features, old.dropout.p)
        layer.feed_forward = _with_weights(made, old)
    if collected.own("masked_attention") is not None:
        for attention in (layer.attention, getattr(layer, "cross_attention", None)):
            if attention is not None:
                attention.fused = False


def _with_weights(made: Any, old: nn.Module) -> Any:
    made.load_state_dict(old.state_dict())
    return made


class PlainLoss(ModelAndLoss):
    """Lesson 11's loss as the lesson has it: all logits at once, and the student's if in use."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss per real token, (): source (B, T_k), target (B, T_q), ids."""
        label_smoothed_loss = collected.own("label_smoothed_loss")
        if label_smoothed_loss is None:
            return self.loss(source, target)
        with torch.autocast(source.device.type, self.dtype, enabled=self.dtype is not None):
            logits = self.model(source, target)  # (B, T_q, vocab_size)
        loss: Tensor = label_smoothed_loss(logits.float(), target, self.smoothing)
        return loss


class StudentsAdamW(torch.optim.Optimizer):
    """An optimiser that takes each step with a student's adamw_step."""

    def __init__(self, parameters: Any, adamw_step: Any, **settings: Any):
        super().__init__(parameters, {"lr": 0.0, **settings})
        self.adamw_step = adamw_step

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient; what is remembered is named as PyTorch's."""
        for group in self.param_groups:
            named = {name: group[name] for name in ("betas", "eps", "weight_decay")}
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
                state["step"] += 1
                new, state["exp_avg"], state["exp_avg_sq"] = self.adamw_step(
                    parameter.detach(),
                    parameter.grad,
                    state["exp_avg"],
                    state["exp_avg_sq"],
                    int(state["step"]),
                    group["lr"],
                    **named,
                )
                parameter.copy_(new)


def optimizer(model: nn.Module, fused: bool, **settings: Any) -> torch.optim.Optimizer:
    """AdamW for a model's parameters: PyTorch's, or the student's if in use.

    settings  betas, eps and weight_decay; the learning rate is set before each step
    """
    adamw_step = collected.own("adamw_step")
    if adamw_step is not None:
        return StudentsAdamW(model.parameters(), adamw_step, **settings)
    return torch.optim.AdamW(model.parameters(), fused=fused, **settings)


def clip_before(made: torch.optim.Optimizer, max_norm: float) -> float:
    """Let the student's clip_gradients, if in use, shorten the gradients before each step.

    Returns the norm to which the training step itself is still to shorten them.
    """
    clip_gradients = collected.own("clip_gradients")
    if clip_gradients is None:
        return max_norm

    def clip(*_: object) -> None:
        parameters = [p for group in made.param_groups for p in group["params"]]
        moving = [p for p in parameters if p.grad is not None]
        for parameter, gradient in zip(
            moving, clip_gradients([p.grad for p in moving], max_norm), strict=True
        ):
            parameter.grad = gradient

    made.register_step_pre_hook(clip)
    return float("inf")
