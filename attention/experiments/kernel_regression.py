"""Lesson 01: soft lookups, fits and bandwidths, drawn with the learner's own functions.

The data are a shelf of four books, which the notebook writes down, and the level of a river.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from torch import Tensor

from attention.provided.figures import plots

Predict = Callable[..., Tensor]  # (x, x_train, y_train, bandwidth) -> predictions (T_q,)
Loss = Callable[..., Tensor]  # (x_train, y_train, bandwidth) -> a scalar

HOURS = torch.linspace(0, 6, 601)  # where fits are drawn
SEED = 3  # of the river that most figures show
BANDWIDTHS = torch.logspace(-2, 0.5, 80)  # hours


class Shelf(NamedTuple):
    """Books to look up: keys (T_k, d_k), the metre at which each stands, and what is searched."""

    books: Sequence[Sequence[float]]
    metres: Sequence[float]
    search: Sequence[float]


def shelf(
    soft_lookup: Callable[..., Tensor], at: Shelf, temperature: float, ax: Axes | None = None
) -> float:
    """Draw the weights of the four books at a temperature; returns the metre that is answered.

    One-hot values show the weights: book j answers with a 1 at index j.
    """
    keys, query = torch.tensor(at.books), torch.tensor(at.search)
    weights = soft_lookup(query, keys, torch.eye(len(keys)), temperature)
    answer = soft_lookup(query, keys, torch.tensor(at.metres)[:, None], temperature).item()
    ax = plots.bars(weights, ["Poems", "Gramm.", "Count.", "Matr."], ax)
    ax.set(title=f"temperature {temperature:.3g}\nanswer {answer:.2f} m")
    ax.tick_params(axis="x", labelsize=8)
    return float(answer)


def temperatures(soft_lookup: Callable[..., Tensor], at: Shelf) -> float:
    """Draw `shelf` at four temperatures; returns the metre that is answered at 100."""
    axes = plots.panels(columns=4, width=2.4, height=2.5)
    kept = (0.001, 0.1, 1.0, 100.0)
    found = [shelf(soft_lookup, at, one, ax) for one, ax in zip(kept, axes, strict=True)]
    return found[-1]


def true_level(hours: Tensor) -> Tensor:
    """The level of the river, in dm, without the errors of the readings."""
    return torch.sin(hours) + 0.5 * torch.sin(3 * hours)


def river(seed: int) -> tuple[Tensor, Tensor]:
    """Return 40 moments within six hours, and readings in dm: (T_k,) each.

    None is between 3.7 h and 4.7 h. The readings have errors with a standard deviation of 0.3 dm.
    """
    generator = torch.Generator().manual_seed(seed)
    moments = (torch.arange(40) + 0.8 * torch.rand(40, generator=generator)) / 8  # 0 to 5, in order
    hours = moments + (moments > 3.7)  # with an hour left out
    return hours, true_level(hours) + 0.3 * torch.randn(40, generator=generator)


def readings(x_train: Tensor, y_train: Tensor, moment: float) -> Axes:
    """Draw the readings of the river, and the moment at which its level is asked for."""
    ax = plots.panels(width=6.5, height=2.2)
    ax.plot(x_train, y_train, "o", color=plots.BLACK, markersize=3.2, alpha=0.75)
    ax.axvline(moment, color=plots.VERMILION, linestyle="--")
    ax.text(moment + 0.07, 1.2, f"level at {moment:g} h?", color=plots.VERMILION)
    ax.set(xlabel="hours", ylabel="level (dm)")
    return ax


def fit(predict: Predict, bandwidth: float, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Draw the river's readings, its true level, and what is predicted with this bandwidth."""
    x_train, y_train = river(SEED)
    fitted = predict(HOURS, x_train, y_train, bandwidth)
    title = f"bandwidth {bandwidth:.2g} h" if bandwidth < 10 else f"bandwidth {bandwidth:g} h"
    ax = plots.fit(
        HOURS, fitted, x_train, y_train, true_level(HOURS), ax, title, "hours", legend=False
    )
    ax.lines[0].set_label("true level")
    if legend:
        ax.legend(fontsize=8)
    if ax.get_ylabel():
        ax.set(ylabel="level (dm)")
    return ax


