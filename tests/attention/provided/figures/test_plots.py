"""What the figures promise: orientation, a scale, and lines that differ in more than colour."""

import itertools
import re

import matplotlib.pyplot as plt
import pytest
import torch

from attention.provided.figures import plots, seeds
from autograder import ROOT

LABELS = [f"line {number}" for number in range(7)]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_heatmap_has_queries_down_keys_across_and_a_fixed_scale():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], requires_grad=True)
    ax = plots.heatmap(weights, title="t", queries=["a", "b"], keys=["x", "y", "z"])
    image = ax.get_images()[0]
    assert image.get_array().shape == (2, 3)
    assert image.get_array()[0, 2] == pytest.approx(0.7)
    assert image.get_clim() == (0, 1)
    assert ax.yaxis_inverted()  # query 0 on top
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["x", "y", "z"]


def test_the_scale_of_faint_weights_ends_at_the_largest():
    weights = torch.tensor([[0.02, 0.08], [0.05, 0.05]])
    (image,) = plots.heatmap(weights, plots.panels(), faint=True).images
    assert image.get_clim() == pytest.approx((0, 0.08))


def test_panels_share_one_y_scale_unless_told_otherwise():
    left, right = plots.panels(1, 2)
    left.plot([0, 5])
    assert left.get_ylim() == right.get_ylim()
    left, right = plots.panels(1, 2, share=False)
    left.plot([0, 5])
    assert left.get_ylim() != right.get_ylim()


def alike(ax):
    """Pairs of labelled lines of an Axes that only their colour tells apart."""
    looks = [
        (line.get_marker(), line.get_linestyle(), line.get_linewidth())
        for line in ax.lines
        if not line.get_label().startswith("_")
    ]
    return [pair for pair in itertools.combinations(looks, 2) if pair[0] == pair[1]]


def rows():
    return [{"digits": [1, 2], "accuracy": [0.5, 0.2], "x": x, "y": x} for x in (1.0, 2.0)]


def drawn(kind):
    """An Axes of each kind of figure that has several lines and a legend."""
    ax = plots.panels(width=5.0)
    if kind == "lines":
        return plots.lines(range(50), {label: range(50) for label in LABELS}, ax)
    if kind == "bands":
        return seeds.bands({label: rows() for label in LABELS[:5]}, ax)
    if kind == "curves":
        seeds.curves({label: [[1.0, 2.0], [2.0, 2.0]] for label in LABELS}, [1, 2], ax)
    if kind == "sweep":
        for number, label in enumerate(LABELS[:3]):
            seeds.sweep(rows(), "x", "y", ax, label, number=number)
    if kind == "drawn by hand":
        for label, colour in zip(LABELS, (plots.GREY, plots.BLUE, plots.BLACK), strict=False):
            ax.plot([1, 2], [1, 2], ".-", color=colour, label=label)
    plots.legend(ax)
    return ax


@pytest.mark.parametrize("kind", ["lines", "bands", "curves", "sweep", "drawn by hand"])
def test_two_lines_differ_in_more_than_colour(kind):
    ax = drawn(kind)
    assert ax.get_legend() is not None
    assert alike(ax) == []


def test_thresholds_single_lines_and_points_stay_as_they_are():
    ax = plots.panels()
    ax.plot([1, 2], [1, 2], color=plots.VERMILION, label="one")
    ax.axhline(1, color=plots.GREY, linestyle="--", label="threshold")
    ax.plot([1, 2], [1, 2], "o", color=plots.GREEN, label="points")
    plots.legend(ax)
    assert [line.get_marker() for line in ax.lines] == ["None", "None", "o"]


def test_lessons_draw_their_legends_so():
    """A legend of matplotlib's own would leave lines that differ in colour only."""
    own = re.compile(r"(?<!plots)\.legend\(")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / "source").glob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if own.search(line) and "figure.legend(" not in line
    ]
    assert found == []
