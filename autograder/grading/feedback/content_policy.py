"""What a browser may do with a page that shows what students wrote: a second layer.

What a student wrote is escaped wherever HTML is made of it. Where that were forgotten, these
policies hold: no script runs but the page's own, and nothing is loaded but what the page itself
needs. A policy stands in the page, for a page that is opened from disk has no server to send it.
"""

import base64
import hashlib
import re
import secrets
from html import escape
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode

# The version that nbconvert names evaluates text as a script, which a policy would have to allow
# to all. This one does not, and it does not touch <pre>, where all is that a student wrote.
MATHJAX = "https://cdn.jsdelivr.net/npm/mathjax@3.2.2/es5/tex-svg.js"
# Of es5/tex-svg.js in the package mathjax 3.2.2 of npm, which is what that address gives; one file
# with all that it needs. A browser runs nothing else that may come from there.
INTEGRITY = "sha384-KKWa9jJ1MZvssLeOoXG6FiOAZfAgmzsIIfw8BXwI9+kYm0lPCbC6yTQPBC00F1/L"
SETTINGS = (
    r"MathJax = {tex: {inlineMath: [['$', '$'], ['\\(', '\\)']], processEscapes: true, "
    r"tags: 'ams'}, options: {enableMenu: false, ignoreHtmlClass: 'mathjax_ignore|summary'}};"
)
FORMULAS = (
    f'<script>{SETTINGS}</script><script async src="{MATHJAX}" integrity="{INTEGRITY}" '
    'crossorigin="anonymous"></script>'
)
OLD_FORMULAS = re.compile(r"<!-- Load mathjax -->.*?<!-- End of mathjax configuration -->", re.S)
INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.S)
HANDLER = re.compile(r'\bon[a-z]+="([^"]*)"')
NAMES = ("student", "first_name", "last_name", "notebook_path", "filename")


class EscapeNames(Preprocessor):
    """Escape the names that formgrader hands to its template, which puts them in as they are."""

    enabled = True

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """The notebook as it is, and ``resources`` with names that are text and no HTML."""
        named = {name: resources[name] for name in NAMES if isinstance(resources.get(name), str)}
        resources.update((name, escape(text)) for name, text in named.items())
        return nb, resources


def of_page(style: str) -> str:
    """The policy of a page without scripts, whose one <style> holds this text."""
    return _meta({"style-src": _digest(style)})


def held(head: str, nav: str = "") -> str:
    """``head``, the beginning of a page of nbgrader's up to </head>, with a policy in it.

    nav  what formgrader puts above a notebook, with the scripts of its own: in its page these, its
         server's files that the head names, and requests to it are allowed too
    """
    head = OLD_FORMULAS.sub(lambda _: FORMULAS, head)
    scripts = [MATHJAX, *map(_digest, INLINE.findall(head + nav))]
    policy = {"style-src": "'unsafe-inline'", "img-src": "data:", "font-src": "data:"}
    if nav:
        nonce = secrets.token_urlsafe(16)
        head = head.replace("<script ", f'<script nonce="{nonce}" ')
        scripts += [f"'nonce-{nonce}'", "'unsafe-hashes'", *map(_digest, HANDLER.findall(nav))]
        policy["style-src"] += " 'self'"
        policy |= {"font-src": "data: 'self'", "connect-src": "'self'"}
    policy["script-src"] = " ".join(dict.fromkeys(scripts))
    return head.replace("<head>", f"<head>{_meta(policy)}", 1)


def _meta(allowed: dict[str, str]) -> str:
    nothing = dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'")
    policy = "; ".join(f"{name} {what}" for name, what in (nothing | allowed).items())
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _digest(text: str) -> str:
    """How a policy names a script or a style by its text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
