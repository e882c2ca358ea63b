"""Heat maps of faint weights, whose colours would be washed out on the scale from 0 to 1."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes

from attention.provided.figures import plots


def heatmap(
    weights: plots.Numbers, ax: Axes, title: str = "", queries: Sequence[Any] | None = None
) -> Axes:
    """Draw attention weights as ``plots.heatmap`` does, but on a scale up to the largest of them.

    weights  (T_q, T_k)
    queries  labels of the rows; by default their positions are counted

    The colour bar says how far the scale goes: two such panels do not compare by colour.
    """
    plots.heatmap(weights, ax, title, queries, colorbar=False)
    (image,) = ax.images
    most = float(torch.as_tensor(weights).detach().max())
    image.set_clim(0, most)
    bar = ax.figure.colorbar(image, ax=ax, ticks=[0, most])
    bar.ax.set_yticklabels(["0", f"{most:.2f}"])
    return ax
