"""Gradient descent, the plainest optimiser."""

from collections.abc import Iterable

import torch
from torch import Tensor


class Descent:
    """What `torch.optim.SGD` does, with momentum or without, and nothing else.

    parameters  those to change, in place
    lr          how far a step goes: the learning rate
    momentum    share of the last step that is added to the next

    PyTorch's own imports its compiler when it is first used, which takes more than a second.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.moves: dict[int, Tensor] = {}  # the last step of each parameter, by its place

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Go down the gradients."""
        for place, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            move = parameter.grad
            if self.momentum:
                before = self.moves.get(place)
                move = move.clone() if before is None else self.momentum * before + move
                self.moves[place] = move
            parameter -= self.lr * move
