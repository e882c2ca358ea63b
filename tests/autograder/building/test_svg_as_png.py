"""The PNG beside a drawing, which notebooks carry."""

import base64
import re

import pytest

from autograder import ROOT, cell_metadata
from autograder.building import svg_as_png
from autograder.building.notebook import make
from autograder.building.source import SourceError

DRAWINGS = sorted((ROOT / "source" / "figures").glob("*.svg"))


def with_png(course, digest):
    """The mini course's drawing, and beside it a file that says it was made from it."""
    drawing = course.source.parent / "figures" / "boxes.svg"
    png = drawing.with_suffix(".png")
    png.write_bytes(f"PNG {svg_as_png.KEYWORD}\0{digest(drawing)}".encode())
    return png


def test_every_drawing_has_a_png_of_its_present_state():
    stale = [
        one.name
        for one in DRAWINGS
        if svg_as_png.shown(one) == one or not svg_as_png.is_current(one)
    ]
    assert stale == [], svg_as_png.COMMAND
    assert DRAWINGS


def test_a_notebook_carries_the_png(course):
    png = with_png(course, svg_as_png.digest)
    first = make(course.read()).cells[0]
    found = re.search(r"^\[boxes\]: data:image/png;base64,(\S+)$", first.source, re.MULTILINE)
    assert base64.b64decode(found[1]) == png.read_bytes()


def test_a_png_of_another_drawing_is_refused(course):
    with_png(course, lambda drawing: "0" * 64)
    with pytest.raises(SourceError, match="boxes.svg has changed since its PNG was made: python d"):
        course.read()


def test_the_sentence_below_a_plot_is_its_words(course):
    plot = (
        "# %% demo=true\nx = 1\n\n# %% [markdown]\n# *Left: the `loss`\n# of a run.* It falls.\n\n"
    )
    course.edit(
        course.source, "# %% [markdown]\n# ## Double", f"{plot}# %% [markdown]\n# ## Double"
    )
    cells = make(course.read()).cells
    plots = [one for one in cells if one.source == "x = 1"]
    assert [one.metadata["alt"] for one in plots] == ["Left: the loss of a run."]
    assert not any("alt" in one.metadata for one in cells if cell_metadata.is_known(one))
