"""The glass translator: the shipped Transformer of lesson 10 in one page that asks for nothing.

The page's parts are in `book/glass/`. Here they become one file: weights, vocabularies and sizes
as data, styles and scripts inline, and a policy that lets nothing else run or be loaded.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from torch import nn

from attention.provided.files import write_aside
from attention.provided.models import translators
from attention.provided.models.model_file import ModelFileError
from attention.train import shipped
from autograder import ROOT, CourseError
from autograder.building.lesson import find

PARTS = ROOT / "book" / "glass"
PAGE = ROOT / "book" / "_build" / "html" / "glass.html"  # where the book has it, too
MODEL = "transformer"  # that of lesson 10, in data/checkpoints/
# In the order in which they build on each other; they share one scope.
SCRIPTS = ("model", "decoding", "numbers", "explain", "heat", "layers", "search", "view")


class GlassError(CourseError):
    """The page cannot be made like this; str() says why, and what to do."""


def write(to: Path = PAGE, lesson_links: str | None = None, home: str = "") -> int:
    """Write the page to a file, whose folder is made; returns its size in bytes.

    lesson_links  the address of a lesson's page, with {lesson} for its name, as in
                  "{lesson}.html" for 10_transformer.html; None: lessons are named and not linked
    home          the address of the course's first page, or ''

    Raises GlassError for a folder in place of the file, or if the model's file is missing or
    damaged.
    """
    if to.is_dir():
        raise GlassError(f"{to} is a folder: name the file to write, as in {to / 'glass.html'}")
    content = page(lesson_links, home).encode()
    to.parent.mkdir(parents=True, exist_ok=True)
    write_aside(to, content)
    return len(content)


def page(lesson_links: str | None = None, home: str = "") -> str:
    """The whole page as HTML; see `write`."""
    try:
        model, corpus = shipped.trained(MODEL)
    except ModelFileError as error:
        raise GlassError(str(error)) from error
    style = (PARTS / "style.css").read_text(encoding="utf-8")
    # One "use strict" at the top counts for all of them.
    script = "\n".join((PARTS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    sizes = settings(model)
    packed = pack(model, sizes)
    packed |= {"source": corpus.source_vocabulary.tokens, "target": corpus.target_vocabulary.tokens}
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string((PARTS / "page.html").read_text(encoding="utf-8")).render(
        policy=policy(style, script),
        style=style,
        script=script,
        data=json.dumps(packed, ensure_ascii=False).replace("<", "\\u003c"),
        settings=sizes,
        model=MODEL,
        parameters=f"{translators.size(model):,}".replace(",", "\N{NO-BREAK SPACE}"),
        lessons=lesson_titles(lesson_links),
        home=home,
    )


def lesson_titles(links: str | None) -> dict[str, dict[str, str]]:
    """The title of each lesson and the address of its page, by its two digits; see `write`."""
    found = {}
    for path in find():
        with path.open(encoding="utf-8") as lines:  # "# %% [markdown]", then the title
            title = next(line for line in lines if line.startswith("# # ")).strip()[4:]
        address = links.format(lesson=path.stem) if links else ""
        found[path.stem[:2]] = {"title": title, "address": address}
    return found


def settings(model: Any) -> dict[str, int]:
    """The sizes of a `Transformer` that the page's scripts and sentences need."""
    attention = model.encoder.layers[0].attention
    return {
        "d_model": model.source_embedding.embedding_dim,
        "n_heads": attention.n_heads,
        "d_head": attention.d_head,
        "n_layers": len(model.encoder.layers),
    }


def pack(model: nn.Module, sizes: dict[str, int]) -> dict[str, Any]:
    """A model as data for JSON: its sizes, where each tensor stands, and all numbers in base64.

    The numbers are little-endian float32, one tensor after the other; a vector is one row.
    """
    tensors, numbers, first = [], b"", 0
    for name, parameter in model.named_parameters(remove_duplicate=False):
        rows, cols = parameter.shape if parameter.dim() == 2 else (1, len(parameter))
        tensors.append({"name": name, "rows": rows, "cols": cols, "first": first})
        numbers += parameter.detach().numpy().astype(np.dtype("<f4")).tobytes()
        first += rows * cols
    return {
        "settings": sizes,
        "tensors": tensors,
        "numbers": base64.b64encode(numbers).decode(),
    }


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy: this style and this script, and nothing from anywhere."""
    allowed = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    allowed |= {"style-src": _digest(style), "script-src": _digest(script)}
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
