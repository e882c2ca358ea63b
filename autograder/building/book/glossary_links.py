"""A Sphinx extension: in each lesson, the first mention of a glossary's term leads to it.

It works on the parsed page, so that code, formulas, headings, links and folded hints stay as they
are. The terms are read from the glossary itself; those of ``book_terms_left_alone`` are words that
mean other things as well.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

GLOSSARY = re.compile(r"^```\{glossary\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Where a word is not a mention: it is quoted, leads elsewhere already, or is the name of a part.
ELSEWHERE = (
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.reference,
    nodes.emphasis,  # a paper's title, or what a plot shows
    nodes.title,
    nodes.image,
    nodes.raw,
    addnodes.pending_xref,
    addnodes.download_reference,
)


def terms(text: str) -> list[str]:
    """The terms of the glossary in a page of Markdown: its lines that are not indented."""
    found = GLOSSARY.search(text)
    lines = found[1].splitlines() if found else []
    return [line.strip() for line in lines if line.strip() and line[0] not in " :"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_config_value("book_terms_left_alone", [], "env")
    app.connect("doctree-read", _link_first_mentions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _link_first_mentions(app: Sphinx, page: nodes.document) -> None:
    """Link the first mention of each term in a lesson, which are the pages in folders."""
    if "/" not in app.env.docname:
        return
    glossary = (Path(app.srcdir) / "glossary.md").read_text(encoding="utf-8")
    waiting = {
        term.casefold(): term
        for term in terms(glossary)
        if term not in app.config.book_terms_left_alone
    }
    for text in list(_texts(page)):
        parts = list(_parts(text.astext(), waiting, app.env.docname))
        if any(not isinstance(part, nodes.Text) for part in parts):
            text.parent.replace(text, parts)


def _texts(page: nodes.document) -> Iterator[nodes.Text]:
    """The page's texts that tell something, in order, without those that are folded."""
    folded = 0
    for node in page.findall():
        if isinstance(node, nodes.raw):
            html = node.astext()
            folded += html.count("<details") - html.count("</details")
        elif isinstance(node, nodes.Text) and not folded and not _is_elsewhere(node):
            yield node


def _is_elsewhere(node: nodes.Node) -> bool:
    """Whether a text is no mention, or stands among a lesson's references, in a paper's title."""
    while (node := node.parent) is not None:
        if isinstance(node, ELSEWHERE):
            return True
        if isinstance(node, nodes.section) and "references" in node["names"]:
            return True
    return False


def _parts(text: str, waiting: dict[str, str], docname: str) -> Iterable[nodes.Node]:
    """``text`` with a link in place of each term that is still ``waiting``, and now no more."""
    while waiting:
        longest_first = sorted(waiting, key=len, reverse=True)
        every = "|".join(re.escape(term).replace(r"\ ", r"\s+") for term in longest_first)
        found = re.search(rf"(?<![\w-])({every})(?:s|es)?(?![\w-])", text, re.IGNORECASE)
        if found is None:
            break
        term = waiting.pop(" ".join(found[1].casefold().split()))
        yield from ([nodes.Text(text[: found.start()])] if found.start() else [])
        yield _link(found[0], term, docname)
        text = text[found.end() :]
    if text:
        yield nodes.Text(text)


def _link(text: str, term: str, docname: str) -> nodes.Node:
    inner = nodes.inline("", text, classes=["xref", "std", "std-term"])
    return addnodes.pending_xref(
        "",
        inner,
        refdomain="std",
        reftype="term",
        reftarget=term,
        refexplicit=True,
        refwarn=True,
        refdoc=docname,
    )
