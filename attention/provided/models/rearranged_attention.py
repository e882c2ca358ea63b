"""A translator whose attention weights meet other tokens than those they were made for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attention.provided.data.tokens import PAD


@contextmanager
def rearranged(model: nn.Module, source: Tensor, how: str, seed: int = 0) -> Iterator[None]:
    """Let every cross-attention give its weights to other tokens, or the same to all.

    how  "shuffled": each sentence's values change places, so each weight meets another token's,
         never its own;
         "uniform": every value becomes the mean of the real ones, as if all weights were equal
    """
    draw, real = torch.Generator().manual_seed(seed), source != PAD
    order = torch.stack([_shuffled(row, draw) for row in real])  # (B, T_k)

    def hook(_: object, args: Any, kwargs: Any) -> Any:
        query, key, value, *others = args
        if how == "uniform":
            mean = (value * real.unsqueeze(2)).sum(1, keepdim=True) / real.sum(1)[:, None, None]
            value = mean.expand_as(value)
        else:
            value = value.gather(1, order.unsqueeze(2).expand_as(value))
        return (query, key, value, *others), kwargs

    hooks = [
        part.register_forward_pre_hook(hook, with_kwargs=True)
        for name, part in model.named_modules()
        if name.endswith("cross_attention")
    ]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()


def _shuffled(real: Tensor, draw: torch.Generator) -> Tensor:
    """A random order of the real places in which none stays where it was; the others stay."""
    order, places = torch.arange(len(real)), real.nonzero().squeeze(1)
    ring = places[torch.randperm(len(places), generator=draw)]  # each takes the place of the next
    order[ring] = ring.roll(1)
    return order
