"""What a notebook was called before a browser, a desktop or a mail program renamed it."""

import re

NOTEBOOK = re.compile(r"\.ipynb(?:\.(?:txt|json))?$", re.IGNORECASE)
BEFORE = re.compile(r"^(?:copy of|kopie von|copie de|copia de|copia di) ", re.IGNORECASE)
# "x (1)" a download, "x-2" a repeated hand-in in Canvas, "x-Copy1" Jupyter, "x - Copy (2)" Windows
AFTER = re.compile(
    r"(?: ?\((?P<browser>\d{1,4})\)|-(?P<canvas>\d{1,3})|-copy(?P<jupyter>\d{0,4})"
    r"|(?: - | )(?:copy|kopie|copie|copia)(?: ?\(?(?P<desktop>\d{1,4})\)?)?)$",
    re.IGNORECASE,
)


def is_notebook(name: str) -> bool:
    """Whether a file is called like a notebook; some mail programs add .txt or .json."""
    return bool(NOTEBOOK.search(name))


def original(name: str) -> tuple[str, tuple[int, ...]]:
    """Pair (name without its ending and without what was added, the numbers that were added).

    The numbers of a later copy are greater: 'a.ipynb' has (), 'a (1).ipynb' (1,), 'a-2.ipynb' (2,).

    >>> original("a-2 (1).ipynb")
    ('a', (2, 1))
    """
    stem = NOTEBOOK.sub("", name)
    numbers: list[int] = []
    while (found := AFTER.search(stem)) and found.start():
        numbers.insert(0, int(next(filter(None, found.groups()), "1")))
        stem = stem[: found.start()]
    while found := BEFORE.search(stem):
        numbers.insert(0, 1)
        stem = stem[found.end() :]
    return stem.strip(), tuple(numbers)
