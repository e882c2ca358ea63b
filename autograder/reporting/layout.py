"""How our pages look: their style, figures and tables."""

import html
import re
from collections.abc import Iterable

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1f24; background: #fff }
h2 { margin-top: 3rem } h3 { margin-top: 2rem }
table { border-collapse: collapse; margin: 1rem 0 2rem }
th, td { border: 1px solid #d0d7de; padding: .3rem .6rem; text-align: center; font-size: .9rem;
         overflow-wrap: anywhere }
th { overflow-wrap: normal } td:first-child { overflow-wrap: break-word; min-width: 6rem }
td.number, td.kind { white-space: nowrap }
th:first-child, td:first-child, td.said { text-align: left }
td.full { background: #e3f1e8 } td.none { background: #fbe5e1 } td.part { background: #fdf3d3 }
svg { max-width: 100%; height: auto; display: block; font-family: system-ui, sans-serif }
.wide { overflow-x: auto; margin: 1rem 0 2rem } .wide table, .wide svg { margin: 0 }
figure { margin: 1rem 0 } figure .wide { margin: 0 } figcaption { font-size: .9rem; color: #57606a }
pre { background: #f6f8fa; padding: .6rem; white-space: pre-wrap; font-size: .85rem;
      margin: .3rem 0; text-align: left }
@media (max-width: 40rem) { .wide svg { max-width: none; width: 38rem } }
@page { size: A4; margin: 14mm }
@media print {
  body { max-width: none; margin: 0; padding: 0; font-size: 11pt;
         print-color-adjust: exact; -webkit-print-color-adjust: exact }
  .wide { overflow: visible }
  h2 { break-before: page } h1 + h2 { break-before: auto }
  h3 { break-after: avoid } figure, tr, pre { break-inside: avoid }
}
"""


def figure(drawn: str, caption: str) -> str:
    """A drawing with its caption."""
    wide = _wide(drawn, caption)
    return f"<figure>{wide}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _wide(content: str, label: str) -> str:
    """What scrolls by itself where the page is narrow, by keyboard, too."""
    label = html.escape(label.rstrip("."))
    return f"<div class=wide role=group tabindex=0 aria-label='{label}'>{content}</div>"


def table(rows: str, label: str) -> str:
    """The lines of a table, for which ``label`` stands where it is read aloud."""
    return _wide(f"<table>{rows}</table>", label)


def breakable(name: str) -> str:
    """A name that may be broken between its words, so that its column stays narrow."""
    return re.sub(r"(?<=_)(?=.)|(?<=[a-z])(?=[A-Z])", "<wbr>", html.escape(name))


def line(name: str, cells: Iterable[str], kind: str = "td") -> str:
    """A line of a table; ``kind`` is 'th' for its headings."""
    row = "".join(f"<{kind}>{cell}</{kind}>" for cell in [name, *cells])
    return f"<tr>{row}</tr>"
