"""A plot's words: in its cell, in its output, and in the pages that nbconvert makes."""

import nbformat

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
