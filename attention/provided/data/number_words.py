"""Numbers in words, word by word: which letters are whose, and numbers with a word exchanged."""

import re
from collections.abc import Sequence

from attention.provided.data.numbers import in_words

ENGLISH = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
    ninety hundred thousand zero""".split()  # noqa: SIM905
GERMAN = """ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn
    fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig
    achtzig neunzig hundert tausend null""".split()  # noqa: SIM905
WORD = re.compile("|".join(sorted([*GERMAN, "eins", "und"], key=len, reverse=True)))
VALUES = dict(zip(ENGLISH, [*range(1, 20), *range(20, 100, 10), 100, 1000, 0], strict=True))


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


def kinds(number: int) -> tuple[str, ...]:
    """Name the kinds of a number's English words, up to 999 999.

    >>> kinds(931)
    ('digit', 'hundred', 'tens', 'digit')
    """
    named = dict.fromkeys(ENGLISH[:9], "digit") | dict.fromkeys(ENGLISH[19:27], "tens")
    return tuple(named.get(word, word) for word in in_words(number, "en").split())


def exchanged(number: int, other: int, places: Sequence[int]) -> int:
    """Put some words of another number, which has the same kinds of words, into a number.

    A place behind the last word changes nothing.

    >>> exchanged(931, 139, [3]), exchanged(52_000, 31_000, [0])
    (939, 32000)
    """
    words, others = (in_words(n, "en").split() for n in (number, other))
    total = group = 0
    for place, pair in enumerate(zip(words, others, strict=True)):
        word = pair[place in places]
        if word == "thousand":
            total, group = 1000 * group, 0
        else:
            group = 100 * group if word == "hundred" else group + VALUES[word]
    return total + group
