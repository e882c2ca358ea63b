"""The learning curves of a training."""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from attention.provided import demand


def learning_curves(
    rows: Sequence[dict[str, Any]], kind: str = "png", smoothed: bool = True
) -> bytes:
    """Draw loss and learning rate against the step; returns the picture's bytes.

    rows      of a run folder's metrics: dicts with step, loss, val_loss and learning_rate
    kind      "png" or "svg"
    smoothed  whether the labels in training are
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    steps = [int(row["step"]) for row in rows]
    losses = [float(row["loss"]) for row in rows]
    evaluated = [(int(row["step"]), float(row["val_loss"])) for row in rows if row["val_loss"]]
    label = "training, smoothed labels" if smoothed else "training"
    upper.plot(steps, losses, color="C0", alpha=0.25, linewidth=0.8)
    upper.plot(steps, running_mean(losses, 50), color="C0", label=label)
    if evaluated:
        upper.plot(*zip(*evaluated, strict=True), ".-", color="C1", label="validation")
    upper.set(ylabel="loss per token (nats)")
    upper.legend(frameon=False)
    lower.plot(steps, [float(row["learning_rate"]) for row in rows], color="C2")
    lower.set(xlabel="step", ylabel="learning rate", ylim=(0, None))
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=120)
    return picture.getvalue()


def running_mean(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of each value with those before it, ``width`` in all, fewer at the start.

    Raises ValueError for a width below 1.

    >>> running_mean([1.0, 3.0, 5.0], width=2)
    [1.0, 2.0, 4.0]
    """
    demand.counts(width=width)
    means = []
    for place in range(1, len(values) + 1):
        window = values[max(0, place - width) : place]
        means.append(sum(window) / len(window))
    return means
