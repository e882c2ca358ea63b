"""KaTeX, which VS Code and Colab use, draws every formula; MathJax is tried in test_book.py."""

import importlib.util
from pathlib import Path

import pytest

from tests import needs
from tests.test_renderers import SLUGS, formulas, texts

pytestmark = pytest.mark.browser
DRAW = """formulas => formulas.filter(one => {
    const double = one.startsWith('$$'), skip = double ? 2 : 1;
    try {
        katex.renderToString(one.slice(skip, -skip), {displayMode: double, strict: 'error'});
        return false;
    } catch { return true; }
})"""


@pytest.fixture(scope="module")
def page(browser):
    """A page with KaTeX on it."""
    needs.skip_without("sphinxcontrib.katex")
    package = Path(importlib.util.find_spec("sphinxcontrib.katex").origin).parent
    with browser() as opened:
        opened.add_script_tag(path=package / "katex.min.js")
        yield opened


def test_katex_draws_every_formula(page):
    written = [one for slug in SLUGS for text in texts(slug) for one in formulas(text)]
    assert page.evaluate(DRAW, written) == []
    assert len(written) > 100


def test_what_katex_does_not_know_is_noticed(page):
    wrong = [r"$\nosuch x$", r"$\frac{1$", r"$$\begin{eqnarray} a \end{eqnarray}$$"]
    assert page.evaluate(DRAW, ["$x_1$", *wrong]) == wrong
