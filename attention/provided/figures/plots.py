"""The course's figures: few functions, one style. Each returns the Axes it drew on.

Attention weights are drawn with the queries down and the keys across, on a fixed colour scale
from 0 to 1, so that any two panels can be compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from attention.provided.figures.palette import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
)
from attention.provided.figures.palette import legend as legend
from attention.provided.figures.palette import tell_apart as tell_apart

Numbers = Any  # a tensor, an array or a list of numbers

STYLE: Any = {
    "figure.dpi": 110,
    **dict.fromkeys(("figure.facecolor", "savefig.facecolor"), "white"),  # also on a dark page
    "figure.constrained_layout.use": True,
    **dict.fromkeys(("font.size", "axes.titlesize"), 10),
    "axes.titlelocation": "left",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.grid"), False),
    "axes.prop_cycle": plt.cycler(color=[BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK]),
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "image.cmap": "YlGnBu",
}
plt.rcParams.update(STYLE)
OUTLINES = (1.0, 2.2, 3.6, 5.0)  # widths: the steps of a histogram have no room for dashes


def panels(
    rows: int = 1, columns: int = 1, width: float = 3.0, height: float = 2.4, share: bool = True
) -> Any:
    """Return an array of Axes, or a single Axes if 1 × 1; ``width`` and ``height`` are of one.

    With ``share`` all panels have one y scale, and the panels of a column one x scale.
    """
    size = (max(4.2, width * columns), height * rows)
    shared: dict[str, Any] = {"sharex": "col", "sharey": True} if share else {}
    _, axes = plt.subplots(rows, columns, figsize=size, **shared)
    return axes


def _array(values: Numbers) -> NDArray[Any]:
    """Numbers of any kind, also a tensor that requires a gradient, as a NumPy array."""
    array: NDArray[Any] = torch.as_tensor(values).detach().cpu().numpy()
    return array


def _label(ax: Axes, **labels: str) -> None:
    """Set titles and labels; among panels that share a scale only the outer ones show them."""
    ax.set(**labels)
    if len(ax.get_shared_y_axes().get_siblings(ax)) > 1:
        ax.label_outer()


def heatmap(
    weights: Numbers,
    ax: Axes | None = None,
    title: str = "",
    queries: Sequence[Any] | None = None,
    keys: Sequence[Any] | None = None,
    numbers: bool = False,
    colorbar: bool = True,
    faint: bool = False,
) -> Axes:
    """Draw attention weights: queries down, keys across, colours fixed from 0 to 1.

    weights        (T_q, T_k)
    queries, keys  labels of the rows and columns; by default their positions are counted
    numbers        write the weight into each cell
    faint          the scale ends at the largest weight: such panels do not compare by colour
    """
    weights = _array(weights)
    most = float(weights.max()) if faint else 1.0
    if ax is None:
        rows, columns = weights.shape
        _, ax = plt.subplots(figsize=(5.2, min(5.0, 4.2 * rows / columns, 0.9 + 0.5 * rows)))
    image = ax.imshow(weights, vmin=0, vmax=most, aspect="auto", interpolation="nearest")
    for axis, labels in ((ax.yaxis, queries), (ax.xaxis, keys)):
        if labels is None:
            axis.set_major_locator(MaxNLocator(integer=True))
        else:
            axis.set_ticks(range(len(labels)), labels)
    _label(ax, xlabel="keys", ylabel="queries", title=title)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if numbers:
        for row, column in torch.cartesian_prod(*map(torch.arange, weights.shape)).tolist():
            weight = weights[row, column]
            colour = "white" if weight > 0.55 * most else BLACK
            ax.text(column, row, f"{weight:.2f}", ha="center", va="center", color=colour)
    if colorbar:
        bar = ax.figure.colorbar(image, ax=ax, ticks=[0, most] if faint else [0, 0.5, 1])
        if faint:
            bar.ax.set_yticklabels(["0", f"{most:.2f}"])
        else:
            bar.set_label("weight")
    return ax


def mark(
    ax: Axes, rows: tuple[int, int], columns: tuple[int, int], colour: str = VERMILION
) -> Axes:
    """Draw a frame around some cells of a heat map.

    rows, columns  (first, last), both counted from 0 and both inside the frame
    """
    width, height = columns[1] - columns[0] + 1, rows[1] - rows[0] + 1
    corner = columns[0] - 0.5, rows[0] - 0.5
    ax.add_patch(plt.Rectangle(corner, width, height, fill=False, edgecolor=colour, linewidth=2))
    return ax


def fit(
    x: Numbers,
    prediction: Numbers,
    x_train: Numbers,
    y_train: Numbers,
    truth: Numbers = None,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "x",
    legend: bool = True,
) -> Axes:
    """Draw examples, the prediction at every x and, if given, the function behind the examples."""
    ax = ax or panels(width=6.5, height=3.2)
    x, x_train, y_train = _array(x), _array(x_train), _array(y_train)
    if truth is not None:
        ax.plot(x, _array(truth), color=GREY, linestyle="--", linewidth=1.2, label="truth")
    ax.plot(x_train, y_train, "o", color=BLACK, markersize=3.2, alpha=0.75, label="examples")
    ax.plot(x, _array(prediction), color=BLUE, label="prediction")
    _label(ax, title=title, xlabel=xlabel, ylabel="y")
    if legend:
        ax.legend(loc="best", fontsize=8)
    return ax


def lines(
    x: Numbers,
    named: Mapping[str, Numbers],
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    log: bool = False,
) -> Axes:
    """Draw one labelled line per entry of ``named`` (label → y) over the same x."""
    ax = ax or panels(width=6.5, height=3.0)
    for label, y in named.items():
        ax.plot(_array(x), _array(y), label=label)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel, xscale="log" if log else "linear")
    if len(named) > 1:
        legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def histograms(
    named: Mapping[str, Numbers],
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "",
    span: tuple[float, float] | None = None,
    bins: int = 100,
) -> Axes:
    """Draw how numbers are distributed: one outline per entry of ``named`` (label → numbers)."""
    ax = ax or panels(width=5.2, height=3.0)
    for number, (label, numbers) in enumerate(named.items()):
        numbers = torch.as_tensor(numbers).detach().flatten().tolist()
        style: Any = {"histtype": "step", "linewidth": OUTLINES[number % len(OUTLINES)]}
        ax.hist(numbers, bins=bins, range=span, density=True, label=label, **style)
    ax.set(title=title, xlabel=xlabel, ylabel="density")
    ax.legend(fontsize=9)
    return ax


def bars(weights: Numbers, labels: Sequence[str], ax: Axes | None = None, title: str = "") -> Axes:
    """Draw one query's weights as bars from 0 to 1."""
    ax = ax or panels()
    weights = _array(weights)
    shown = ax.bar(range(len(labels)), weights, color=BLUE, width=0.7)
    ax.bar_label(shown, labels=[f"{weight:.2f}" for weight in weights.tolist()], fontsize=8)
    ax.set(ylim=(0, 1.12), yticks=[0, 0.5, 1])
    ax.set_xticks(range(len(labels)), labels)
    _label(ax, title=title, ylabel="weight")
    return ax


