"""Docstrings of Python, numpy and PyTorch: name and body of a function, and its first line.

By convention (PEP 257) the first line of a docstring sums up the rest. So a body and its first line
are a text and a summary that somebody wrote. The card in data/README.md says how they were chosen.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from attention.provided.data.stored import read_stored
from attention.provided.files import ROOT

PATH = ROOT / "data" / "docstrings.json.gz"
SHA256 = "9f4ffdd0a83d5ec2893461d68baa6d625e2356a121436b7f91f90c83202af298"
WORDS = 64  # of each body
TWIN = 0.5  # rows that share at least this part of their 5-grams are near twins


class Docstring(NamedTuple):
    """One function or class; ``component`` is the same number for near twins, and theirs."""

    module: str  # as numpy/linalg/_linalg: where its text stands
    name: str
    summary: str
    body: str
    component: int


@cache
def load(path: Path = PATH) -> tuple[Docstring, ...]:
    """Return the stored docstrings, in the order of their modules.

    Raises ValueError if the file is not the one that belongs to the course.
    """
    return tuple(Docstring(*row) for row in read_stored(path, SHA256))


def is_test(key: str) -> bool:
    """Say whether rows with this key are for testing: a hash of it, about one in ten."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % 10 == 0


SPLITS: dict[str, Callable[[Docstring], str]] = {
    "at random": lambda row: f"{row.module} {row.name} {row.summary} {row.body}",
    "by name": lambda row: row.name,
    "by package": lambda row: row.module.rpartition("/")[0],
    "by component": lambda row: f"component {row.component}",
}


def split(
    rows: Iterable[Docstring], how: str = "by component"
) -> tuple[list[Docstring], list[Docstring]]:
    """Return the rows for training and those for testing; one key is in one of the two only.

    how  a name from SPLITS; a package is the folder in which a module stands
    """
    train: list[Docstring] = []
    test: list[Docstring] = []
    for row in rows:
        (test if is_test(SPLITS[how](row)) else train).append(row)
    return train, test


def grams(row: Docstring) -> frozenset[tuple[str, ...]]:
    """Return the runs of five words in the summary and the body."""
    words = re.findall(r"\w+", f"{row.summary} {row.body}".lower())
    return frozenset(zip(*(words[i:] for i in range(5)), strict=False))


def twins(rows: Sequence[Docstring]) -> list[tuple[int, int]]:
    """Return all pairs of places whose 5-grams have a Jaccard similarity of TWIN or more.

    The similarity is what both have divided by what at least one has. It is exact, and quick since
    rows without a common 5-gram are never compared.
    """
    sets, where = [grams(row) for row in rows], defaultdict(list)
    for place, found in enumerate(sets):
        for gram in found:
            where[gram].append(place)
    shared: Counter[tuple[int, int]] = Counter()
    for places in where.values():
        shared.update(combinations(places, 2))
    return sorted(
        (i, j)
        for (i, j), both in shared.items()
        if both >= TWIN * (len(sets[i]) + len(sets[j]) - both)
    )


def in_words(name: str) -> str:
    """Cut the name of a function or class into words.

    >>> in_words("_readHTTPHeader_line2")
    'read HTTP header line 2'
    """
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in found)


def first(row: Docstring, count: int) -> str:
    """Return the first ``count`` words of the body."""
    return " ".join(row.body.split()[:count])


RULES: dict[str, Callable[[Docstring], str]] = {
    "first 5 words of the body": lambda row: first(row, 5),
    "first 10 words of the body": lambda row: first(row, 10),
    "first 15 words of the body": lambda row: first(row, 15),
    "the name, as words": lambda row: in_words(row.name),
    "“Return the” and the name": lambda row: f"Return the {in_words(row.name)}",
}


@cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # it takes a second, and few need it

    return RougeScorer(["rougeL"])


def rouge_l(written: Iterable[str], rows: Iterable[Docstring]) -> list[float]:
    """Return the ROUGE-L of each text, beside the summary of its row: F1, from 0 to 1.

    Google's `rouge-score` computes it, in lower case and without stemming.
    """
    pairs = zip(written, rows, strict=True)
    return [_scorer().score(row.summary, text)["rougeL"].fmeasure for text, row in pairs]
