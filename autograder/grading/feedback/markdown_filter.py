"""The step from Markdown to HTML in nbgrader's pages, in place of nbconvert's own.

nbconvert's own means do not serve. Its SanitizeHTML cleans Markdown before that is HTML: it breaks
formulas (& and <) and leaves [links](javascript:...) as they are. Its sanitize_html shows images,
headings, paragraphs and <details> as the text of their tags, cannot be told otherwise, and
nbgrader's templates do not ask for it.
"""

from functools import cache
from html import escape

from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter

from autograder.grading.notebook.student_text import TEXT, text_of


@pass_context
def markdown_to_html(context: Context, source: str) -> str:
    """``source`` as HTML: a student's prose as plain text, all else as nbconvert has it."""
    metadata = context.get("cell", {}).get("metadata", {})
    if metadata.get("autograder", {}).get(TEXT):
        return f"<pre><code>{escape(text_of(source))}</code></pre>\n"
    return _nbconvert().markdown2html(context, source)


@cache
def _nbconvert() -> HTMLExporter:
    return HTMLExporter()
