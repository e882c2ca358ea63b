"""The glass translator: the shipped Transformer of lesson 10 in one page that asks for nothing.

Below it the small BERT of lesson 19 reads a sentence. The page's parts are in `book/glass/`.
"""

from pathlib import Path
from typing import Any

from attention.pages import glass_page
from attention.pages.glass_page import BOOK, HTML, GlassError, grouped, pack, render
from attention.provided.models import translators
from attention.provided.models.bert import files
from attention.provided.models.model_file import ModelFileError
from attention.train import shipped

PARTS = BOOK / "glass"
PAGE = HTML / "glass.html"
MODEL = "transformer"  # that of lesson 10, in data/checkpoints/
# In the order in which they build on each other; they share one scope.
SCRIPTS = (
    *("model", "bert", "decoding", "numbers", "explain", "heat", "layers", "search", "view"),
    "sentence",
)
# What can be chosen as a sentence, and those of which the nearest is found: the stand-in was
# trained on docstrings.
EXAMPLES = (
    "turn a string into a date",
    "How can I compress bytes?",
    "The café is closed at 9.",
)
OTHERS = (
    "Return the number of items in a list.",
    "Convert a string to a datetime object.",
    "Open a file and read its lines.",
    "Wait until the thread has finished.",
    "Compress the data.",
    "Raise an error if the value is not valid.",
    "Remove an item from the dictionary.",
    "Send a request to the server.",
)


def write(
    to: Path = PAGE, lesson_links: str | None = None, home: str = "", writer: str = ""
) -> int:
    """Write the page to a file, whose folder is made; returns its size in bytes.

    lesson_links  see `glass_page.render`
    home          the address of the course's first page, or ''
    writer        the address of the writer's page, or ''

    Raises GlassError for a folder in place of the file, or if the model's file is missing or
    damaged.
    """
    return glass_page.write(to, PAGE.name, lambda: page(lesson_links, home, writer))


def page(lesson_links: str | None = None, home: str = "", writer: str = "") -> str:
    """The whole page as HTML; see `write`."""
    try:
        model, corpus = shipped.trained(MODEL)
        bert = files.small()
    except ModelFileError as error:
        raise GlassError(str(error)) from error
    sizes = settings(model)
    packed = pack(model.named_parameters(remove_duplicate=False), sizes)
    packed["bert"] = pack(bert.weights.items(), {"n_heads": bert.n_heads}, bits=16)
    packed["bert"] |= {"pieces": bert.vocabulary, "others": OTHERS}
    packed |= {"source": corpus.source_vocabulary.tokens, "target": corpus.target_vocabulary.tokens}
    return render(
        PARTS / "page.html",
        [PARTS / "style.css"],
        [PARTS / f"{name}.js" for name in SCRIPTS],
        packed,
        lesson_links,
        settings=sizes,
        model=MODEL,
        parameters=grouped(translators.size(model)),
        bert={
            "parameters": grouped(sum(weight.numel() for weight in bert.weights.values())),
            "n_heads": bert.n_heads,
            "d_head": bert.sizes["d_model"] // bert.n_heads,
            "examples": EXAMPLES,
            "file": files.STAND_IN.stem,
        },
        home=home,
        writer=writer,
    )


def settings(model: Any) -> dict[str, int]:
    """The sizes of a `Transformer` that the page's scripts and sentences need."""
    attention = model.encoder.layers[0].attention
    return {
        "d_model": model.source_embedding.embedding_dim,
        "n_heads": attention.n_heads,
        "d_head": attention.d_head,
        "n_layers": len(model.encoder.layers),
    }
