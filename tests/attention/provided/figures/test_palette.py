"""Lines of a figure differ in more than colour."""

import itertools
import re

import matplotlib
import matplotlib.pyplot as plt
import pytest

from attention.provided.figures import palette, plots, seeds
from autograder import ROOT

LABELS = [f"line {number}" for number in range(7)]


@pytest.fixture(autouse=True)
def no_figure_stays():
    yield
    plt.close("all")


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
    if kind == "accuracy":
        return plots.accuracy({label: {1: 0.5, 2: 0.3} for label in LABELS[:5]}, ax)
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


@pytest.mark.parametrize("kind", ["lines", "accuracy", "bands", "curves", "sweep", "drawn by hand"])
def test_two_lines_differ_in_more_than_colour(kind):
    ax = drawn(kind)
    assert ax.get_legend() is not None
    assert alike(ax) == []


def test_histograms_differ_in_more_than_colour():
    ax = plots.histograms({label: [1.0, 2.0, 2.0] for label in LABELS[:4]})
    assert len({one.get_linewidth() for one in ax.patches}) == 4


def test_the_legend_shows_the_marks():
    shown = plots.lines(range(50), {label: range(50) for label in LABELS}).get_legend()
    assert len({line.get_marker() for line in shown.get_lines()}) == len(LABELS)


def test_every_colour_of_the_cycle_has_a_shape_of_its_own():
    colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    assert set(colours[1:]) <= palette.SHAPES.keys()
    assert len(set(palette.SHAPES.values())) == len(palette.SHAPES)


def test_a_long_line_is_marked_in_some_places_and_a_short_one_at_its_points():
    long, short = (
        plots.lines(range(n), {label: range(n) for label in LABELS[:2]}).lines[1] for n in (500, 5)
    )
    assert isinstance(long.get_markevery(), tuple)
    assert short.get_markevery() is None


def test_the_other_panels_have_the_same_marks():
    left, right = plots.panels(columns=2)
    for ax in (left, right):
        for label in LABELS[:2]:
            ax.plot([1, 2], [1, 2], label=label)
    plots.legend(left)
    assert [line.get_marker() for line in right.lines] == [line.get_marker() for line in left.lines]
    assert right.lines[1].get_marker() == palette.SHAPES[plots.VERMILION]


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
