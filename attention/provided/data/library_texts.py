"""Docstrings as rows of word ids, and from which library each of them is.

The texts are those of `docstrings`, cut after 32 words; no near twin is in both sets.
"""

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from attention.provided.data import docstrings
from attention.provided.data.tokens import PAD

LIBRARIES = ("python", "numpy", "torch")
LENGTH, VOCABULARY = 32, 2000  # words of a text; ids
MASK, UNKNOWN = 1, 2  # ids beside PAD


class Texts(NamedTuple):
    """Ids (B, LENGTH), filled up with PAD, and for each text the place of its library (B,)."""

    ids: Tensor
    library: Tensor


@functools.cache
def load() -> tuple[Texts, Texts, list[str]]:
    """Return the texts to train and to test, and the words by id: the most frequent ones."""
    train, test = docstrings.split(docstrings.load())
    known = Counter(word for row in train for word in in_words(row))
    words = ["<pad>", "[MASK]", "[UNK]", *(w for w, _ in known.most_common(VOCABULARY - 3))]
    ids = {word: number for number, word in enumerate(words)}
    return _texts(train, ids), _texts(test, ids), words


def in_words(row: docstrings.Docstring) -> list[str]:
    """Cut a docstring into its first words, in lower case; a sign is a word, too."""
    text = f"{row.summary} {row.body}".lower()
    return re.findall(r"[a-z]+|\d+|[^\w\s]", text)[:LENGTH]


def _texts(rows: Sequence[docstrings.Docstring], ids: dict[str, int]) -> Texts:
    """The rows as ids; words that are not in the vocabulary are UNKNOWN."""
    read = torch.full((len(rows), LENGTH), PAD)
    for place, row in zip(read, rows, strict=True):
        found = [ids.get(word, UNKNOWN) for word in in_words(row)]
        place[: len(found)] = torch.tensor(found)
    return Texts(read, torch.tensor([LIBRARIES.index(row.module.split("/")[0]) for row in rows]))
