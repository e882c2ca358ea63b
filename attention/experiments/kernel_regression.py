"""Lesson 01: soft lookups, fits and bandwidths, drawn with the learner's own functions.

The data are a shelf of four books, which the notebook writes down, and the level of a river.
"""

import math
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


def extremes(predict: Predict) -> list[Axes]:
    """Draw `fit` for a tiny bandwidth and for a huge one, side by side."""
    return _beside((predict, 0.001), (predict, 100.0))


def before_and_after(*models: Any) -> list[Axes]:
    """Draw `fit` for models that hold their bandwidth themselves, side by side."""
    return _beside(*((_held(model), model.log_bandwidth.exp().item()) for model in models))


def _held(model: Callable[..., Tensor]) -> Predict:
    return lambda x, x_train, y_train, _: model(x, x_train, y_train)


def _beside(*shown: tuple[Predict, float]) -> list[Axes]:
    axes = list(plots.panels(1, len(shown), width=4.4, height=2.7))
    for ax, (predict, bandwidth) in zip(axes, shown, strict=True):
        fit(predict, bandwidth, ax, legend=ax is axes[0])
    return axes


def in_the_gap(learn_bandwidth: Callable[..., Any]) -> None:
    """Print the true level twice in the gap, and what models trained on four rivers say there."""
    moments = torch.tensor([4.25, 3.9])
    print(f"true level at 4.25 h and 3.9 h: {_listed(true_level(moments), 2)}")
    for seed in (SEED, 0, 1, 2):
        model, _ = learn_bandwidth(1.5, *river(seed))
        predicted = model(moments, *river(seed)).tolist()
        print(f"predicted for river {seed}:       {_listed(predicted, 2)}")


def _listed(numbers: Any, digits: int = 3) -> str:
    return " ".join(f"{float(number):.{digits}f}" for number in numbers)


def kernels(kernel_regression: Callable[..., tuple[Tensor, Tensor]]) -> str:
    """Draw the fits of three kernels, with 0.15 h and with each one's best bandwidth.

    The constant kernel's prediction is a dotted line. Prints for three other rivers each kernel's
    best bandwidth, and the mean squared error from the true level with it, with three times as
    much and with a third.
    returns  "bandwidth" if in these rivers a Gaussian three times as wide as its best errs more
             than the boxcar at its best, else "boxcar"
    """
    axes, names = plots.panels(2, 3, width=3.3, height=2.2), ("boxcar", "epanechnikov", "gaussian")
    constant = _with(kernel_regression, "constant")
    head = ("rivers 0, 1, 2", "best bandwidth (h)", "error there", "3 times as wide")
    print("".join(f"{title:<22}" for title in head) + "a third as wide")
    found: dict[str, list[list[float]]] = {}
    for column, kernel in zip(axes.T, names, strict=True):
        predict = _with(kernel_regression, kernel)
        found[kernel] = [_around_best(predict, *river(seed)) for seed in (0, 1, 2)]
        print(f"{kernel:<22}" + "     ".join(map(_listed, zip(*found[kernel], strict=True))))
        best = _around_best(predict, *river(SEED))[0]
        for ax, h, title in zip(column, (0.15, best), ("", "best: "), strict=True):
            fit(predict, h, ax, legend=False)
            mean = constant(HOURS, *river(SEED), h)
            ax.plot(HOURS, mean, ":", color=plots.BLACK, linewidth=1.2, label="constant kernel")
            ax.set(title=f"{kernel}, {title}{h:.2f} h", ylim=(-1.6, 2.3))
    flat = [_from_truth(constant, *river(seed), 1.0) for seed in (0, 1, 2)]
    print(f"{'constant':<22}{'any':<22}{_listed(flat)}")
    axes[0, 0].legend(fontsize=7, loc="upper right")
    both = zip(found["gaussian"], found["boxcar"], strict=True)
    return "bandwidth" if all(wide[2] > box[1] for wide, box in both) else "boxcar"