def fits(predict: Predict, *bandwidths: float) -> list[Axes]:
    """Draw `fit` for several bandwidths, side by side."""
    axes = list(plots.panels(1, len(bandwidths), width=4.4, height=2.7))
    for ax, bandwidth in zip(axes, bandwidths, strict=True):
        fit(predict, bandwidth, ax, legend=ax is axes[0])
    return axes


def kernels(kernel_regression: Callable[..., tuple[Tensor, Tensor]]) -> Any:
    """Draw the fits of four kernels with two bandwidths, on the same readings.

    Prints for three other rivers the mean squared error from the true level: with each kernel's
    best bandwidth, and with three times that one.
    """
    axes, names = plots.panels(2, 4, width=2.5, height=2.0), "boxcar epanechnikov gaussian constant"
    for row, bandwidth in zip(axes, (0.15, 0.6), strict=True):
        for ax, kernel in zip(row, names.split(), strict=True):
            fit(_with(kernel_regression, kernel), bandwidth, ax, legend=False)
            ax.set(title=f"{kernel}, {bandwidth:g} h", ylim=(-2.2, 2.2))
    for kernel in names.split()[:-1]:
        found = [_at_best(_with(kernel_regression, kernel), *river(seed)) for seed in (0, 1, 2)]
        best, wide = ([f"{error:.3f}" for error in errors] for errors in zip(*found, strict=True))
        print(f"{kernel:<13} error at its best bandwidth: {' '.join(best)}", end="   ")
        print(f"at three times as much: {' '.join(wide)}")
    return axes


def _at_best(predict: Predict, x_train: Tensor, y_train: Tensor) -> tuple[float, float]:
    """Error from the true level at the best of BANDWIDTHS, and at three times this bandwidth."""
    found = [_from_truth(predict, x_train, y_train, h).item() for h in BANDWIDTHS]
    best = min(range(len(found)), key=found.__getitem__)
    return found[best], _from_truth(predict, x_train, y_train, 3 * BANDWIDTHS[best]).item()


def _with(kernel_regression: Callable[..., tuple[Tensor, Tensor]], kernel: str) -> Predict:
    return lambda x, x_train, y_train, h: kernel_regression(x, x_train, y_train, kernel, h)[0]


def kernel_weights(kernel_regression: Callable[..., tuple[Tensor, Tensor]]) -> Any:
    """Draw the weights of 12 queries on the 40 readings, for two kernels and two bandwidths."""
    queries = torch.linspace(0.25, 5.75, 12)  # (T_q,)
    axes = plots.panels(1, 3, width=3.4, height=3.0)
    shown = (("gaussian", 0.15), ("boxcar", 0.15), ("gaussian", 0.6))
    for ax, (kernel, bandwidth) in zip(axes, shown, strict=True):
        _, weights = kernel_regression(queries, *river(SEED), kernel, bandwidth)
        title = f"{kernel}, bandwidth {bandwidth:g} h"
        plots.heatmap(weights, ax, title, [f"{hour:g} h" for hour in queries], faint=True)
        ax.set(xlabel="examples in order of time")
    return axes


def contexts(soft_lookup: Callable[..., Tensor]) -> Any:
    """Draw the results of 400 random queries in the hull of 7 values, at two temperatures."""
    generator = torch.Generator().manual_seed(3)
    keys = torch.randn(7, 2, generator=generator)
    values = torch.randn(7, 2, generator=generator)
    queries = 2 * torch.randn(400, 2, generator=generator)
    axes = plots.panels(1, 2, width=4.4, height=3.6)
    for ax, temperature in zip(axes, (0.2, 4.0), strict=True):
        found = torch.stack([soft_lookup(query, keys, values, temperature) for query in queries])
        plots.hull(values, found, ax, f"temperature {temperature:g}", legend=ax is axes[0])
        ax.set(xlabel="feature 0")
    axes[0].set(ylabel="feature 1")
    return axes


