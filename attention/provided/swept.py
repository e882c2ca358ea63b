"""Figures of experiments that were repeated with several seeds: every point is drawn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from attention.provided import plots

Row = Mapping[str, Any]  # settings and results of one training
MARKERS = "osD^v"


def dots(
    named: Mapping[str, Sequence[float]],
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "",
    log: bool = False,
) -> Axes:
    """Draw one row of dots for each entry of ``named`` (label → a number for each seed)."""
    ax = ax or plots.panels(width=5.6, height=0.8 + 0.34 * len(named))
    for place, values in enumerate(named.values()):
        ax.axhline(place, color=plots.GREY, linewidth=0.4, alpha=0.6)
        ax.plot(values, [place] * len(values), "o", color=plots.BLUE, markersize=6, alpha=0.7)
    ax.set_yticks(range(len(named)), named)
    ax.set(ylim=(len(named) - 0.5, -0.5), title=title, xlabel=xlabel)
    ax.set_xscale("log" if log else "linear")
    return ax


def sweep(
    rows: Iterable[Row],
    x: str,
    y: str,
    ax: Axes,
    label: str = "",
    most: float = 4.0,
    number: int = 0,
) -> Axes:
    """Draw ``y`` against ``x`` on a logarithmic axis: each seed a point, a line through the means.

    most    numbers above it are drawn there
    number  of this line in the figure: its colour and marker
    """
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(row[x], []).append(min(row[y], most))
    places = sorted(found)
    colour = (plots.BLUE, plots.VERMILION, plots.GREEN)[number]
    for place in places:
        values = found[place]
        ax.plot([place] * len(values), values, MARKERS[number], color=colour, alpha=0.5, ms=5)
    means = [sum(found[place]) / len(found[place]) for place in places]
    ax.plot(places, means, color=colour, label=label)
    ax.set(xscale="log")
    drawn: list[Any] = [line.get_xdata() for line in ax.lines]  # those of earlier calls, too
    shown = sorted({float(place) for xs in drawn for place in xs})
    ax.set_xticks(shown, [f"{place:g}" for place in shown], fontsize=8)
    ax.minorticks_off()
    return ax


def curves(
    named: Mapping[str, Sequence[Sequence[float]]], x: Sequence[float], ax: Axes, title: str = ""
) -> Axes:
    """Draw for each label the mean over its seeds, in a band from the least to the largest."""
    for label, runs in named.items():
        columns = list(zip(*runs, strict=True))
        (line,) = ax.plot(x, [sum(column) / len(column) for column in columns], label=label)
        least, most = [min(column) for column in columns], [max(column) for column in columns]
        ax.fill_between(x, least, most, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set(title=title)
    return ax
