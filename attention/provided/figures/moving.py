"""Figures that move with sliders, in a notebook and, without a kernel, in the book.

Each function returns a small page for the end of a cell. The scripts lie in the folder ``moving/``:
``shared.js`` and one for each figure. A page holds both and its numbers, and loads nothing. Where a
viewer takes scripts out, as GitHub does, a sentence stands in its place.
"""

import functools
import json
from pathlib import Path
from typing import Any

from IPython.display import HTML

from attention.provided.files import ROOT

SCRIPTS = Path(__file__).with_suffix("")
# What trained models were asked: python -m attention.experiments.moving_figures
RECORDED = ROOT / "data" / "moving_figures.json"
PAGE = """<div class="moving"><span class="without">A moving figure belongs here. It needs scripts:
open the notebook in JupyterLab and run this cell, or read the lesson in the course's book.</span>
<script type="application/json">DATA</script>
<script>(() => {
"use strict";
SHARED
FIGURE})();</script></div>"""


def bandwidth() -> HTML:
    """Kernel regression (lesson 01): four kernels, the bandwidth, and the weights of one query."""
    return _page("bandwidth", _recorded()["bandwidth"])


def crossing() -> HTML:
    """Alignments of a trained translator (lesson 03), one German letter after the other."""
    return _page("crossing", _recorded()["crossing"])


def scale() -> HTML:
    """Scores of random vectors of length d, divided by √d or not, and their softmax (lesson 05)."""
    return _page("scale")


def masks() -> HTML:
    """Six masks (lesson 06): who sees whom, and who is reached after some layers."""
    return _page("masks", _recorded()["masks"])


def rotation() -> HTML:
    """Positions as rotations (lesson 08): a dot product that depends on m - n alone."""
    return _page("rotation")


def warm_up() -> HTML:
    """The learning rate that rises and falls (lesson 11), by warm-up and d_model."""
    return _page("warm_up")


def sampling() -> HTML:
    """Temperature, top-k and top-p (lesson 13) on one recorded distribution of next tokens."""
    return _page("sampling", _recorded()["sampling"])


def n_grams(*pairs: tuple[str, str]) -> HTML:
    """The n-grams that count, the brevity penalty and BLEU (lesson 14), of sentences to edit.

    pairs  hypotheses and references to choose from, with spaces between the tokens; without any,
           four are given
    """
    named = {hypothesis: (hypothesis, reference) for hypothesis, reference in pairs} or PAIRS
    shown = [
        {"name": name, "hypothesis": hypothesis, "reference": reference}
        for name, (hypothesis, reference) in named.items()
    ]
    return _page("n_grams", shown)


def patches() -> HTML:
    """A digit with one patch blanked (lesson 16), and what a trained model then says."""
    return _page("patches", _recorded()["patches"])


def tiles() -> HTML:
    """A softmax that sees its keys a tile at a time (lesson 18): maximum, sum and output so far."""
    return _page("tiles")


MAT = "the cat is on the mat"
PAIRS = {
    "a word too often": ("the cat the cat on the mat", MAT),
    "too short": ("the cat is on", MAT),
    "other order": ("on the mat is the cat", MAT),
    "all the same": (MAT, MAT),
}


def _page(name: str, data: Any = None) -> HTML:
    """The page of one figure. ``data`` is what its script finds under that name."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    parts = {"DATA": text, "SHARED": _script("shared"), "FIGURE": _script(name)}
    page = PAGE
    for mark, part in parts.items():
        page = page.replace(mark, part, 1)
    return HTML(page)


def _script(name: str) -> str:
    return (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")


@functools.cache
def _recorded() -> dict[str, Any]:
    """The recorded numbers of all figures, by the figure's name."""
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found
