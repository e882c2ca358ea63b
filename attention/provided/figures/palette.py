"""The colours of the figures, and a shape for each, for readers who do not see the colours."""

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

# Okabe and Ito's palette: distinguishable with every common kind of colour blindness.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GREY, BLACK = "#CC79A7", "#56B4E9", "#8A8A8A", "#222222"

# Dashes would belong to the thresholds, circles to single points; and a noisy line in dashes is
# none. So lines stay solid, and every colour but the first has markers of a shape of its own.
SHAPES = {VERMILION: "s", GREEN: "^", ORANGE: "D", PURPLE: "v", SKY: "P", BLACK: "*", GREY: "X"}
FEW = 12  # so many points, or fewer, are all marked; of more, some places along the line are
PLAIN = ("None", ".", "o")  # markers that say nothing about which line it is


def legend(ax: Axes, **options: Any) -> Legend:
    """Draw the legend of ``ax``, after `tell_apart`; ``options`` are those of `Axes.legend`."""
    tell_apart(ax)
    return ax.legend(**options)


def tell_apart(ax: Axes) -> None:
    """Mark the labelled lines of ``ax`` so that they differ in more than colour.

    Solid lines of the same colours in the other panels get the same markers. A line that is alone,
    dashed, or marked already by a shape of its own stays as it is.
    """
    named = {_colour(line) for line in _solid(ax) if not str(line.get_label()).startswith("_")}
    if len(named) > 1:
        for panel in ax.figure.axes:
            for number, line in enumerate(_solid(panel)):
                if _colour(line) in named & SHAPES.keys():
                    _mark(line, number)


def _solid(ax: Axes) -> list[Line2D]:
    return [line for line in ax.lines if line.get_linestyle() == "-" and line.get_marker() in PLAIN]


def _colour(line: Line2D) -> str:
    return to_hex(line.get_color()).upper()


def _mark(line: Line2D, number: int) -> None:
    """Mark a line; ``number`` shifts the marks of a long one, lest those of two lines coincide.

    Hollow marks stand out from a noisy line, and are not taken for measured points.
    """
    if line.get_marker() == "None":
        line.set(markersize=7, markerfacecolor="white", markeredgewidth=1.4)
        points = numpy.size(line.get_xdata())
        if points > FEW:  # by number: a share of the length would crowd a noisy line
            step = points // 8
            line.set_markevery((step * (1 + number % 5) // 6, step))
    else:
        line.set(markersize=max(5, line.get_markersize()), markeredgecolor="white")
    line.set_marker(SHAPES[_colour(line)])