def valley(path: Sequence[tuple[float, float]], leave_one_out_loss: Loss) -> Axes:
    """Draw the loss at every bandwidth, and the steps (bandwidth, loss) of a training on river 3.

    Prints some of the steps.
    """
    examples = river(SEED)
    for step in range(0, len(path), 30):
        print(f"step {step:3}   bandwidth {path[step][0]:.3f} h   loss {path[step][1]:.3f}")
    losses = torch.stack([leave_one_out_loss(*examples, bandwidth) for bandwidth in BANDWIDTHS])
    ax = plots.panels(width=6.5, height=3.0)
    ax.plot(BANDWIDTHS, losses, color=plots.VERMILION, label="leave-one-out loss")
    ax.plot(*zip(*path, strict=True), ".k", label="steps of training")
    ax.plot(*path[-1], "ok", label="training ended")
    ax.set(xlabel="bandwidth (h)", ylabel="leave-one-out loss", xscale="log")
    plots.legend(ax, loc="upper left")
    return ax


def three_rivers(
    predict: Predict, leave_one_out_loss: Loss, learn_bandwidth: Callable[..., Any]
) -> float:
    """Draw three errors against the bandwidth, for three rivers with the same true level.

    On each river training starts from 1.5, 0.3 and 0.01 h; dots show where it ends, stars the best
    bandwidth. Prints also in how many of 20 rivers training from 0.01 h stays below 0.05 h.
    returns  the largest factor, of three, by which the squared distance from the true level at the
             learned bandwidth (from 1.5 h) exceeds the smallest of all bandwidths
    """
    axes, factors = plots.panels(1, 3, width=3.4, height=2.8), []
    for seed, ax in enumerate(axes):
        curves = errors(predict, leave_one_out_loss, *river(seed))
        plots.lines(BANDWIDTHS, curves, ax, f"river {seed}", xlabel="bandwidth (h)", log=True)
        ax.get_legend().remove()
        ends = [learn_bandwidth(start, *river(seed))[-1] for start in (1.5, 0.3, 0.01)]
        ax.plot(*zip(*ends, strict=True), "ok", label="training ended")
        truth = curves["from the true level"]
        best = BANDWIDTHS[truth.argmin()], truth.min()
        ax.plot(*best, "*k", markersize=11, label="best for true level")
        factors.append(_compare(f"river {seed}", predict, river(seed), curves, ends))
    axes[0].set(ylabel="mean squared error")
    plots.legend(axes[0], fontsize=8, loc="upper left")
    narrow = [learn_bandwidth(0.01, *river(other))[-1] for other in range(20)]
    stuck = sum(bandwidth < 0.05 for bandwidth, _ in narrow)
    print(f"from 0.01 h training stays below 0.05 h in {stuck} of 20 rivers")
    return max(factors)


def errors(
    predict: Predict, leave_one_out_loss: Loss, x_train: Tensor, y_train: Tensor
) -> dict[str, Tensor]:
    """Three mean squared errors at each of BANDWIDTHS, by name."""
    found: dict[str, list[Tensor]] = {
        "on the examples": [],
        "leave-one-out": [],
        "from the true level": [],
    }
    for bandwidth in BANDWIDTHS:
        seen = predict(x_train, x_train, y_train, bandwidth) - y_train
        found["on the examples"].append(seen.square().mean())
        found["leave-one-out"].append(leave_one_out_loss(x_train, y_train, bandwidth))
        found["from the true level"].append(_from_truth(predict, x_train, y_train, bandwidth))
    return {name: torch.stack(curve) for name, curve in found.items()}


def _from_truth(predict: Predict, x_train: Tensor, y_train: Tensor, bandwidth: Any) -> Tensor:
    return (predict(HOURS, x_train, y_train, bandwidth) - true_level(HOURS)).square().mean()


def _compare(name: str, predict: Predict, examples: Any, curves: Any, ends: Any) -> float:
    """Print what training found, and what is closest to the truth; returns the factor."""
    curve, (x_train, y_train) = curves["from the true level"], examples
    factor = (_from_truth(predict, x_train, y_train, ends[0][0]) / curve.min()).item()
    learned = ", ".join(f"{bandwidth:.3f}" for bandwidth, _ in ends)
    best = BANDWIDTHS[curve.argmin()]
    print(f"{name}: learned from 1.5, 0.3, 0.01 h: {learned} h; best {best:.3f} h", end="; ")
    print(f"factor {factor:.2f}")
    return factor
