"""What a module holds besides its parameters, buffers and parts."""

from typing import Any

import torch
from torch.utils import _pytree

OF_EVERY_MODULE = vars(torch.nn.Module()).keys()  # parameters, buffers, parts, hooks, settings


def loose_tensors(module: Any) -> list[torch.Tensor]:
    """The tensors that a module keeps as plain attributes, which ``module.to`` does not move."""
    if not isinstance(module, torch.nn.Module):
        return []
    try:
        kept = [
            value
            for part in module.modules()
            for name, value in vars(part).items()
            if name not in OF_EVERY_MODULE
        ]
    except Exception:  # its constructor never called that of Module
        return []
    return [x for x in _pytree.tree_leaves(kept) if isinstance(x, torch.Tensor)]
