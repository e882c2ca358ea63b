"""What the figures promise: orientation, fixed scale, labels, and the Axes as result."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

from attention.provided.figures import plots  # noqa: E402


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
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title("left")) == ("keys", "queries", "t")


def test_heatmap_writes_the_numbers_in_their_cells():
    ax = plots.heatmap(torch.tensor([[0.25, 0.75]]), numbers=True)
    assert {text.get_text(): text.get_position() for text in ax.texts} == {
        "0.25": (0, 0),
        "0.75": (1, 0),
    }


def test_heatmap_draws_on_the_axes_it_is_given():
    axes = plots.panels(1, 2)
    assert plots.heatmap(torch.eye(2), axes[1], colorbar=False) is axes[1]
    assert axes[1].get_ylabel() == ""  # a shared scale is labelled once, on the left


def test_panels_share_one_y_scale_unless_told_otherwise():
    left, right = plots.panels(1, 2)
    left.plot([0, 5])
    assert left.get_ylim() == right.get_ylim()
    left, right = plots.panels(1, 2, share=False)
    left.plot([0, 5])
    assert left.get_ylim() != right.get_ylim()


def test_fit_draws_examples_prediction_and_truth():
    x = torch.linspace(0, 1, 5)
    prediction = (2 * x).requires_grad_()
    ax = plots.fit(x, prediction, x[:3], x[:3], truth=x, xlabel="hours")
    drawn = {line.get_label(): line for line in ax.get_lines()}
    assert drawn.keys() == {"truth", "examples", "prediction"}
    assert drawn["prediction"].get_ydata().tolist() == pytest.approx((2 * x).tolist())
    assert len(drawn["examples"].get_xdata()) == 3
    assert ax.get_xlabel() == "hours"


def test_lines_has_one_labelled_line_each():
    ax = plots.lines([1, 10], {"a": torch.tensor([1.0, 2.0]), "b": [3.0, 4.0]}, log=True)
    assert [line.get_label() for line in ax.get_lines()] == ["a", "b"]
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_bars_run_from_zero_to_one():
    ax = plots.bars(torch.tensor([0.25, 0.75]), ["p", "q"])
    assert [bar.get_height() for bar in ax.patches] == [0.25, 0.75]
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > 1


def test_hull_draws_values_and_contexts():
    values = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    ax = plots.hull(values, values.mean(0, keepdim=True))
    assert {line.get_label(): len(line.get_xdata()) for line in ax.get_lines()} == {
        "values": 3,
        "context": 1,
    }


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=20))
def test_every_point_lies_inside_its_convex_hull(pairs):
    points = torch.tensor(pairs, dtype=torch.float64)
    corners = plots.convex_hull(points)
    assert set(map(tuple, corners.tolist())) <= set(map(tuple, points.tolist()))
    if len(corners) > 2:
        edges = corners.roll(-1, 0) - corners
        for point in points:
            offset = point - corners
            assert (edges[:, 0] * offset[:, 1] - edges[:, 1] * offset[:, 0] >= 0).all()


def test_colours_are_those_of_a_colour_blind_safe_palette():
    cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    assert {to_hex(colour).upper() for colour in cycle} >= {"#0072B2", "#D55E00", "#009E73"}
    assert matplotlib.rcParams["image.cmap"] in ("YlGnBu", "cividis", "viridis")


def test_tokens_have_a_box_each_and_show_their_spaces():
    ax = plots.tokens({"one": ["ab", " c"], "two": ["d\n"]})
    assert [text.get_text() for text in ax.texts] == ["ab", "␣c", "d↵"]
    assert len(ax.patches) == 3
    assert [text.get_text() for text in ax.get_yticklabels()] == ["one", "two"]
    assert ax.yaxis_inverted()  # the first text on top


def test_tokens_draw_on_the_axes_they_are_given():
    axes = plots.panels(2, 1, share=False)
    assert plots.tokens({"one": ["ab"]}, axes[1]) is axes[1]


def test_signed_numbers_have_a_scale_with_0_in_the_middle():
    values = torch.tensor([[-2.0, 0.0, 1.0]], requires_grad=True)
    ax = plots.signed(values, title="t", xlabel="x", ylabel="y", limit=2.0)
    image = ax.get_images()[0]
    assert image.get_clim() == (-2, 2)
    assert image.get_array()[0, 0] == -2
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title("left")) == ("x", "y", "t")
