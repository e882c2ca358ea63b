"""Answers to lesson 08 that were written without a look at its checks."""

import math
from collections import Counter
from itertools import pairwise

import torch

from attention.provided import demand
from attention.provided.data.words import split_words
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


# --- rotation ------------------------------------------------------------------------------------


@wrong("rotation", cause="turns the other way: the blocks are transposed")
def rotation_1(shift, d_model):
    demand.counts(2, d_model=d_model)
    R = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        s = shift / 10000 ** (j / d_model)
        R[j : j + 2, j : j + 2] = torch.tensor(
            [[math.cos(s), math.sin(s)], [-math.sin(s), math.cos(s)]]
        )
    return R


@wrong("rotation", cause="doubles the column, as if it were the number of the clock")
def rotation_2(shift, d_model):
    demand.counts(2, d_model=d_model)
    R = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        s = shift / 10000 ** (2 * j / d_model)
        R[j : j + 2, j : j + 2] = torch.tensor(
            [[math.cos(s), -math.sin(s)], [math.sin(s), math.cos(s)]]
        )
    return R


@wrong("rotation", cause="all sines in the first half of the columns, all cosines in the second")
def rotation_3(shift, d_model):
    demand.counts(2, d_model=d_model)
    half = d_model // 2
    R = torch.zeros(d_model, d_model)
    for i in range(half):
        s = shift / 10000 ** (2 * i / d_model)
        R[i, i] = R[i + half, i + half] = math.cos(s)
        R[i, i + half] = -math.sin(s)
        R[i + half, i] = math.sin(s)
    return R


@wrong("rotation", cause="the same angle, the shift itself, for every clock")
def rotation_4(shift, d_model):
    demand.counts(2, d_model=d_model)
    c, s = math.cos(shift), math.sin(shift)
    R = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        R[j : j + 2, j : j + 2] = torch.tensor([[c, -s], [s, c]])
    return R


@right("rotation", how="the exponential of what one small step adds")
def rotation_5(shift, d_model):
    demand.counts(2, d_model=d_model)
    columns = torch.arange(0, d_model, 2, dtype=torch.float64)
    speeds = 10000.0 ** (-columns / d_model)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return torch.linalg.matrix_exp(shift * torch.kron(speeds.diag(), quarter))


@right("rotation", how="block_diag of the blocks, in float32")
def rotation_6(shift, d_model):
    demand.counts(2, d_model=d_model)
    blocks = []
    for clock in range(d_model // 2):
        angle = torch.tensor(shift * math.exp(-2 * clock / d_model * math.log(10000.0)))
        c, s = angle.cos(), angle.sin()
        blocks.append(torch.stack([c, -s, s, c]).reshape(2, 2))
    return torch.block_diag(*blocks)


# --- rotary --------------------------------------------------------------------------------------


def _angles(x, positions, base):
    d_head = x.shape[-1]
    twice = torch.arange(0, d_head, 2, dtype=positions.dtype, device=positions.device)
    return positions[:, None] / base ** (twice / d_head)


@wrong("rotary", cause="10000, whatever base is given")
def rotary_1(x, positions, base=10000.0):
    angles = _angles(x, positions, 10000.0)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = (
        first * angles.cos() - second * angles.sin(),
        first * angles.sin() + second * angles.cos(),
    )
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)


@wrong("rotary", cause="turns feature i together with feature i + d_head / 2")
def rotary_2(x, positions, base=10000.0):
    angles = _angles(x, positions, base)
    first, second = x.chunk(2, dim=-1)
    turned = (
        first * angles.cos() - second * angles.sin(),
        first * angles.sin() + second * angles.cos(),
    )
    return torch.cat(turned, dim=-1).to(x.dtype)


@wrong("rotary", cause="the sines with the wrong sign: turns backwards")
def rotary_3(x, positions, base=10000.0):
    angles = _angles(x, positions, base)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = (
        first * angles.cos() + second * angles.sin(),
        second * angles.cos() - first * angles.sin(),
    )
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)


@wrong("rotary", cause="puts the two halves one behind the other instead of interleaving them")
def rotary_4(x, positions, base=10000.0):
    angles = _angles(x, positions, base)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = (
        first * angles.cos() - second * angles.sin(),
        first * angles.sin() + second * angles.cos(),
    )
    return torch.cat(turned, dim=-1).to(x.dtype)


@wrong(
    "rotary", cause="brings the positions to x's dtype first, so bfloat16 miscounts", kind="dtype"
)
def rotary_5(x, positions, base=10000.0):
    angles = _angles(x, positions.to(x.dtype), base)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = (
        first * angles.cos() - second * angles.sin(),
        first * angles.sin() + second * angles.cos(),
    )
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)


