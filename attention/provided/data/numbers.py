"""The numbers corpus: numbers in words, English (or French) to German.

"two hundred thirty one" becomes "zweihunderteinunddreißig": real language, as much of it as one
wants, exactly checkable, and German says the ones before the tens. Whether a number belongs to
the test set is a property of the number alone, so no test number is trained on in any lesson.
`data/README.md` is the corpus's card.
"""

import functools
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from num2words import num2words

from attention.provided import demand
from attention.provided.data.tokens import Vocabulary, pad
from attention.provided.files import ROOT
from attention.provided.training_steps import fewer
from autograder.files import write_aside

CACHE = ROOT / ".cache"
VERSION = 1  # part of the cache's name: raise it when the corpus changes

Pair = Sequence[Any]  # number, source text, target text


def in_words(number: int, language: str) -> str:
    """Write a number from 0 to 999 999 999 999 in words: lower case, no hyphens, no "and".

    Raises ValueError for any other number.

    >>> in_words(231, "en"), in_words(231, "de"), in_words(99, "fr")
    ('two hundred thirty one', 'zweihunderteinunddreißig', 'quatre vingt dix neuf')
    """
    demand.counts(0, 10**12 - 1, number=number)
    # num2words needs 0.3 ms a number. Groups of three digits repeat, so each is asked for once.
    groups = [number // 1000**power % 1000 * 1000**power for power in (3, 2, 1, 0)]
    parts = [_group_in_words(group, language) for group in groups if group]
    if language == "de" and groups[2] and groups[3]:  # German joins thousands and hundreds
        parts[-2:] = [parts[-2] + parts[-1]]
    return " ".join(parts) or _group_in_words(0, language)


@functools.cache
def _group_in_words(number: int, language: str) -> str:
    text: str = num2words(number, lang=language).lower().replace("-", " ").replace(",", "")
    return text.replace(" and ", " ") if language == "en" else text


def is_test(number: int) -> bool:
    """Say whether a number belongs to the test set: one in ten does, in every lesson."""
    return int.from_bytes(hashlib.blake2b(str(number).encode(), digest_size=4).digest()) % 10 == 0


@dataclass(frozen=True)
class Batch:
    """Padded pairs: source (B, T_k), lengths (B,) of the sources, target (B, T_q); all int64.

    Sources and targets end in EOS, which the lengths count, and are filled up with PAD.
    """

    source: torch.Tensor
    lengths: torch.Tensor
    target: torch.Tensor

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on another device."""
        return Batch(self.source.to(device), self.lengths.to(device), self.target.to(device))


@dataclass(frozen=True)
class Corpus:
    """Pairs (number, source text, target text), split by number, and both vocabularies."""

    train: list[Pair]
    test: list[Pair]
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    source_unit: str

    def batch(self, pairs: Sequence[Pair]) -> Batch:
        """Return the pairs as one padded Batch; ValueError if there are none."""
        demand.counts(pairs=len(pairs))
        sources = [
            self.source_vocabulary.encode(split(text, self.source_unit)) for _, text, _ in pairs
        ]
        targets = [self.target_vocabulary.encode(text) for _, _, text in pairs]
        lengths = torch.tensor([len(ids) for ids in sources])
        return Batch(pad(sources), lengths, pad(targets))

    def batches(self, size: int, steps: int, seed: int = 0) -> Iterator[Batch]:
        """Yield ``steps`` random training batches; the same seed gives the same batches.

        Every number of digits is equally frequent, so that short numbers are not drowned by the
        many long ones. While nbgrader runs the notebook, there are 5 batches at most.
        """
        draw = random.Random(seed)
        of_length = list(_by_digits(self.train).values())
        for _ in range(fewer(steps)):
            yield self.batch([draw.choice(draw.choice(of_length)) for _ in range(size)])

    def test_by_digits(self, at_most: int) -> dict[int, list[Pair]]:
        """Return {number of digits: test pairs}, ``at_most`` so many of each length."""
        return {digits: pairs[:at_most] for digits, pairs in _by_digits(self.test).items()}


def _by_digits(pairs: Sequence[Pair]) -> dict[int, list[Pair]]:
    """Group pairs by the number of digits: {1: pairs, 2: pairs, …}."""
    found: dict[int, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(len(str(pair[0])), []).append(pair)
    return dict(sorted(found.items()))


def split(text: str, unit: str) -> list[str]:
    """Split a text into a list of "words" or "characters"."""
    return text.split() if unit == "words" else list(text)


def numbers(
    n_train: int = 20_000,
    n_test: int = 1_000,
    digits: int = 6,
    source: str = "en",
    unit: str = "words",
) -> Corpus:
    """Make the corpus, or read it from the cache: numbers of 1 to ``digits`` digits, to German.

    n_train, n_test  how many pairs at most; all lengths get an equal share, as far as there are
                     so many numbers of that length
    source           "en" or "fr"
    unit             how the source is split: "words" or "characters". German is characters.
    returns          a Corpus; the same arguments give the same one everywhere

    Raises ValueError for less than one pair or digit, or for more than 12 digits.
    """
    demand.counts(n_train=n_train, n_test=n_test)
    demand.counts(1, 12, digits=digits)
    name = f"numbers-{VERSION}-{source}-{digits}-{n_train}-{n_test}.json"
    pairs = _read(name) or _write(name, _make(n_train, n_test, digits, source))
    both = pairs["train"] + pairs["test"]
    words = {token for _, text, _ in both for token in split(text, unit)}
    letters = {letter for _, _, text in both for letter in text}
    return Corpus(pairs["train"], pairs["test"], Vocabulary(words), Vocabulary(letters), unit)


def _make(n_train: int, n_test: int, digits: int, source: str) -> dict[str, list[Pair]]:
    chosen: dict[str, list[int]] = {"train": [], "test": []}
    draw = random.Random(0)
    for left, length in zip(range(digits, 0, -1), range(1, digits + 1), strict=True):
        share = {
            part: (n - len(chosen[part])) // left
            for part, n in (("train", n_train), ("test", n_test))
        }
        found: dict[str, list[int]] = {"train": [], "test": []}
        for number in _shuffled(length, draw, sum(share.values())):
            part = "test" if is_test(number) else "train"
            if len(found[part]) < share[part]:
                found[part].append(number)
        for part in chosen:
            chosen[part] += found[part]
    return {
        part: [[n, in_words(n, source), in_words(n, "de")] for n in numbers]
        for part, numbers in chosen.items()
    }


def _shuffled(length: int, draw: random.Random, wanted: int) -> list[int]:
    """Return different numbers of this many digits in random order, enough to choose from."""
    low, high = (0 if length == 1 else 10 ** (length - 1)), 10**length
    return draw.sample(range(low, high), min(high - low, 12 * wanted))


def _read(name: str) -> dict[str, list[Pair]] | None:
    try:
        pairs: dict[str, list[Pair]] = json.loads((CACHE / name).read_text(encoding="utf-8"))
        return pairs
    except (OSError, ValueError):
        return None


def _write(name: str, pairs: dict[str, list[Pair]]) -> dict[str, list[Pair]]:
    store(name, json.dumps(pairs, ensure_ascii=False))
    return pairs


def store(name: str, text: str) -> None:
    """Keep a text in the cache."""
    try:
        CACHE.mkdir(exist_ok=True)
        write_aside(CACHE / name, text.encode())
    except OSError:
        pass  # a read-only installation makes it anew each time
