"""What a classifier loses when a part of its input is blank."""

from collections.abc import Callable

import torch
from torch import Tensor


@torch.no_grad()
def occlusion_map(
    model: Callable[[Tensor], Tensor], images: Tensor, labels: Tensor, copies: Tensor
) -> Tensor:
    """Measure how much the probability of the right class drops in each copy of an image.

    model    from images (B, C, height, width) to scores (B, n_classes), in evaluation
    labels   (B,)  int64
    copies   (B, N, C, height, width)  of each image, with a part blank
    returns  (B, N)  the drops; negative where the model is surer of the copy
    """
    B, N = copies.shape[:2]
    whole = model(images).softmax(dim=-1)  # (B, n_classes)
    without = model(copies.flatten(0, 1)).softmax(dim=-1).unflatten(0, (B, N))
    right = labels[:, None, None].expand(B, N, 1)
    return whole.gather(1, labels[:, None]) - without.gather(2, right).squeeze(-1)
