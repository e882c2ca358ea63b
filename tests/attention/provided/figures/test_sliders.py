"""A figure with a slider."""

import ipywidgets
import pytest

from attention.provided.figures import sliders


@pytest.mark.parametrize("variable", ["NBGRADER_EXECUTION", "AUTOGRADER_SEED"])
def test_nothing_is_drawn_while_nobody_can_move_it(monkeypatch, capsys, variable):
    monkeypatch.setenv(variable, "1")
    sliders.slider(lambda width: pytest.fail("drawn"), width=(1, 3))
    assert "move width by a slider" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ends", "kind", "middle"),
    [
        ((1, 9), ipywidgets.IntSlider, 5),
        ((0.01, 1.0), ipywidgets.FloatLogSlider, 0.1),
        ((-1.0, 1.0), ipywidgets.FloatSlider, 0.0),
    ],
)
def test_the_slider_is_of_the_right_kind_and_draws(monkeypatch, ends, kind, middle):
    for variable in ("NBGRADER_EXECUTION", "AUTOGRADER_SEED"):
        monkeypatch.delenv(variable, raising=False)
    made, drawn = [], []
    monkeypatch.setattr(ipywidgets, "interact", lambda show, **values: made.append((show, values)))
    sliders.slider(lambda width: drawn.append(width), width=ends)
    ((show, named),) = made
    slider = named["width"]
    assert isinstance(slider, kind)
    assert slider.value == pytest.approx(middle)
    assert (slider.min, slider.max) == (ends if kind is not ipywidgets.FloatLogSlider else (-2, 0))
    show(width=2)
    assert drawn == [2]
