"""Lesson 15: which pairs of positions two layers connect."""

import torch

LENGTH, BLOCK, STRIDE = 24, 6, 3  # of the pictures of the lesson


def reached():
    """How many pairs of a position and an earlier one, or itself, two layers connect, by kinds.

    What a layer does not show to a position still comes through: residuals lead to itself.
    """
    t = torch.arange(LENGTH)
    earlier, own = t <= t[:, None], torch.eye(LENGTH, dtype=torch.bool)
    layers = {
        "local": earlier & (t[:, None] // BLOCK == t // BLOCK),
        "compressed": t // STRIDE * STRIDE + STRIDE - 1 <= t[:, None],  # its stretch has ended
    }
    layers = {name: (mask | own).double() for name, mask in layers.items()}
    pairs = {
        f"{one}, then {other}": int((layers[other] @ layers[one] > 0).sum())
        for one in layers
        for other in layers
    }
    return pairs | {"all pairs": int(earlier.sum())}
