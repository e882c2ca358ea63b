"""Where a head with some role would look: at a neighbour, or at the word that is being written."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attention.provided import demand
from attention.provided.data import Batch

ENGLISH = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
    ninety hundred thousand zero""".split()  # noqa: SIM905
GERMAN = """ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn
    fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig
    achtzig neunzig hundert tausend null""".split()  # noqa: SIM905
WORD = re.compile("|".join(sorted([*GERMAN, "eins", "und"], key=len, reverse=True)))


def alignment(source: str, target: str) -> list[int | None]:
    """Say of each German letter which English word it belongs to; "und" has none.

    >>> alignment("twenty one", "einundzwanzig")[:7]
    [1, 1, 1, None, None, None, 0]
    """
    words = source.split()
    free: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        free.setdefault(word, []).append(number)
    letters: list[int | None] = []
    for piece in WORD.findall(target):
        place: int | None = None
        if piece != "und":
            place = free[ENGLISH[GERMAN.index("ein" if piece == "eins" else piece)]].pop(0)
        letters += [place] * len(piece)
    return letters


def offset_role(mask: Tensor, offset: int) -> Tensor:
    """Where a head looks that looks so many positions further: -1 is the previous token.

    mask     bool (B, T_q, T_q)  True = may attend
    returns  bool (B, T_q, T_q)

    Raises ValueError for a mask that is not bool.
    """
    demand.masks(mask=mask)
    places = torch.arange(mask.shape[-1])
    return (places[:, None] + offset == places) & mask


def uniform(mask: Tensor) -> Tensor:
    """Equal weights on all that may be looked at, as of one head: (B, 1, T_q, T_k).

    mask  bool (B, T_q, T_k)

    Raises ValueError for a mask that is not bool.
    """
    demand.masks(mask=mask)
    return (mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)).unsqueeze(1)


def aligned_role(pairs: Sequence[Any], batch: Batch, first: bool) -> Tensor:
    """Where a head looks that looks at the word which is being written: bool (B, T_q, T_k).

    first  True: only at the first letters of a word; False: only at the others
    """
    role = torch.zeros(*batch.target.shape, batch.source.shape[1], dtype=torch.bool)
    for b, (_, source, target) in enumerate(pairs):
        words = alignment(source, target)
        for t, word in enumerate(words):
            if word is not None and first == (t == 0 or words[t - 1] != word):
                role[b, t, word] = True
    return role
