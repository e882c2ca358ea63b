"""A page in which a shipped model runs: one file that holds all it needs, and asks for nothing.

Data, styles and scripts of book/glass/ or book/writer/ become one file, with a policy that lets
nothing else run or be loaded.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from torch import Tensor

from autograder import ROOT, CourseError
from autograder.building.lesson import find
from autograder.files import write_aside

BOOK = ROOT / "book"
HTML = BOOK / "_build" / "html"  # where the book has such pages, too


class GlassError(CourseError):
    """The page cannot be made like this; str() says why, and what to do."""


def write(to: Path, name: str, page: Callable[[], str]) -> int:
    """Make a page and write it to a file, whose folder is made; returns its size in bytes.

    Raises GlassError for a folder in place of the file; ``name`` would be one in it.
    """
    if to.is_dir():
        raise GlassError(f"{to} is a folder: name the file to write, as in {to / name}")
    packed = page().encode()
    to.parent.mkdir(parents=True, exist_ok=True)
    write_aside(to, packed)
    return len(packed)


def render(
    template: Path,
    styles: Iterable[Path],
    scripts: Iterable[Path],
    data: dict[str, Any],
    lesson_links: str | None,
    **values: Any,
) -> str:
    """The whole page as HTML.

    scripts       in the order in which they build on each other; they share one scope
    data          what the scripts find in the element #data
    lesson_links  the address of a lesson's page, with {lesson} for its name, as in
                  "{lesson}.html" for 10_transformer.html; None: lessons are named and not linked
    values        what else the template asks for
    """
    style, script = (
        "\n".join(path.read_text(encoding="utf-8") for path in paths) for paths in (styles, scripts)
    )
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        policy=policy(style, script),
        style=style,
        script=script,  # one "use strict" at the top counts for all of them
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
        lessons=lesson_titles(lesson_links),
        **values,
    )


def lesson_titles(links: str | None) -> dict[str, dict[str, str]]:
    """The title of each lesson and the address of its page, by its two digits; see `render`."""
    found = {}
    for path in find():
        with path.open(encoding="utf-8") as lines:  # "# %% [markdown]", then the title
            title = next(line for line in lines if line.startswith("# # ")).strip()[4:]
        address = links.format(lesson=path.stem) if links else ""
        found[path.stem[:2]] = {"title": title, "address": address}
    return found


def pack(
    weights: Iterable[tuple[str, Tensor]], sizes: dict[str, int], bits: int = 32
) -> dict[str, Any]:
    """A model as data for JSON: its sizes, where each tensor stands, and all numbers in base64.

    The numbers are little-endian floats of 32 or 16 bits, one tensor after the other; a vector is
    one row.
    """
    tensors, numbers, first = [], b"", 0
    for name, parameter in weights:
        rows, cols = parameter.shape if parameter.dim() == 2 else (1, len(parameter))
        tensors.append({"name": name, "rows": rows, "cols": cols, "first": first})
        numbers += parameter.detach().numpy().astype(np.dtype(f"<f{bits // 8}")).tobytes()
        first += rows * cols
    return {
        "settings": sizes,
        "bits": bits,
        "tensors": tensors,
        "numbers": base64.b64encode(numbers).decode(),
    }


def grouped(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}".replace(",", "\N{NO-BREAK SPACE}")


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy: this style and this script, and nothing from anywhere."""
    allowed = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    allowed |= {"style-src": _digest(style), "script-src": _digest(script)}
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
