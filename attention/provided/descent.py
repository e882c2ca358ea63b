"""Training as the lessons' demonstrations do it, and less of it while a notebook is graded."""

import os
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from attention.provided.progress import Bar


def fewer(count: int, most: int = 5) -> int:
    """Return ``count``, but ``most`` at most while nbgrader runs the notebook."""
    return min(count, most) if os.environ.get("NBGRADER_EXECUTION") else count


def descend(
    model: nn.Module,
    losses: Iterable[Tensor],
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    bar: Bar,
    max_norm: float | None = None,
) -> list[float]:
    """Take one step of training for each of the ``losses``; returns their values.

    losses    scalars, each computed when the step before it is done
    max_norm  None, or the norm to which the gradients of ``model`` are shortened

    Afterwards the model is in evaluation mode.
    """
    values: list[float] = []
    model.train()
    for loss in losses:
        optimizer.zero_grad()
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        schedule.step()
        values.append(loss.item())
        bar.update(len(values), values[-1])
    model.eval()
    return values