def _around_best(predict: Predict, x_train: Tensor, y_train: Tensor) -> list[float]:
    """The best of BANDWIDTHS; errors from the true level with it, three times and a third of it."""
    found = [_from_truth(predict, x_train, y_train, h).item() for h in BANDWIDTHS]
    best = BANDWIDTHS[min(range(len(found)), key=found.__getitem__)].item()
    return [best, *(_from_truth(predict, x_train, y_train, k * best).item() for k in (1, 3, 1 / 3))]


def _with(kernel_regression: Callable[..., tuple[Tensor, Tensor]], kernel: str) -> Predict:
    return lambda x, x_train, y_train, h: kernel_regression(x, x_train, y_train, kernel, h)[0]


def kernel_weights(kernel_regression: Callable[..., tuple[Tensor, Tensor]]) -> Any:
    """Draw the weights of 12 queries on the 40 readings, for two kernels with 0.15 h."""
    queries, (hours, level) = torch.linspace(0.25, 5.75, 12), river(SEED)
    axes = plots.panels(1, 2, width=4.5, height=3.0)
    for ax, kernel in zip(axes, ("gaussian", "boxcar"), strict=True):
        _, weights = kernel_regression(queries, hours, level, kernel, 0.15)
        by_time = torch.full((len(queries), 48), math.nan)  # eight columns an hour
        by_time[:, (8 * hours).long()] = weights  # the gap stays white
        labels = [f"{hour:g} h" for hour in queries]
        plots.heatmap(by_time, ax, f"{kernel}, 0.15 h", labels, colorbar=ax is axes[-1])
        ax.set_xticks([8 * hour - 0.5 for hour in range(7)], range(7))
        ax.set(xlabel="keys: hours of the readings")
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
    ax.plot(*path[-1], "ok", markerfacecolor="none", markersize=11, label="training ended")
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
        x_train, y_train = river(seed)
        curves = errors(predict, leave_one_out_loss, x_train, y_train)
        ends = [learn_bandwidth(start, x_train, y_train)[1][-1] for start in (1.5, 0.3, 0.01)]
        bandwidth, _ = ends[0]
        learned = (predict(HOURS, x_train, y_train, bandwidth) - true_level(HOURS)).square().mean()
        factor = learned / curves["from the true level"].min()
        factors.append(factor.item())
        best = _draw_errors(ax, curves, ends, learned)
        ax.set(title=f"river {seed}, factor {factor:.2f}")
        ended = _listed([bandwidth for bandwidth, _ in ends])
        print(
            f"river {seed}: learned from 1.5, 0.3, 0.01 h: {ended} h; best {best:.3f} h", end="; "
        )
        print(f"factor {factor:.2f}")
    axes[0].set(ylabel="mean squared error")
    axes[-1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    narrow = [learn_bandwidth(0.01, *river(other))[1][-1] for other in range(20)]
    stuck = sum(bandwidth < 0.05 for bandwidth, _ in narrow)
    print(f"from 0.01 h training stays below 0.05 h in {stuck} of 20 rivers")
    return max(factors)


def _draw_errors(ax: Axes, curves: dict[str, Tensor], ends: Any, learned: Tensor) -> float:
    """Draw the curves and their points on a scale of factors; returns the best bandwidth."""
    for (name, curve), style in zip(curves.items(), (":", "-", "--"), strict=True):
        ax.plot(BANDWIDTHS, curve, style, label=name)
    truth = curves["from the true level"]
    best = BANDWIDTHS[truth.argmin()].item()
    ax.plot(*zip(*ends, strict=True), "ok", label="training ended")
    ax.plot(ends[0][0], learned, "ok", markerfacecolor="white", label="true error there")
    ax.plot(best, truth.min(), "*k", markersize=9, label="smallest true error")
    ax.set(xlabel="bandwidth (h)", xscale="log", yscale="log", ylim=(0.01, 0.7))
    ax.set_yticks([0.01, 0.03, 0.1, 0.3], ["0.01", "0.03", "0.1", "0.3"])
    ax.set_yticks([], minor=True)
    return best


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
