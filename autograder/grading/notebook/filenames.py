"""What a file or a folder is called, and was before a browser or a mail program renamed it."""

import re
import unicodedata

NOTEBOOK = re.compile(r"\.ipynb(?:\.(?:txt|json))?$", re.IGNORECASE)
# "x (1)" a browser's copy, "x-2" a repeated hand-in in Canvas, "x-Copy1" Jupyter's
AFTER = re.compile(r"(?: ?\((\d{1,4})\)|-(\d{1,3})|-copy(\d{0,4}))$", re.IGNORECASE)

LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ß": "ss"}
)
# Control characters, halves of letters, ends of lines, and what turns the order of others around.
NO_NAME = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")
MARKUP = re.compile('[<>"]')  # nbgrader's pages put the id of a student in as it is
LONGEST_ID = 128  # characters, in nbgrader's gradebook


def plain(text: str) -> str:
    """``text`` in small letters and digits only: without accents, blanks and punctuation.

    Letters that only look alike, as those of full width, stay others: they may name somebody else.
    """
    text = text.lower().translate(LETTERS)
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if letter.isalnum())


def not_an_id(name: str) -> str:
    """Why a folder so called cannot be a student's, or ''.

    Letters, blanks and nearly all signs of any script can: nbgrader and the gradebook take them.
    """
    if NO_NAME.search(name):
        return "it holds characters that are no text"
    if MARKUP.search(name):
        return "nbgrader's pages would take a part of it for HTML"
    if name.startswith("."):
        return "it begins with a dot, and nbgrader passes over it"
    return "it is too long for the gradebook" if len(name) > LONGEST_ID else ""


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
    return stem.strip(), tuple(numbers)
