"""Held-out numbers that a translator is to write in German, and what was written as texts."""

from collections.abc import Iterable

from torch import Tensor

from attention.provided.data import Corpus
from attention.provided.descent import fewer


def long_numbers(corpus: Corpus, each: int = 20) -> tuple[Tensor, list[str]]:
    """Return held-out numbers of three to six digits: ids (B, T_k), and the texts that are wanted.

    each  how many of every length; the short ones come first

    While nbgrader runs the notebook, there are 2 of every length.
    """
    groups = corpus.test_by_digits(fewer(each, 2))
    pairs = [pair for digits, some in groups.items() if digits > 2 for pair in some]
    return corpus.batch(pairs).source, [pair[2] for pair in pairs]


def texts_of(corpus: Corpus, ids: Iterable[Tensor]) -> list[str]:
    """Return the German texts of rows of ids, (B, T), each up to its EOS."""
    return ["".join(corpus.target_vocabulary.decode(row)) for row in ids]


def share_right(texts: list[str], wanted: list[str]) -> float:
    """Return the share of the texts that are without any error."""
    return sum(one == two for one, two in zip(texts, wanted, strict=True)) / len(texts)
