"""Steps of training as the demonstrations take them: fewer while a notebook is graded."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

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


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one core: as fast for small matrices, and sums in the same order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Switch dropout and gradients off; afterwards every module is in the mode that it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
