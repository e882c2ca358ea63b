"""The words of a plot, for those who do not see it: the sentence in italics below it.

nbconvert's template "classic" and nbsphinx read them from the output; its own default, the template
"lab", and JupyterLab 4.6 show images without words, whatever their metadata.
"""

import re
from collections.abc import Sequence

from nbformat import NotebookNode

from autograder import cell_metadata

CAPTION = re.compile(r"\*(?!\*)(.+?[.?!:])\*(?!\*)", re.DOTALL)
MARKUP = re.compile(r"\*\*|[*`$]")
NO_CAPTION = "A plot of the numbers above."
PNG = "image/png"


def describe_cells(cells: Sequence[NotebookNode]) -> None:
    """Put the sentence below a plot into its cell's metadata."""
    words = ""
    for cell in reversed(cells):
        if cell.cell_type == "markdown":
            found = CAPTION.match(cell.source)
            words = " ".join(MARKUP.sub("", found[1]).split()) if found else ""
        elif words and not cell_metadata.is_known(cell):
            cell.metadata["alt"] = words


def describe_outputs(cells: Sequence[NotebookNode]) -> None:
    """Put each plot's words into its output's metadata, where programs look that show outputs."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if PNG in output.get("data", {}):
                output.metadata.setdefault(PNG, NotebookNode())["alt"] = of(cell)


def of(cell: NotebookNode) -> str:
    """The words of a cell's plots."""
    words: str = cell.metadata.get("alt", NO_CAPTION)
    return words
