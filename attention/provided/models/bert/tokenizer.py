"""A text becomes the ids that a BERT reads: words first, then pieces of words, then their ids.

The words are those of BERT's own reader for models in lower case. How a word is cut into pieces
comes in as a function: it is an exercise of lesson 19.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence

from torch import Tensor

from attention.provided.data.tokens import PAD, pad

UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100  # letters; a longer word is unknown as a whole

Cut = Callable[[str, dict[str, int]], Sequence[str]]  # word, {piece: id} -> pieces


def words_of(text: str, lower: bool = True) -> list[str]:
    """Cut a text at spaces, and around every punctuation mark and every Chinese character.

    text   any text; what is no visible character counts as nothing, or as a space
    lower  write it in lower case and without accents, as uncased models read it

    >>> words_of("Café au lait, isn't it?")
    ['cafe', 'au', 'lait', ',', 'isn', "'", 't', 'it', '?']
    """
    shown = "".join(_kept(character) for character in text)
    if lower:
        shown = unicodedata.normalize("NFD", shown.lower())
        shown = "".join(c for c in shown if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if _is_punctuation(c) else c for c in shown).split()


def _kept(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co"):
        return ""
    return f" {character} " if _is_chinese(character) else character


def _is_chinese(character: str) -> bool:
    code = ord(character)
    blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B81F))
    more = ((0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(low <= code <= high for low, high in blocks + more)


def _is_punctuation(character: str) -> bool:
    """Say whether it stands alone; of ASCII, all that is neither letter nor digit does."""
    if character.isascii():
        return character.isprintable() and not (character.isalnum() or character == " ")
    return unicodedata.category(character).startswith("P")


class WordPieceTokenizer:
    """Texts to ids, with a vocabulary that was made for it and a function that cuts words.

    vocabulary  the pieces, in the order of their ids; [PAD] is the first
    cut         (word, {piece: id}) -> pieces of the vocabulary, or ["[UNK]"]

    Raises ValueError for a vocabulary without [PAD], [UNK], [CLS] or [SEP].
    """

    def __init__(self, vocabulary: Sequence[str], cut: Cut):
        self.vocabulary, self.cut = list(vocabulary), cut
        self.ids = {piece: number for number, piece in enumerate(self.vocabulary)}
        missing = [one for one in (UNKNOWN, FIRST, LAST) if one not in self.ids]
        if missing or self.ids.get("[PAD]") != PAD:
            raise ValueError(f"the vocabulary lacks {', '.join(missing) or '[PAD] as its first'}")

    def pieces(self, text: str, lower: bool = True) -> list[str]:
        """Return the pieces of a text, without [CLS] and [SEP]."""
        found: list[str] = []
        for word in words_of(text, lower):
            known = len(word) <= LONGEST_WORD
            found += self.cut(word, self.ids) if known else [UNKNOWN]
        return found

    def encode(self, text: str, max_length: int, lower: bool = True) -> list[int]:
        """Return the ids of a text between [CLS] and [SEP], at most max_length in all."""
        inner = [self.ids[piece] for piece in self.pieces(text, lower)][: max_length - 2]
        return [self.ids[FIRST], *inner, self.ids[LAST]]

    def batch(self, texts: Iterable[str], max_length: int = 256, lower: bool = True) -> Tensor:
        """Return the ids of texts, filled up with PAD: (B, T), int64."""
        return pad([self.encode(text, max_length, lower) for text in texts])
