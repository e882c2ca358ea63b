"""The writer: the small decoder of lesson 20 goes on with a text, in a page that asks for nothing.

The page's parts are in `book/writer/`, and some of `book/glass/`.
"""

from pathlib import Path

from attention.pages import glass_page
from attention.pages.glass_page import BOOK, HTML, GlassError, grouped
from attention.provided.models.decoders import small_writer
from attention.provided.models.model_file import ModelFileError

PARTS, SHARED = BOOK / "writer", BOOK / "glass"
PAGE = HTML / "writer.html"
# In the order in which they build on each other; they share one scope.
SCRIPTS = (
    *(SHARED / f"{name}.js" for name in ("model", "heat")),
    *(PARTS / f"{name}.js" for name in ("tokens", "draw", "decoder", "show", "text", "writer")),
)
EXAMPLES = (
    "It is a truth universally acknowledged, that",
    "Emma was not",
    '"My dear Mr.',
    "The weather",
)


def write(
    to: Path = PAGE, lesson_links: str | None = None, home: str = "", translator: str = ""
) -> int:
    """Write the page to a file, whose folder is made; returns its size in bytes.

    lesson_links  see `glass_page.render`
    home          the address of the course's first page, or ''
    translator    the address of the glass translator's page, or ''

    Raises GlassError for a folder in place of the file, or if the model's file is missing or
    damaged.
    """
    return glass_page.write(to, PAGE.name, lambda: page(lesson_links, home, translator))


def page(lesson_links: str | None = None, home: str = "", translator: str = "") -> str:
    """The whole page as HTML; see `write`."""
    try:
        weights, about = small_writer.read()
    except ModelFileError as error:
        raise GlassError(str(error)) from error
    sizes = {name: int(small_writer.SIZES[name]) for name in ("d_model", "n_heads", "n_kv_heads")}
    sizes |= {"n_layers": small_writer.SIZES["n_layers"]}
    return glass_page.render(
        PARTS / "page.html",
        [SHARED / "style.css", PARTS / "style.css"],
        SCRIPTS,
        glass_page.pack(weights.items(), sizes, bits=16) | {"merges": about["merges"]},
        lesson_links,
        parameters=grouped(sum(weight.numel() for weight in weights.values())),
        vocabulary=grouped(small_writer.VOCABULARY),
        merges=len(about["merges"]),
        sizes=sizes,
        file=small_writer.PATH.stem,
        examples=EXAMPLES,
        home=home,
        translator=translator,
    )
