"""Draw what several seeds gave: every point of it, or the band between the least and the most."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from attention.provided import plots

Row = Mapping[str, Any]


def where(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Return the recorded rows whose settings are these; a setting that a row lacks is None."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def at_digits(rows: Sequence[Row], digits: int) -> list[float]:
    """Return the accuracy at this number of digits of every row."""
    return [row["accuracy"][row["digits"].index(digits)] for row in rows]


def dots(
    named: Mapping[str, Sequence[float]], ax: Axes | None = None, title: str = "", xlabel: str = ""
) -> Axes:
    """Draw a dot for every seed, on a line of its own for every label; a stroke is the median.

    named  label → one number from 0 to 1 per seed
    """
    ax = ax or plots.panels(width=5.2, height=0.7 + 0.4 * len(named))
    for place, numbers in enumerate(named.values()):
        ax.plot(numbers, [place] * len(numbers), "o", color=plots.BLUE, alpha=0.65, markersize=7)
        ax.plot([median(numbers)] * 2, [place - 0.3, place + 0.3], color=plots.BLACK, linewidth=1.5)
    ax.set_yticks(range(len(named)), named)
    ax.set(xlim=(-0.04, 1.04), ylim=(len(named) - 0.5, -0.5), title=title, xlabel=xlabel)
    ax.set_xticks([0, 0.5, 1])
    return ax


def bands(
    named: Mapping[str, Sequence[Row]], ax: Axes | None = None, title: str = "", legend: bool = True
) -> Axes:
    """Draw accuracy against digits: the median of the seeds, and the band from least to most.

    named  label → recorded rows, one per seed, each with "digits" and "accuracy"
    """
    ax = ax or plots.panels(width=5.2, height=3.0)
    for (label, rows), marker in zip(named.items(), "osD^v", strict=False):
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
