"""What a student wrote, made HTML: prose as the text that it is, code in colours if it is short.

No page of ours is a place for the HTML of prose. It is held back twice. As Markdown it is an
indented block of code, for every program that opens the graded notebook. And where nbgrader makes
HTML, of the feedback or in the formgrader, it is escaped without being read as Markdown, so that
nothing depends on how Markdown tells lines apart.
"""

import re
from functools import cache
from html import escape
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from autograder import cell_metadata
from autograder.grading.notebook.result import clean

TEXT = "text"  # in cell.metadata.autograder: this prose is a student's
INDENT = " " * 4
# A link to a file, which lies beside the notebook and not beside a page that is made of it.
ELSEWHERE = re.compile(r'<a href="(?!#|[a-z]+:)[^"]*"[^>]*>(.*?)</a>', re.DOTALL)
# What is shown in colours. A highlighter's patterns may take the square of a line's or a cell's
# length; the course's own cells have up to 5000 characters, its notebooks 20,000, a line 100.
COLOURED_LINE, COLOURED_CELL, COLOURED_PAGE = 500, 10_000, 100_000


def prose_cell(source: str) -> dict[str, Any]:
    """A Markdown cell that shows ``source`` as plain text."""
    metadata = {"autograder": {TEXT: True}}
    return {"cell_type": "markdown", "metadata": metadata, "source": _as_code(source)}


def text_of(source: str) -> str:
    """The text that the ``source`` of such a cell shows."""
    return "\n".join(line.removeprefix(INDENT) for line in source.split("\n"))


@pass_context
def markdown_to_html(context: Context, source: str) -> str:
    """``source`` as HTML: a student's prose as plain text, all else as nbconvert has it, but for
    links to files: these are words.

    nbconvert's SanitizeHTML breaks formulas and leaves [links](javascript:...); its sanitize_html
    shows images, headings and <details> as the text of their tags.
    """
    if cell_metadata.notes(context.get("cell", {}), "autograder").get(TEXT):
        return f"<pre><code>{escape(text_of(source))}</code></pre>\n"
    return ELSEWHERE.sub(r"\1", _exporter().markdown2html(context, source))


@pass_context
def code_to_html(context: Context, source: str, metadata: Any = None) -> str:
    """Code as HTML, in the colours of Python; without, where it is longer than code is.

    metadata  the cell's, where a magic may name another language: nothing here asks for one
    """
    resources = context.get("resources", {})
    before = resources.get("coloured", 0)
    longest = max(map(len, source.split("\n")))
    long = longest > COLOURED_LINE or len(source) > COLOURED_CELL
    if long or before + len(source) > COLOURED_PAGE:
        return f'<div class="highlight hl-ipython3"><pre>{escape(source)}</pre></div>\n'
    resources["coloured"] = before + len(source)
    return _highlighter()(source)


@cache
def _exporter() -> Any:
    from nbconvert.exporters import HTMLExporter  # slow to import

    return HTMLExporter()


@cache
def _highlighter() -> Any:
    from nbconvert.filters import Highlight2HTML  # slow to import

    return Highlight2HTML(pygments_lexer="ipython3")


def _as_code(source: str) -> str:
    """``source`` as a Markdown block of indented code.

    Whatever anyone takes for the end of a line is one here, and every line is indented, a blank one
    too: what looks blank to Python need not look so to Markdown. Other control characters go.
    """
    return "\n".join(INDENT + clean(line) for line in source.splitlines()) or INDENT
