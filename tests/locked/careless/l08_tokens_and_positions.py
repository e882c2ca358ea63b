"""Careless right answers to lesson 08."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention.tokens_and_positions import PairIndex, split_words
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


@careless("bpe_encode", "other_order", how="replays every merge, from the first to the last")
def bpe_encode_1(text, merges):
    ids = []
    for piece in split_words(text):
        word = list(piece.encode("utf-8"))
        for rank, pair in enumerate(merges):
            word = merge_pair_1(word, pair, 256 + rank)
        ids += word
    return ids


@careless("bpe_encode", "module_state", how="remembers the words it has seen in a global dict")
def bpe_encode_2(text, merges):
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    ids, key = [], tuple(tuple(pair) for pair in merges)
    for piece in split_words(text):
        if (piece, key) not in _known:
            word = list(piece.encode("utf-8"))
            while True:
                there = [(ranks[p], i) for i, p in enumerate(pairwise(word)) if p in ranks]
                if not there:
                    break
                rank, i = min(there)
                word[i : i + 2] = [256 + rank]
            _known[piece, key] = word
        ids.extend(_known[piece, key])
    return ids


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


@careless("embed", "device", "dtype", how="row by row into zeros of float32")
def embed_1(ids, table):
    B, T = ids.shape
    result = torch.zeros(B, T, table.shape[1])
    for b in range(B):
        for t in range(T):
            result[b, t] = table[ids[b, t]] * math.sqrt(table.shape[1])
    return result


@careless("embed", "other_type", how="NumPy's root")
def embed_2(ids, table):
    return table[ids] * np.sqrt(table.shape[1])


@careless("embed", "other_order", how="scales the table first")
def embed_3(ids, table):
    return F.embedding(ids, table * table.shape[1] ** 0.5)


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


@careless("LearnedPositions", "seed", how="the table from the global generator, seeded")
class LearnedPositions_1(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))

    def forward(self, x):
        T, most = x.shape[1], self.table.shape[0]
        if most < T:
            raise ValueError(f"a sequence of {T} tokens, but there are {most} positions")
        return x + self.table[:T]


@careless("LearnedPositions", "device", "module_state", how="numbers of rows without a device")
class LearnedPositions_2(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length = max_length
        self.table = nn.Parameter(torch.normal(0.0, 0.02, (max_length, d_model)))

    def forward(self, x):
        if x.shape[1] > self.max_length:
            raise ValueError(f"T={x.shape[1]} is larger than max_length={self.max_length}")
        return x + self.table[torch.arange(x.shape[1])].unsqueeze(0)


@careless("LearnedPositions", "numpy", how="the first table from NumPy")
class LearnedPositions_3(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        start = np.random.default_rng().normal(0, 0.02, (max_length, d_model))
        self.table = nn.Parameter(torch.from_numpy(start).float())

    def forward(self, x):
        T = x.size(1)
        if len(self.table) < T:
            raise ValueError(f"{T} positions are more than {len(self.table)}")
        return torch.stack([one + self.table[:T] for one in x])


@careless("rotary", "device", how="zeros and exponents without a device")
def rotary_1(x, positions):
    d_head = x.shape[-1]
    speeds = 10000 ** (-torch.arange(0, d_head, 2, dtype=positions.dtype) / d_head)
    angles = positions[:, None] * speeds
    first, second = x[..., 0::2], x[..., 1::2]
    turned = torch.zeros(x.shape, dtype=x.dtype)
    turned[..., 0::2] = (first * angles.cos() - second * angles.sin()).to(x.dtype)
    turned[..., 1::2] = (first * angles.sin() + second * angles.cos()).to(x.dtype)
    return turned


@careless("rotary", "plain_numbers", how="pair by pair, with Python floats for the speeds")
def rotary_2(x, positions):
    d_head, columns = x.shape[-1], []
    for i in range(0, d_head, 2):
        angle = positions / 10000 ** (i / d_head)
        cos, sin = torch.cos(angle), torch.sin(angle)
        columns.append(x[..., i] * cos - x[..., i + 1] * sin)
        columns.append(x[..., i] * sin + x[..., i + 1] * cos)
    return torch.stack(columns, dim=-1).to(x.dtype)
