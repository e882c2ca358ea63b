"""One step of `python -m attention.train`, alone or with other processes, and its learning rate."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from attention.provided.data.tokens import PAD
from attention.train.pieces import adapters, collected
from attention.train.runs.settings import Settings
from attention.train.speed.acceleration import FastLoss
from attention.training import TrainStep
from attention.transformer import Transformer

Batch = tuple[Tensor, Tensor]  # what is read (B, T_k), and what is predicted (B, T_q): ids


def learning_rate(step: int, settings: Settings) -> float:
    """The learning rate of a step, counted from 1: it rises in a line, then falls in a line."""
    peak, warmup, steps = settings.learning_rate, settings.warmup, settings.steps
    if step <= warmup:
        return peak * step / warmup
    return peak * (steps + 1 - step) / (steps + 1 - warmup)


def rank() -> int:
    """The number of this process among those of torchrun; 0 if it is the only one."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def world_size() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def fast_loss(model: Transformer, smoothing: float, dtype: torch.dtype | None) -> nn.Module:
    """The loss of translations: fast, or, where a learner's pieces are in use, made of them."""
    kind = adapters.PlainLoss if collected.placed() else FastLoss
    return kind(model, smoothing, dtype)


class Step(TrainStep):
    """Lesson 11's step, where each process of several learns from its share of every batch.

    loss  None for that of translations, or a module from a batch to its mean loss per token
    """

    def __init__(
        self,
        model: Any,
        settings: Settings,
        device: torch.device,
        dtype: torch.dtype | None,
        loss: nn.Module | None = None,
    ):
        optimizer = adapters.optimizer(
            model,
            fused=device.type != "mps",
            betas=(0.9, settings.beta2),
            eps=1e-9,
            weight_decay=settings.weight_decay,
        )
        max_norm = adapters.clip_before(optimizer, settings.max_norm)
        super().__init__(model, optimizer, settings.smoothing, max_norm, dtype)
        self.fast_loss = fast_loss(model, settings.smoothing, dtype) if loss is None else loss
        if distributed.is_initialized():  # then backward averages the gradients of the processes
            self.fast_loss = DistributedDataParallel(self.fast_loss)

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the loss of a batch, (): of several processes, the mean is that of the batch."""
        mine, world = rank(), world_size()
        if world == 1:
            return self.fast_loss(source, target)
        # Who gets no row has to take part all the same: one row, which does not count.
        rows = slice(mine, None, world) if len(source) > mine else slice(0, 1)
        tokens = (target[rows] != PAD).sum() * (len(source) > mine)
        share = tokens / (target != PAD).sum().clamp(min=1)
        return self.fast_loss(source[rows], target[rows]) * share * world

    def forward(self, batches: Sequence[Batch]) -> Tensor:
        """Learn from the batches as one process would; returns the loss over all of them."""
        mean = super().forward(batches)
        if distributed.is_initialized():
            distributed.all_reduce(mean)
        return mean / world_size()
