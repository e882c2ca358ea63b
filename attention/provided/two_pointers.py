"""The task of lesson 07: each item asks for the contents of two others, and one is too few."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided.descent import take_steps

ITEMS, CONTENT = 8, 4
D_MODEL = 3 * ITEMS + CONTENT  # 28: three names, one-hot, and the content


def two_pointers(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Make rows of items, each with a name, the names of two items, and a content of 4 numbers.

    returns  x (batch, 8, 28), y (batch, 8, 8): the contents of the first and of the second item
    """
    names = torch.rand(batch, ITEMS, generator=generator).argsort(dim=1)
    first, second = torch.randint(ITEMS, (2, batch, ITEMS), generator=generator)
    content = torch.randn(batch, ITEMS, CONTENT, generator=generator)
    place = names.argsort(dim=1)  # where each name stands
    x = torch.cat([*(F.one_hot(n, ITEMS) for n in (names, first, second)), content], dim=-1)
    found = [
        content.gather(1, place.gather(1, n)[..., None].expand(-1, -1, CONTENT))
        for n in (first, second)
    ]
    return x, torch.cat(found, dim=-1)


def train(layer: nn.Module, read_out: nn.Module, seed: int, steps: int = 240) -> list[float]:
    """Train a layer of self-attention and a linear read-out on fresh items; returns the losses.

    The loss is the mean squared error of the reports; always saying 0 has a loss of 1.
    """
    generator = torch.Generator().manual_seed(seed + 1)
    parameters = [*layer.parameters(), *read_out.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.0)

    def loss() -> Tensor:
        x, y = two_pointers(32, generator)
        error: Tensor = read_out(layer(x, x, x)) - y
        return error.square().mean()

    return list(take_steps((loss() for _ in range(steps)), optimizer))


def errors(layer: nn.Module, read_out: nn.Module, gates: Tensor | None = None) -> list[float]:
    """The mean squared error of the first and of the second report, on 200 rows of items.

    gates  None, or a gate per head, (H,)
    """
    x, y = two_pointers(200, torch.Generator().manual_seed(4))
    with torch.no_grad():
        output = layer(x, x, x, head_mask=gates)
        squares = (read_out(output) - y).square().unflatten(-1, (2, CONTENT))
    found: list[float] = squares.mean(dim=(0, 1, 3)).tolist()
    return found
