"""Lesson 08's `train_bpe` for a whole corpus: the same merges, several times as fast."""

import heapq
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from attention.provided import demand

ANSWERS = "tokens_and_positions"  # the lesson whose exercise this would answer
Pair = tuple[int, int]


def train_bpe(words: Sequence[Sequence[int]], counts: Sequence[int], n_merges: int) -> list[Pair]:
    """Learn the merges of a byte-level BPE: arguments, result and ties as in lesson 08.

    The lesson counts all pairs of a word anew when one of them is merged. Here only the pairs that
    touch the merged one are. An id is a character, chr(id), so that words and pairs are strings,
    which are searched and cut faster than lists; strings compare as their ids do.
    Raises ValueError for a number of merges below 0.
    """
    demand.counts(0, n_merges=n_merges)
    texts = ["".join(map(chr, word)) for word in words]
    totals: defaultdict[str, int] = defaultdict(int)
    places: defaultdict[str, list[int]] = defaultdict(list)  # words that hold a pair, or did
    for place, text in enumerate(texts):
        for left, right in pairwise(text):
            totals[left + right] += counts[place]
            places[left + right].append(place)
    queue = [(-total, pair) for pair, total in totals.items()]
    heapq.heapify(queue)
    merges: list[Pair] = []
    while len(merges) < n_merges and (pair := _most_frequent(queue, totals)):
        grown: set[str] = set()
        new = chr(256 + len(merges))
        for place in places.pop(pair):
            text = texts[place]
            if pair in text:
                texts[place], made = _merge(text, pair, new, counts[place], totals)
                for other in made:
                    places[other].append(place)
                grown.update(made)
        for other in grown:
            heapq.heappush(queue, (-totals[other], other))
        merges.append((ord(pair[0]), ord(pair[1])))
    return merges


def _most_frequent(queue: list[tuple[int, str]], totals: dict[str, int]) -> str | None:
    """Take the pair with the largest total out of the queue, the smallest of these on a tie."""
    while queue:
        total, pair = heapq.heappop(queue)
        now = totals[pair]
        if now == -total and now > 0:
            return pair
        if 0 < now < -total:  # it has become rarer since: queue it anew
            heapq.heappush(queue, (-now, pair))
    return None


def _merge(
    text: str, pair: str, new: str, count: int, totals: dict[str, int]
) -> tuple[str, list[str]]:
    """Put `new` in the place of a pair, from left to right, and keep the other pairs' totals right.

    The pair's own total is read no more: each pair stands in the queue once, this one has left it,
    and pairs that arise from now on hold a newer token. Returns the new word, and the pairs in it
    that hold `new`.
    """
    made = []
    start = text.find(pair)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + 2 : start + 3]
        if before:
            totals[before + pair[0]] -= count
            totals[before + new] += count
            made.append(before + new)
        if after:
            totals[pair[1] + after] -= count
            totals[new + after] += count
            made.append(new + after)
        text = text[:start] + new + text[start + 2 :]
        start = text.find(pair, start + 1)
    return text, made
