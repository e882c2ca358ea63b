"""Every text of a notebook says the same in all the tools in which notebooks are read.

Three stand for the rest: markdown-it with VS Code's rule for formulas; mistune as nbconvert has it;
and cmark-gfm, which GitHub uses, with formulas put aside beforehand, as JupyterLab and Colab do.
"""

import json
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbconvert.filters import markdown2html_mistune

from autograder import ROOT
from tests import needs

SLUGS = sorted(path.name for path in (ROOT / "solutions").glob("[0-9]*"))
CODE = re.compile(
    r"^```.*?^```$|(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)", re.DOTALL | re.MULTILINE
)
FORMULA = re.compile(r"(?P<formula>\$\$.+?\$\$|\$[^$]+\$)", re.DOTALL)
CODE_OR_FORMULA = re.compile(f"{CODE.pattern}|{FORMULA.pattern}", CODE.flags)
CODE_SHOWN = re.compile("<pre>.*?</pre>|<code>.*?</code>", re.DOTALL)
ASIDE = re.compile("⟦(\\d+)⟧")
# What is compared: structure, and where a link or a picture leads. Paragraphs are left out, since
# tools differ in whether a tight list has them.
INLINE = {"code", "em", "strong", "del"}
BREAKS = {"h1", "h2", "h3", "h4", "h5", "h6", "table", "tr", "th", "td", "ul", "ol", "li", "pre"}
BREAKS |= {"details", "summary"}
KEPT = BREAKS | INLINE


class Outline(HTMLParser):
    """HTML as one list: tags, addresses and words, without what a tool adds for its looks."""

    def __init__(self, html):
        super().__init__()
        self.said, self._skipped, self._pre = [], 0, False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        about = dict(attrs)
        if tag == "a" and about.get("class") == "anchor-link":  # nbconvert's ¶
            self._skipped = 1
        elif tag == "a":
            self.said.append(f"<a {about.get('href')}>")
        elif tag == "img":
            self.said.append(f"<img {about['src']} {about.get('alt', '')}>")
        elif tag in KEPT and not (tag == "code" and self._pre):
            self.said.append(f"<{tag}>")
        self._pre = self._pre or tag == "pre"

    def handle_endtag(self, tag):
        if tag == "a":
            self._skipped = 0
        self._pre = self._pre and tag != "pre"
        if tag in KEPT and not (tag == "code" and self._pre):
            self.said.append(f"</{tag}>")

    def handle_data(self, data):
        if not self._skipped:
            self.said.append(data)


def outline(html):
    """The HTML's structure and words, with single spaces and none beside a block or a formula."""
    text = re.sub(r"\s+", " ", "".join(Outline(html).said)).replace("<code></pre>", "</pre>")
    blocks = "|".join(sorted(BREAKS))
    text = re.sub(rf"\s*(</?(?:{blocks}|img)\b[^>]*>)\s*", r"\1", text)
    return re.sub(r"\s*(\$+)\s*", r"\1", text).strip()


def as_in_vs_code(text):
    """markdown-it, and each formula as the rule of markdown-it-katex finds it."""
    made = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    made.use(dollarmath_plugin, allow_space=False, allow_labels=False)
    for kind, marks in (("math_inline", "$"), ("math_inline_double", "$$"), ("math_block", "$$")):

        def written(_, tokens, index, options, env, marks=marks):
            return f"<var>{marks}{escaped(tokens[index].content)}{marks}</var>"

        made.add_render_rule(kind, written)
    return made.render(text)


def as_on_github(text):
    """cmark-gfm with its extensions, the formulas put aside and back."""
    import cmarkgfm
    from cmarkgfm.cmark import Options

    formulas = []

    def aside(found):
        if not found["formula"]:
            return found[0]  # code
        formulas.append(escaped(found["formula"]))
        return f"⟦{len(formulas) - 1}⟧"

    text = CODE_OR_FORMULA.sub(aside, text)
    html = cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE)
    return ASIDE.sub(lambda found: formulas[int(found[1])], html)


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


TOOLS = {"VS Code": as_in_vs_code, "nbconvert": markdown2html_mistune, "GitHub": as_on_github}


def formulas(text, code=CODE):
    """The formulas in a text, without what stands in code."""
    return [" ".join(one.split()) for one in FORMULA.findall(code.sub("", text))]


def faults(text):
    """What is wrong with a text of a notebook: a list of sentences."""
    shown = {name: outline(tool(text)) for name, tool in TOOLS.items()}
    first = shown["VS Code"]
    words = CODE_SHOWN.sub("", re.sub("<img [^>]*>", "", first))
    found = [f"{name} shows something else" for name, one in shown.items() if one != first]
    read = as_in_vs_code(text).count("<var>")  # its rule is the strictest
    if formulas(first, CODE_SHOWN) != formulas(text) or read != len(formulas(text)):
        found.append("a formula does not arrive whole")
    if re.search(r"\*\*|\]\(|^\||```|data:image", words):
        found.append("Markdown is shown as it is written")
    if re.search("<img [^>]* >", first):
        found.append("a picture has no words")
    if not first.count("<details>") == first.count("</details>") == first.count("<summary>"):
        found.append("a fold is not closed, or has no heading")
    if re.search(r"<th></th>", first):
        found.append("a column of a table has no heading")
    return found


def texts(slug):
    """The Markdown cells of a lesson's notebooks, each once."""
    found = []
    for kind in ("solutions", "lessons"):
        path = ROOT / kind / slug / f"{slug}.ipynb"
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found += ["".join(one["source"]) for one in cells if one["cell_type"] == "markdown"]
    return dict.fromkeys(found)


@pytest.mark.parametrize("slug", SLUGS)
def test_every_tool_shows_the_same(slug):
    needs.skip_without("cmarkgfm")
    wrong = {text[:80]: found for text in texts(slug) if (found := faults(text))}
    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        "A $ a_1 $ with spaces.",
        "| a | b |\n|---|---|\n| $|x|$ | 1 |",
        "<details><summary>Hint 1</summary>\n**bold**\n</details>",
        "<details>\n\nA hint\n</details>",
        "![A box][box]\n\n[box]: data:image/svg+xml;base64,PHN2Zy8+",
        "![][box]\n\n[box]: data:image/png;base64,PHN2Zy8+",
        "| | b |\n|---|---|\n| 1 | 2 |",
        "A list:\n1) one\n\n    ```python\n  x\n```",
    ],
)
def test_a_text_that_some_tool_shows_wrongly_is_noticed(text):
    needs.skip_without("cmarkgfm")
    assert faults(text)
