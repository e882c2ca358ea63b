"""What a module holds besides its parameters, buffers and parts."""

from typing import Any

import torch
from torch.utils import _pytree

SIMPLE = {bool, int, float, str, type(None)}


def loose_tensors(module: Any) -> list[torch.Tensor]:
    """The tensors that a module keeps as plain attributes, which ``module.to`` does not move."""
    if not isinstance(module, torch.nn.Module):
        return []
    known = {"_parameters", "_buffers", "_modules"}
    try:
        kept = [
            value
            for part in module.modules()
            for name, value in vars(part).items()
            if name not in known
            and type(value) not in SIMPLE
            # Each part of a module has a dozen of empty dicts, for hooks.
            and not (isinstance(value, dict) and not value)
        ]
    except Exception:  # its constructor never called that of Module
        return []
    return [x for x in _pytree.tree_leaves(kept) if isinstance(x, torch.Tensor)]
