"""German numbers cut into the parts that they are made of: the tokens of BLEU in lesson 14."""

import re

PARTS = (
    "zwanzig dreißig hundert tausend sieben sechs zwölf eins fünf vier drei zwei acht neun zehn "
    "null sech sieb ein elf und zig"
)
PIECE = re.compile("|".join([*PARTS.split(), "."]))  # as the lesson cuts them


def pieces_of(text: str) -> list[str]:
    """Return the parts of a number in words; a letter that is in none of them stands alone.

    >>> pieces_of("zweihunderteinunddreizig")
    ['zwei', 'hundert', 'ein', 'und', 'drei', 'zig']
    """
    return PIECE.findall(text)
