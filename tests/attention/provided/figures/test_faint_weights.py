"""Heat maps of faint weights."""

import torch

from attention.provided.figures import faint_weights, plots


def test_the_scale_ends_at_the_largest_weight():
    ax = faint_weights.heatmap(torch.tensor([[0.02, 0.08], [0.05, 0.05]]), plots.panels(), "faint")
    (image,) = ax.images
    least, most = image.get_clim()
    assert (least, round(most, 6)) == (0, 0.08)
    assert [text.get_text() for text in image.colorbar.ax.get_yticklabels()] == ["0", "0.08"]
