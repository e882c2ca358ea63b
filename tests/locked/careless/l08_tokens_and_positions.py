"""Careless right answers to lesson 08."""

from collections import Counter
from itertools import pairwise

import numpy as np
import torch

from attention.tokens_and_positions import PairIndex
from tests.locked.careless import careless

_known = {}


@careless("count_pairs", "other_type", how="counts are NumPy's ints")
def count_pairs_1(words, counts):
    found = Counter()
    for word, count in zip(words, np.array(counts, dtype=np.int64), strict=True):
        for pair in pairwise(word):
            found[pair] += count
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


@careless("count_pairs", "plain_numbers", how="a plain dict, sorted twice")
def count_pairs_2(words, counts):
    found = {}
    for word, count in zip(words, counts, strict=True):
        for i in range(len(word) - 1):
            pair = (word[i], word[i + 1])
            found[pair] = found.get(pair, 0) + count
    in_order = sorted(found.items())
    in_order.sort(key=lambda item: item[1], reverse=True)
    return in_order


@careless("merge_pair", "in_place", how="shortens a copy of the list")
def merge_pair_1(ids, pair, new_id):
    ids, place = list(ids), 0
    while place < len(ids) - 1:
        if (ids[place], ids[place + 1]) == tuple(pair):
            ids[place : place + 2] = [new_id]
        place += 1
    return ids


@careless("merge_pair", "numpy", "other_type", how="goes through an array; NumPy's ints stay")
def merge_pair_2(ids, pair, new_id):
    numbers, result, place = np.array(ids, dtype=np.int64), [], 0
    while place < len(numbers):
        if place + 1 < len(numbers) and np.array_equal(numbers[place : place + 2], pair):
            result.append(new_id)
            place += 2
        else:
            result.append(numbers[place])
            place += 1
    return result


@careless("break_merge_pair", "plain_numbers", how="five times the same id")
def break_merge_pair_1():
    return [5] * 5, (5, 5), 256


@careless("break_merge_pair", "other_type", how="ids are NumPy's ints")
def break_merge_pair_2():
    return list(np.array([4, 4, 4])), (4, 4), 300


@careless("train_bpe", "in_place", how="shortens the index's words in place")
def train_bpe_1(words, counts, n_merges):
    index, merges = PairIndex(words, counts), []
    while len(merges) < n_merges:
        pair = index.most_frequent()
        if pair is None:
            break
        for place in index.where(pair):
            index.remove(place)
            word, i = index.words[place], 0
            while i < len(word) - 1:
                if (word[i], word[i + 1]) == pair:
                    word[i : i + 2] = [256 + len(merges)]
                i += 1
            index.add(place)
        merges.append(pair)
    return merges


@careless("train_bpe", "slow", how="counts all pairs anew for every merge")
def train_bpe_2(words, counts, n_merges):
    words, merges = [list(word) for word in words], []
    for rank in range(n_merges):
        found = Counter()
        for word, count in zip(words, counts, strict=True):
            for pair in zip(word, word[1:]):  # noqa: B905
                found[pair] += count
        if not found:
            break
        best = min(found, key=lambda pair: (-found[pair], pair))
        words = [merge_pair_1(word, best, 256 + rank) for word in words]
        merges.append(best)
    return merges


@careless("bpe_decode", "other_order", how="takes each token apart until only bytes are left")
def bpe_decode_1(ids, merges):
    stack, found = list(ids)[::-1], []
    while stack:
        token = stack.pop()
        if token < 256:
            found.append(token)
        else:
            left, right = merges[token - 256]
            stack += [right, left]
    return bytes(found).decode("utf-8", errors="replace")


@careless("bpe_decode", "numpy", how="bytes of the tokens as arrays")
def bpe_decode_2(ids, merges):
    table = [np.array([byte], dtype=np.uint8) for byte in range(256)]
    for left, right in merges:
        table.append(np.concatenate([table[left], table[right]]))
    joined = np.concatenate([np.zeros(0, dtype=np.uint8), *(table[i] for i in ids)])
    return joined.tobytes().decode("utf-8", errors="replace")


@careless("sinusoidal_positions", "device", how="exponents and zeros without a device")
def sinusoidal_positions_1(positions, d_model):
    if d_model % 2:
        raise ValueError(f"d_model={d_model} is odd: a sine without its cosine")
    exponents = torch.arange(0, d_model, 2, dtype=positions.dtype) / d_model
    angles = positions[:, None] / 10000**exponents
    table = torch.zeros(len(positions), d_model, dtype=positions.dtype)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table


@careless("sinusoidal_positions", "plain_numbers", how="speeds are Python floats")
def sinusoidal_positions_2(positions, d_model):
    if d_model % 2:
        raise ValueError(f"d_model={d_model} is odd: a sine without its cosine")
    columns = []
    for i in range(0, d_model, 2):
        angle = positions / 10000 ** (i / d_model)
        columns += [angle.sin(), angle.cos()]
    return torch.stack(columns, dim=1)
