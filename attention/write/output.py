"""Texts on their way to the terminal: bytes become characters as soon as they are whole."""

import codecs
import json
import sys
from collections.abc import Sequence

from attention.train.corpora.texts import TextPieces

CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class Streams:
    """Decodes several texts that grow side by side, and prints the first as it grows.

    pieces  TextPieces
    count   how many texts
    show    print the first; the others are printed by `finish`
    """

    def __init__(self, pieces: TextPieces, count: int, show: bool):
        self.pieces, self.show = pieces, show
        decoder = codecs.getincrementaldecoder("utf-8")
        self.decoders = [decoder("replace") for _ in range(count)]
        self.texts = [""] * count

    def see(self, text: int, token: int) -> None:
        """Take the next token of a text."""
        self._add(text, self.pieces.bytes[token])

    def _add(self, text: int, content: bytes, final: bool = False) -> None:
        """Half a character waits for its other half; at the end it becomes U+FFFD."""
        new = self.decoders[text].decode(content, final)
        self.texts[text] += new
        if self.show and text == 0 and new:
            print(printable(new), end="", flush=True)

    def finish(self) -> list[str]:
        """All texts, whole."""
        for text in range(len(self.texts)):
            self._add(text, b"", final=True)
        return self.texts


def printable(text: str) -> str:
    """A text without what steers a terminal, such as the sequences that begin with ESC."""
    return text.translate(CONTROLS)


def title(number: int, count: int) -> None:
    """Print which of several texts follows."""
    if count > 1:
        print(f"--- {number} of {count} ---", flush=True)


def as_json(prompt: str, texts: Sequence[str], tokens: Sequence[int], length: int) -> None:
    """Print a line for each text; it ended if the model ended it, before it was long enough."""
    for number, (text, count) in enumerate(zip(texts, tokens, strict=True), 1):
        row = {"number": number, "prompt": prompt, "text": text, "tokens": count}
        json.dump(row | {"ended": count < length}, sys.stdout, ensure_ascii=False)
        print(flush=True)
