"""Texts of one's own, for `python -m attention.train text FILES…`: one stretch of token ids."""

import codecs
import functools
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from attention.provided.data.tokens import EOS, SPECIAL
from attention.provided.files import utf_8
from attention.tokens_and_positions import bpe_encode, split_words
from attention.train.corpora.token_ids import Pieces, learned_merges
from attention.train.runs.settings import Settings
from autograder.terminal_output import readable

LARGEST = 64  # MB of all texts together: more would take too long to encode
LONGEST = 2000  # letters of a word: encoding takes the square of it
SHARE, MOST = 0.1, 200_000  # of the characters, those that are held out


class TextPieces(Pieces):
    """A byte-level BPE vocabulary for texts of many lines; the ids are those of `Pieces`."""

    def encode(self, text: str) -> list[int]:
        """Return the text's ids, without EOS."""
        words = split_words(text)
        if (longest := max(map(len, words), default=0)) > LONGEST:
            raise ValueError(f"it has a word of {longest} characters: is it a text?")
        self.learn(words)
        for word in set(words) - self.ids.keys():  # those with the end of a line in them
            self.ids[word] = [len(SPECIAL) + index for index in bpe_encode(word, self.merges)]
        return [index for word in words for index in self.ids[word]]

    @functools.cached_property
    def bytes(self) -> list[bytes]:
        """What each id stands for; nothing for the special ones, which have no bytes."""
        tokens = [bytes([byte]) for byte in range(256)]
        for left, right in self.merges:
            tokens.append(tokens[left] + tokens[right])
        return [b""] * len(SPECIAL) + tokens


@dataclass
class Text:
    """A text, cut into passages of `length` tokens and one more, with which the next one begins.

    train, held_out  the text to learn from, parts that EOS separates; and what is left for
                     validation, likewise
    ids              {"train" | "val": list of passages, lists of ids}
    """

    pieces: TextPieces
    train: list[str]
    held_out: list[str]
    length: int
    files: list[str]
    notes: list[str]
    sha256: str
    metric: str = "nats per token"
    ids: dict[str, list[list[int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = {}
        for split, parts in (("train", self.train), ("val", self.held_out)):
            joined: list[int] = []
            for number, part in enumerate(parts):
                joined += ([EOS] if number else []) + self.pieces.encode(part)
            starts = range(0, len(joined) - 1, self.length)
            self.ids[split] = [joined[start : start + self.length + 1] for start in starts]

    @property
    def characters(self) -> int:
        """How many are held out."""
        return sum(map(len, self.held_out))

    def description(self) -> dict[str, Any]:
        """What is needed to write with the model, and to know the text again, for json."""
        return {
            "pieces": self.pieces.description(),
            "files": self.files,
            "sha256": self.sha256,
        }


Corpus = Any  # Pairs or Text: each task knows its own


def read(files: Sequence[str], settings: Settings, kept: dict[str, Any]) -> Text:
    """Read the texts of a training, and learn the merges.

    files  their paths; none: those of `kept`
    kept   {}, or the description of the text with which the training began
    raises ValueError, in one sentence, if they cannot be read, are too short or too long, or others
    """
    paths = list(files) or kept.get("files", [])
    if not paths:
        raise ValueError("text needs FILES to learn from: python -m attention.train text notes.md")
    texts = _texts(paths)
    total = sum(map(len, texts))
    sha256 = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    if kept and kept.get("sha256") != sha256:
        raise ValueError(
            f"{', '.join(paths)}: the text is not the one with which this training began; resume "
            "with the same files, or train in another --folder"
        )
    train, held_out, where = _hold_out(texts, paths)
    merges = kept["pieces"]["merges"] if kept else learned_merges(train, settings.merges)
    notes = [
        f"held out for validation: the last {readable(sum(map(len, held_out)))} of "
        f"{readable(total)} characters, from {where} on"
    ]
    try:
        text = Text(TextPieces(merges), train, held_out, settings.length, paths, notes, sha256)
    except ValueError as error:
        raise ValueError(f"{', '.join(paths)}: {error}") from None
    _demand_enough(text, total)
    return text


def _demand_enough(text: Text, total: int) -> None:
    tokens = sum(len(passage) - 1 for passage in text.ids["train"]) + 1
    if tokens <= text.length or not text.ids["val"]:
        raise ValueError(
            f"the text has {readable(total)} characters, of which {readable(tokens)} tokens are to "
            f"learn from: --length {text.length} needs at least {text.length + 1}; add text, or "
            "choose a shorter --length"
        )


def _texts(paths: Iterable[str]) -> list[str]:
    """The texts of some files, with "\\n" at the end of each line."""
    found, left = [], int(LARGEST * 10**6)
    for path in paths:
        try:
            with open(path, "rb") as file:
                content = file.read(left + 1)  # and no more: it may never end
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from None
        if (left := left - len(content)) < 0:
            raise ValueError(
                f"{path}: with it the texts have more than {LARGEST} MB: train with a part"
            )
        text = decode(content, path)
        if not text.strip():
            raise ValueError(f"{path} is empty: leave it out")
        if text in found:  # what is held out of one would be learned from the other
            raise ValueError(f"{path} has the same text as another file: leave it out")
        found.append(text)
    return found


def decode(content: bytes, place: str, line: int = 1) -> str:
    """The text of some bytes in UTF-8, with "\\n" at the end of each line; else ValueError.

    place, line  where they are: what has them, and the number of their first line in it
    """
    if b"\0" in content or content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(
            f"{place} is no text in UTF-8, for it has bytes of 0: UTF-16, as PowerShell's > writes "
            "it, becomes UTF-8 with iconv -f UTF-16 -t UTF-8"
        )
    try:
        text = utf_8(content, line)
    except ValueError as error:
        raise ValueError(f"{place} is not UTF-8: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _hold_out(texts: Sequence[str], paths: Sequence[str]) -> tuple[list[str], list[str], str]:
    """Cut off the last part of all texts: what is before it, what is in it, and where it begins."""
    total = sum(map(len, texts))
    left = total - min(MOST, int(SHARE * total))
    for number, text in enumerate(texts):
        if left <= len(text):
            train, held_out = [*texts[:number], text[:left]], [text[left:], *texts[number + 1 :]]
            held_out = [part for part in held_out if part]
            return train, held_out, f"character {readable(left + 1)} of {paths[number]}"
        left -= len(text)
    raise AssertionError("the cut is in one of the texts")
