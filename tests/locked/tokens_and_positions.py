"""Answers to lesson 08 that were written without a look at its checks."""

import math
from collections import Counter
from itertools import pairwise

import torch

from attention.tokens_and_positions import PairIndex
from tests.locked import right, wrong


@wrong("count_pairs", cause="compares pairs as text, so that 10 comes before 9", kind="value")
def count_pairs_6(words, counts):
    totals = Counter()
    for word, count in zip(words, counts, strict=True):
        for pair in pairwise(word):
            totals[pair] += count
    return sorted(totals.items(), key=lambda item: (-item[1], str(item[0])))


@wrong(
    "count_pairs", cause="misses the last pair of each word: the range ends too early", kind="value"
)
def count_pairs_8(words, counts):
    totals = Counter()
    for word, count in zip(words, counts, strict=True):
        for i in range(len(word) - 2):
            totals[word[i], word[i + 1]] += count
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


@right("count_pairs", how="a plain dict and two stable sorts")
def count_pairs_9(words, counts):
    totals = {}
    for i in range(len(words)):
        for j in range(len(words[i]) - 1):
            pair = (words[i][j], words[i][j + 1])
            totals[pair] = totals.get(pair, 0) + counts[i]
    result = [(pair, totals[pair]) for pair in sorted(totals)]
    result.sort(key=lambda item: item[1], reverse=True)
    return result


@wrong(
    "merge_pair",
    cause="replaces in a text of numbers, so that (7, 8) is also found within 17 8",
    kind="value",
)
def merge_pair_6(ids, pair, new_id):
    text = " ".join(map(str, ids))
    text = text.replace(f"{pair[0]} {pair[1]}", str(new_id))
    return [int(number) for number in text.split()]


@right("merge_pair", how="a for loop that looks back at what it has written")
def merge_pair_8(ids, pair, new_id):
    merged, free = [], False  # free: the last token written is an old one
    left, right_ = pair
    for token in ids:
        if free and merged[-1] == left and token == right_:
            merged[-1] = new_id
            free = False
        else:
            merged.append(token)
            free = True
    return merged


def _merge(word, pair, new_id):
    merged, i = [], 0
    while i < len(word):
        if tuple(word[i : i + 2]) == tuple(pair):
            merged.append(new_id)
            i += 2
        else:
            merged.append(word[i])
            i += 1
    return merged


@wrong("train_bpe", cause="fails when no pair is left before n_merges are learned", kind="crash")
def train_bpe_2(words, counts, n_merges):
    index, merges = PairIndex(words, counts), []
    for r in range(n_merges):
        left, right_ = index.most_frequent()
        for place in index.where((left, right_)):
            index.remove(place)
            index.words[place] = _merge(index.words[place], (left, right_), 256 + r)
            index.add(place)
        merges.append((left, right_))
    return merges


@wrong("train_bpe", cause="learns one merge too many", kind="value")
def train_bpe_6(words, counts, n_merges):
    index, merges = PairIndex(words, counts), []
    while len(merges) <= n_merges and (pair := index.most_frequent()):
        for place in index.where(pair):
            index.remove(place)
            index.words[place] = _merge(index.words[place], pair, 256 + len(merges))
            index.add(place)
        merges.append(pair)
    return merges


@wrong("train_bpe", cause="replaces the words in the caller's list by merged ones", kind="state")
def train_bpe_10(words, counts, n_merges):
    merges = []
    for r in range(n_merges):
        totals = Counter()
        for word, count in zip(words, counts, strict=True):
            for pair in pairwise(word):
                totals[pair] += count
        if not totals:
            break
        best = min(totals, key=lambda pair: (-totals[pair], pair))
        for place, word in enumerate(words):
            words[place] = _merge(word, best, 256 + r)
        merges.append(best)
    return merges


@right("train_bpe", how="the direct way: counts all pairs anew for every merge")
def train_bpe_12(words, counts, n_merges):
    words, merges = [tuple(word) for word in words], []
    for new_id in range(256, 256 + n_merges):
        totals = Counter()
        for word, count in zip(words, counts, strict=True):
            for pair in pairwise(word):
                totals[pair] += count
        if not totals:
            break
        best = min(totals.items(), key=lambda item: (-item[1], item[0]))[0]
        merges.append(best)
        words = [tuple(_merge(word, best, new_id)) for word in words]
    return merges


@right("train_bpe", how="the index, with a helper that builds each word anew")
def train_bpe_13(words, counts, n_merges):
    index, merges = PairIndex(words, counts), []
    for r in range(n_merges):
        pair = index.most_frequent()
        if pair is None:
            return merges
        for place in index.where(pair):
            index.remove(place)
            index.words[place] = _merge(index.words[place], pair, 256 + r)
            index.add(place)
        merges.append(pair)
    return merges


@wrong("bpe_decode", cause="fails for merges of merges: their parts are no bytes", kind="crash")
def bpe_decode_4(ids, merges):
    data = b""
    for i in ids:
        data += bytes([i]) if i < 256 else bytes(merges[i - 256])
    return data.decode("utf-8", errors="replace")


@right("bpe_decode", how="takes tokens apart with a stack into a bytearray")
def bpe_decode_8(ids, merges):
    data, stack = bytearray(), list(reversed(ids))
    while stack:
        token = stack.pop()
        if token < 256:
            data.append(token)
        else:
            left, right_ = merges[token - 256]
            stack += [right_, left]
    return str(data, "utf-8", "replace")


@wrong(
    "sinusoidal_positions",
    cause="the exponents are made on the CPU, wherever the positions are",
    kind="device",
)
def sinusoidal_positions_4(positions, d_model):
    if d_model % 2:
        raise ValueError("d_model is odd")
    exponents = torch.arange(0, d_model, 2, dtype=positions.dtype)
    angles = positions[:, None] / 10000 ** (exponents / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("sinusoidal_positions", cause="multiplies by the power instead of dividing", kind="value")
def sinusoidal_positions_9(positions, d_model):
    if d_model % 2:
        raise ValueError("d_model is odd")
    exponents = torch.arange(0, d_model, 2, dtype=positions.dtype, device=positions.device)
    angles = positions[:, None] * 10000 ** (exponents / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@right("sinusoidal_positions", how="speeds by exp and log, columns written into an empty tensor")
def sinusoidal_positions_10(positions, d_model):
    if d_model % 2 == 1:
        raise ValueError("d_model must be even")
    steps = torch.arange(0, d_model, 2, dtype=positions.dtype, device=positions.device)
    speeds = torch.exp(steps * (-math.log(10000.0) / d_model))
    result = positions.new_empty(len(positions), d_model)
    result[:, 0::2] = torch.sin(positions.unsqueeze(1) * speeds)
    result[:, 1::2] = torch.cos(positions.unsqueeze(1) * speeds)
    return result
