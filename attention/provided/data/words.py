"""Texts cut into words, and an index of the pairs in them: what a tokeniser learns from."""

import heapq
import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from types import ModuleType

Pair = tuple[int, int]

# Letters, digits, or other signs, each with one space before if there is one; then spaces.
WORD = re.compile(r" ?[^\W\d]+| ?\d+| ?[^\w\s]+|\s+(?!\S)|\s+")


def split_words(text: str) -> list[str]:
    """Cut a text into words: letters, digits or other signs, with the space before them.

    text     str
    returns  list of str that give the text again when joined

    Several spaces are one word; the last one goes to what follows.
    Raises ValueError for a lone surrogate: it is half a character and has no bytes.

    >>> split_words("It's 12 o'clock,  or not?")
    ['It', "'", 's', ' 12', ' o', "'", 'clock', ',', ' ', ' or', ' not', '?']
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text[{error.start}] = {text[error.start]!r} is a lone surrogate, half of a character"
        ) from None
    return WORD.findall(text)


def count_words(texts: Iterable[str]) -> tuple[list[list[int]], list[int]]:
    """Collect the words of many texts, as bytes, and count them.

    texts    an iterable of str
    returns  words, a list of lists of bytes (0 to 255); counts, a list of int: how often each is

    >>> count_words(["to be", "not to be"])
    ([[116, 111], [32, 98, 101], [110, 111, 116], [32, 116, 111]], [1, 2, 1, 1])
    """
    found = Counter(word for text in texts for word in split_words(text))
    return [list(word.encode("utf-8")) for word in found], list(found.values())


class PairIndex:
    """Knows how often each pair occurs in a collection of words, and where.

    A heap finds the most frequent pair without looking at all of them. Its outdated entries are
    noticed, and corrected, only when they come to the top.

    words   list of lists of ids; .words is a copy of it that may be changed
    counts  list of int: how often each word occurs
    """

    def __init__(self, words: Iterable[Iterable[int]], counts: Iterable[int]):
        self.words, self.counts = [list(word) for word in words], list(counts)
        self.totals: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[int]] = defaultdict(set)
        self.queue: list[tuple[int, Pair]] = []
        self.queued: Counter[Pair] = Counter()
        self.grown: set[Pair] = set()
        for place in range(len(self.words)):
            self.add(place)

    def add(self, place: int) -> None:
        """Count the pairs of self.words[place]."""
        for pair in pairwise(self.words[place]):
            self.totals[pair] += self.counts[place]
            self.places[pair].add(place)
            self.grown.add(pair)

    def remove(self, place: int) -> None:
        """Take the pairs of self.words[place] out of the totals."""
        for pair in pairwise(self.words[place]):
            self.totals[pair] -= self.counts[place]

    def where(self, pair: Pair) -> list[int]:
        """Return the places of all words that hold the pair (and a few that did, earlier)."""
        return sorted(self.places[pair])

    def merge(self, pair: Pair, new_id: int) -> None:
        """Replace the pair by the new id in every word, and count the pairs of these words again.

        Within a word from left to right: what was merged is not merged once more.
        """
        for place in self.where(pair):
            word = self.words[place]
            self.remove(place)
            start = 0
            while start < len(word) - 1:
                if (word[start], word[start + 1]) == pair:
                    word[start : start + 2] = [new_id]
                start += 1
            self.add(place)

    def most_frequent(self) -> Pair | None:
        """Return the pair with the largest total, the smallest of these on a tie; None if none."""
        for pair in self.grown:
            self._queue(pair)
        self.grown.clear()
        while self.queue:
            total, pair = -self.queue[0][0], self.queue[0][1]
            if total == self.totals[pair]:
                return pair
            heapq.heappop(self.queue)  # it has become rarer since: queue it anew
            self.queued[pair] = 0
            self._queue(pair)
        return None

    def _queue(self, pair: Pair) -> None:
        """Put the pair into the heap, unless it stands there with a total as large or larger."""
        if self.totals[pair] > self.queued[pair]:
            self.queued[pair] = self.totals[pair]
            heapq.heappush(self.queue, (-self.totals[pair], pair))


def docstrings(*modules: ModuleType) -> list[str]:
    """Collect the docstrings of the functions and classes that modules offer, each once.

    >>> import math
    >>> docstrings(math)[0].splitlines()[0]
    'Return the arc cosine (measured in radians) of x.'
    """
    offered = [
        vars(module)[name] for module in modules for name in sorted(vars(module)) if name[0] != "_"
    ]
    texts = [inspect.getdoc(value) for value in offered if callable(value)]
    return list(dict.fromkeys(text for text in texts if text))
