"""A plot's words: in its cell, in its output, and in the pages that nbconvert makes."""

import re
import runpy

import nbconvert
import nbformat
from traitlets.config import Config

from autograder import ROOT
from autograder.building import alt_text

PLOT = {"image/png": "iVBORw0KGgo=\n", "text/plain": "<Figure size 420x240 with 1 Axes>"}


def notebook(below="*Left: the `loss`\nof “a” run, <1.* It falls."):
    plot = nbformat.v4.new_code_cell(
        "draw()", outputs=[nbformat.v4.new_output("display_data", PLOT)]
    )
    made = nbformat.v4.new_notebook(cells=[plot, nbformat.v4.new_markdown_cell(below)])
    alt_text.describe_cells(made.cells)
    alt_text.describe_outputs(made.cells)
    return made


def words(made):
    return [
        cell.outputs[0].metadata["image/png"]["alt"] for cell in made.cells if "outputs" in cell
    ]


def test_an_output_has_the_words_of_its_plot():
    assert words(notebook()) == ["Left: the loss of “a” run, <1."]
    assert words(notebook("No caption.")) == [alt_text.NO_CAPTION]


def test_words_that_change_replace_those_before():
    made = notebook()
    made.cells[0].metadata["alt"] = "Another sentence."
    alt_text.describe_outputs(made.cells)
    assert words(made) == ["Another sentence."]


def test_with_the_courses_settings_the_words_reach_nbconverts_pages():
    settings = Config()
    runpy.run_path(str(ROOT / "jupyter_nbconvert_config.py"), {"get_config": lambda: settings})
    made = notebook()
    before = nbformat.writes(made)
    page, _ = nbconvert.HTMLExporter(config=settings).from_notebook_node(made)
    assert re.findall(r'<img alt="([^"]*)"', page) == ["Left: the loss of “a” run, &lt;1."]
    assert "No description has been provided" not in page
    assert nbformat.writes(made) == before
