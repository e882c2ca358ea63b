"""Corpora as lists of token ids, for `python -m attention.train`: the numbers, and Multi30k."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attention.provided.data.numbers import CACHE, split, store
from attention.provided.data.numbers import numbers as numbers_in_words
from attention.provided.data.tokens import EOS, SPECIAL
from attention.provided.data.tokens import Vocabulary as TokenList
from attention.tokens_and_positions import (
    bpe_decode,
    bpe_encode,
    count_words,
    split_words,
    train_bpe,
)
from attention.train.corpora import multi30k

NAMES = ("numbers", "multi30k", "text")
Merges = list[Sequence[int]]  # pairs of tokens


class Words:
    """A vocabulary of whole words or characters: text to ids and back.

    tokens  list of str, without the special ones
    unit    "words" or "characters"
    """

    def __init__(self, tokens: Iterable[str], unit: str):
        self.vocabulary, self.unit = TokenList(tokens), unit

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the text's ids, and EOS after them."""
        return self.vocabulary.encode(split(text, self.unit))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text before the first EOS."""
        return (" " if self.unit == "words" else "").join(self.vocabulary.decode(ids))

    def description(self) -> dict[str, Any]:
        """What is needed to make it again, for json."""
        return {"kind": "words", "unit": self.unit, "tokens": self.vocabulary.tokens}


class Pieces:
    """A byte-level BPE vocabulary for single lines: text to ids and back.

    merges  list of pairs, from `train_bpe`

    The special ids come first, so an id is larger by 3 than in lesson 08.
    """

    def __init__(self, merges: Merges):
        self.merges = [tuple(pair) for pair in merges]
        self.ids: dict[str, list[int]] = {}  # of each word that was met

    def __len__(self) -> int:
        return len(SPECIAL) + 256 + len(self.merges)

    def encode(self, text: str) -> list[int]:
        """Return the text's ids, and EOS after them."""
        words = split_words(text)
        self.learn(words)
        return [index for word in words for index in self.ids[word]] + [EOS]

    def learn(self, words: Iterable[str]) -> None:
        """Encode the words that are new, in one go: `encode` is quick for them then."""
        new = sorted({word for word in words if word not in self.ids and "\n" not in word})
        if not new:
            return
        encoded: list[list[int]] = [[]]
        for index in bpe_encode("\n".join(new), self.merges):  # no token crosses a line's end
            if index == ord("\n"):
                encoded.append([])
            else:
                encoded[-1].append(len(SPECIAL) + index)
        self.ids.update(zip(new, encoded, strict=True))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text before the first EOS; bytes that are no UTF-8 become U+FFFD."""
        ids = list(map(int, ids))
        ids = ids[: ids.index(EOS)] if EOS in ids else ids
        kept = [index - len(SPECIAL) for index in ids if index >= len(SPECIAL)]
        return str(bpe_decode(kept, self.merges))

    def description(self) -> dict[str, Any]:
        """What is needed to make it again, for json."""
        return {"kind": "pieces", "merges": self.merges}


Vocabulary = Words | Pieces


def vocabulary(description: dict[str, Any]) -> Vocabulary:
    """Make the vocabulary again that a `description` describes."""
    if description["kind"] == "pieces":
        return Pieces(description["merges"])
    return Words(description["tokens"], description["unit"])


@dataclass
class Pairs:
    """Pairs of texts in three splits, with their ids.

    source, target  the vocabularies; one and the same object if they share it
    texts           {"train" | "val" | "test": list of (source text, target text)}
    ids             likewise: list of (source ids, target ids), EOS at the end of each
    metric          "BLEU" or "exact match": how translations are judged
    """

    name: str
    metric: str
    source: Vocabulary
    target: Vocabulary
    texts: dict[str, list[tuple[str, str]]]
    ids: dict[str, list[tuple[list[int], list[int]]]] = field(init=False)
    notes: list[str] = field(default_factory=list)  # what is said of them before a training

    def __post_init__(self) -> None:
        self.ids = {
            split: [(self.source.encode(a), self.target.encode(b)) for a, b in pairs]
            for split, pairs in self.texts.items()
        }

    def description(self) -> dict[str, Any]:
        """What is needed to make the vocabularies again, for json."""
        return {"source": self.source.description(), "target": self.target.description()}


def numbers(n_train: int = 20_000) -> Pairs:
    """The numbers of lessons 02 to 10; of the held-out ones, half are for validation."""
    corpus = numbers_in_words(n_train)
    held_out = [(source, target) for _, source, target in corpus.test]
    texts = {
        "train": [(source, target) for _, source, target in corpus.train],
        "val": held_out[::2],
        "test": held_out[1::2],
    }
    source = Words(corpus.source_vocabulary.tokens, corpus.source_unit)
    target = Words(corpus.target_vocabulary.tokens, "characters")
    return Pairs("numbers", "exact match", source, target, texts)


def translations(n_merges: int, folder: Path = multi30k.FOLDER) -> Pairs:
    """Multi30k, tokenised and in lower case, cut into pieces that both languages share."""
    splits = {"train": "train", "val": "val", "test": "test_2016_flickr"}
    texts = {
        split: list(zip(*(multi30k.load(name, x, True, folder) for x in ("en", "de")), strict=True))
        for split, name in splits.items()
    }
    training = [text for pair in texts["train"] for text in pair]
    pieces = Pieces(learned_merges(training, n_merges))
    pieces.learn(word for text in training for word in split_words(text))
    return Pairs("multi30k", "BLEU", pieces, pieces, texts)


def learned_merges(texts: Sequence[str], n_merges: int) -> Merges:
    """Learn the merges, or read them from the cache: they take seconds to learn."""
    key = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    name = f"merges-{n_merges}-{key}.json"
    try:
        merges: Merges = json.loads((CACHE / name).read_text())
        return merges
    except (OSError, ValueError):
        words, counts = count_words(texts)
        merges = train_bpe(words, counts, n_merges)  # or a learner's, if in use
    store(name, json.dumps(merges))
    return merges
