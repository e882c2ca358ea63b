"""Draw what several seeds gave: every point of it, or the band between the least and the most."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from attention.provided.figures import plots

Row = Mapping[str, Any]  # settings and results of one training
MARKERS = "os^Dv"


def where(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Return the recorded rows whose settings are these; a setting that a row lacks is None."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def at_digits(rows: Sequence[Row], digits: int) -> list[float]:
    """Return the accuracy at this number of digits of every row."""
    return [row["accuracy"][row["digits"].index(digits)] for row in rows]


def dots(
    named: Mapping[str, Sequence[float]],
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "",
    shares: bool = False,
    stroke: bool = True,
) -> Axes:
    """Draw a dot for every seed, along a line for every label; a stroke is the median.

    The dots of a label are moved apart a little, across its line, so that equal ones can be seen.

    named   label → a number for each seed
    shares  whether they are shares: then the axis goes from 0 to 1
    stroke  whether the median is drawn: it says nothing of seeds that lie in two heaps
    """
    ax = ax or plots.panels(width=5.6, height=0.8 + 0.36 * len(named))
    for place, numbers in enumerate(named.values()):
        apart = [place + 0.3 * (n + 0.5) / len(numbers) - 0.15 for n in range(len(numbers))]
        ax.plot(numbers, apart, "o", color=plots.BLUE, alpha=0.65, markersize=7)
        if stroke:
            middle, ends = [median(numbers)] * 2, [place - 0.3, place + 0.3]
            ax.plot(middle, ends, color=plots.BLACK, linewidth=1.5)
    ax.set_yticks(range(len(named)), named)
    ax.grid(axis="y", color=plots.GREY, linewidth=0.4, alpha=0.6)
    ax.set(ylim=(len(named) - 0.5, -0.5), title=title, xlabel=xlabel)
    if shares:
        ax.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1])
    return ax


def dots_at_digits(
    runs: Mapping[str, Sequence[Row]], digits: int, ax: Axes
) -> dict[str, list[float]]:
    """Draw and return, by label, the share of numbers of these digits that each run has right."""
    shares = {label: at_digits(found, digits) for label, found in runs.items()}
    dots(shares, ax, f"{digits} digits", "translated without error", shares=True, stroke=False)
    return shares


def bands(
    named: Mapping[str, Sequence[Row]], ax: Axes | None = None, title: str = "", legend: bool = True
) -> Axes:
    """Draw accuracy against digits: the median of the seeds, and the band from least to most.

    named  label → recorded rows, one per seed, each with "digits" and "accuracy"
    """
    ax = ax or plots.panels(width=5.2, height=3.0)
    for (label, rows), marker in zip(named.items(), MARKERS, strict=False):
        digits = rows[0]["digits"]
        columns = list(zip(*(row["accuracy"] for row in rows), strict=True))
        (line,) = ax.plot(digits, [median(column) for column in columns], marker + "-", label=label)
        least, most = ([one(column) for column in columns] for one in (min, max))
        ax.fill_between(digits, least, most, color=line.get_color(), alpha=0.18, linewidth=0)
    ax.set(ylim=(-0.04, 1.06), yticks=[0, 0.5, 1], title=title, xlabel="digits of the number")
    ax.set_ylabel("translated without error")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if legend:
        ax.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
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
    crowded = any(after < 1.4 * before for before, after in itertools.pairwise(shown))
    labels = [f"{place:g}" for place in shown]
    ax.set_xticks(shown, labels, fontsize=8, rotation=60 if crowded else 0)
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


def span(numbers: Iterable[float]) -> str:
    """The least and the largest of some numbers."""
    numbers = list(numbers)
    return f"{min(numbers):.2f} to {max(numbers):.2f}"