@right("rotary", how="a pair is a complex number, which a number of length 1 turns")
def rotary_6(x, positions, base=10000.0):
    wide = torch.promote_types(x.dtype, positions.dtype)
    half = torch.arange(x.shape[-1] // 2, dtype=positions.dtype, device=x.device)
    angles = torch.outer(positions, base ** (-2 * half / x.shape[-1])).to(wide)
    pairs = torch.view_as_complex(x.to(wide).unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


@right("rotary", how="a whole 2-by-2 matrix for each position and pair, and one einsum")
def rotary_7(x, positions, base=10000.0):
    angles = _angles(x, positions, base)
    c, s = angles.cos(), angles.sin()
    turn = torch.stack([torch.stack([c, -s], dim=-1), torch.stack([s, c], dim=-1)], dim=-2)
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    wide = torch.promote_types(x.dtype, turn.dtype)
    turned = torch.einsum("tiab,...tib->...tia", turn.to(wide), pairs.to(wide))
    return turned.reshape(x.shape).to(x.dtype)


# --- bpe_encode ----------------------------------------------------------------------------------


@wrong("bpe_encode", cause="merges the first pair of the word that has a rank, not the lowest rank")
def bpe_encode_1(text, merges, split=split_words):
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    ids = []
    for piece in split(text):
        word, i = list(piece.encode()), 0
        while i < len(word) - 1:
            pair = word[i], word[i + 1]
            if pair in ranks:
                word[i : i + 2] = [256 + ranks[pair]]
                i = 0
            else:
                i += 1
        ids += word
    return ids


@wrong("bpe_encode", cause="never cuts the text into words, so merges cross them")
def bpe_encode_2(text, merges, split=split_words):
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    word = list(text.encode())
    while True:
        found = [(ranks[p], i) for i, p in enumerate(pairwise(word)) if p in ranks]
        if not found:
            return word
        rank, i = min(found)
        word[i : i + 2] = [256 + rank]


@wrong("bpe_encode", cause="takes the numbers of the characters, not the bytes of UTF-8")
def bpe_encode_3(text, merges, split=split_words):
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    ids = []
    for piece in split(text):
        word = [ord(character) for character in piece]
        while found := [(ranks[p], i) for i, p in enumerate(pairwise(word)) if p in ranks]:
            rank, i = min(found)
            word[i : i + 2] = [256 + rank]
        ids += word
    return ids


@wrong("bpe_encode", cause="always split_words, whatever split is given")
def bpe_encode_4(text, merges, split=split_words):
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    ids = []
    for piece in split_words(text):
        word = list(piece.encode())
        while found := [(ranks[p], i) for i, p in enumerate(pairwise(word)) if p in ranks]:
            rank, i = min(found)
            word[i : i + 2] = [256 + rank]
        ids += word
    return ids


@wrong("bpe_encode", cause="goes through the merges once, and makes each only at its first place")
def bpe_encode_5(text, merges, split=split_words):
    ids = []
    for piece in split(text):
        word = list(piece.encode())
        for rank, pair in enumerate(merges):
            for i, both in enumerate(pairwise(word)):
                if both == tuple(pair):
                    word[i : i + 2] = [256 + rank]
                    break
        ids += word
    return ids


@right("bpe_encode", how="one merge after the other, over the whole word")
def bpe_encode_6(text, merges, split=split_words):
    ids = []
    for piece in split(text):
        word = list(piece.encode("utf-8"))
        for new, (left, right_one) in enumerate(merges, start=256):
            i = 0
            while i + 1 < len(word):
                if word[i] == left and word[i + 1] == right_one:
                    word[i] = new
                    del word[i + 1]
                i += 1
        ids.extend(word)
    return ids


@right("bpe_encode", how="a function that calls itself, and remembers the words it has cut")
def bpe_encode_7(text, merges, split=split_words):
    made = {tuple(pair): 256 + rank for rank, pair in enumerate(merges)}

    def cut(word):
        new = min((made[pair] for pair in pairwise(word) if pair in made), default=None)
        if new is None:
            return word
        place = next(i for i, pair in enumerate(pairwise(word)) if made.get(pair) == new)
        return cut((*word[:place], new, *word[place + 2 :]))

    known = {}
    for piece in (pieces := list(split(text))):
        if piece not in known:
            known[piece] = cut(tuple(piece.encode()))
    return [token for piece in pieces for token in known[piece]]
