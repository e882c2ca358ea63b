"""Training as the lessons' demonstrations do it, and less of it while a notebook is graded."""

import os
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from attention.provided.progress import Bar


def fewer(count: int, most: int = 5) -> int:
    """Return ``count``, but ``most`` at most while nbgrader runs the notebook."""
    return min(count, most) if os.environ.get("NBGRADER_EXECUTION") else count


def take_steps(
    losses: Iterable[Tensor], optimizer: torch.optim.Optimizer, max_norm: float | None = None
) -> Iterator[float]:
    """Take one step of training for each of the ``losses``; yields its value.

    losses    scalars, each computed when the step before it is done
    max_norm  None, or the norm to which all gradients together are shortened
    """
    for loss in losses:
        optimizer.zero_grad()
        loss.backward()
        if max_norm is not None:
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(parameters, max_norm)
        optimizer.step()
        yield loss.item()


def descend(
    model: nn.Module,
    losses: Iterable[Tensor],
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    bar: Bar,
    max_norm: float | None = None,
) -> list[float]:
    """Take the steps of `take_steps` at a scheduled rate, with a bar; returns the losses.

    Meanwhile the model is in training mode, afterwards in evaluation mode.
    """
    values: list[float] = []
    model.train()
    for value in take_steps(losses, optimizer, max_norm):
        schedule.step()
        values.append(value)
        bar.update(len(values), value)
    model.eval()
    return values