def hull(
    values: Numbers,
    context: Numbers,
    ax: Axes | None = None,
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw 2-D values, their convex hull, and the contexts made of them: are these inside?

    values   (T_k, 2)
    context  (T_q, 2)
    """
    from scipy.spatial import ConvexHull  # slow to import

    ax = ax or panels(width=4.6, height=3.6)
    # Of another shape, values would end the process in ConvexHull.
    values, context = (_array(one).reshape(len(one), 2) for one in (values, context))
    corners = values[ConvexHull(values).vertices]
    ax.fill(*corners.T, color=SKY, alpha=0.22, linewidth=0, label="convex hull")
    ax.plot(*context.T, ".", color=VERMILION, markersize=3, label="context")
    ax.plot(*values.T, "o", color=BLUE, markersize=7, label="values")
    ax.set(title=title)
    if legend:
        ax.legend(fontsize=8, loc="best")
    return ax


def tokens(texts: Mapping[str, Sequence[str]], ax: Axes | None = None) -> Axes:
    """Draw texts as coloured boxes, one a token.

    texts  label → list of str, the tokens
    """
    longest = max(sum(map(len, pieces)) + 0.6 * len(pieces) for pieces in texts.values())
    if ax is None:
        _, ax = plt.subplots(figsize=(9, 0.55 * len(texts) + 0.2))
    for row, pieces in enumerate(texts.values()):
        left = 0.0
        for number, piece in enumerate(pieces):
            colour, width = (SKY, ORANGE)[number % 2], len(piece) + 0.6
            ax.barh(row, width - 0.1, 0.7, left, color=colour, alpha=0.35)
            shown = piece.replace(" ", "␣").replace("\n", "↵")
            middle = left + width / 2 - 0.05
            ax.text(middle, row, shown, ha="center", va="center", family="monospace", fontsize=9)
            left += width
    ax.set_yticks(range(len(texts)), texts)
    ax.set(xlim=(0, longest), ylim=(len(texts) - 0.5, -0.5), xticks=[])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def signed(
    values: Numbers,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    limit: float = 1.0,
    colorbar: bool = True,
) -> Axes:
    """Draw a matrix of numbers of both signs: white is 0, colours run from -limit to limit."""
    ax = ax or panels(width=6.5, height=3.2)
    settings: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
    image = ax.imshow(_array(values), vmin=-limit, vmax=limit, cmap="PuOr_r", **settings)
    _label(ax, title=title, xlabel=xlabel, ylabel=ylabel)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    if colorbar:
        ax.figure.colorbar(image, ax=ax, ticks=[-limit, 0, limit])
    return ax


def picture(values: Numbers, ax: Axes | None = None, title: str = "", lines: int = 0) -> Axes:
    """Draw a grid of numbers as an image, from the smallest, white, to the largest, dark.

    values  (height, width)
    lines   draw a line after every so many rows and columns; 0 draws none
    """
    ax = ax or panels()
    values = _array(values)
    ax.imshow(values, cmap="Greys", interpolation="nearest")
    height, width = values.shape
    for edge in range(lines, max(height, width), lines) if lines else ():
        ax.axhline(edge - 0.5, color=VERMILION, linewidth=0.8)
        ax.axvline(edge - 0.5, color=VERMILION, linewidth=0.8)
    ax.set(xticks=[], yticks=[], title=title)
    ax.spines[:].set(visible=True, color=GREY)
    return ax
