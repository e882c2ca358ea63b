"""Stored answers of lesson 08: wrong ones with their hints, and right ones written differently."""

import functools
import math
from collections import Counter
from itertools import pairwise

import numpy
import torch

from attention.tokens_and_positions import PairIndex, split_words
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _totals(words, counts, pairs_of=pairwise):
    totals = Counter()
    for word, count in zip(words, counts, strict=True):
        for pair in pairs_of(word):
            totals[pair] += count
    return totals


def _ranked(totals):
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


@alternative("count_pairs")
def sorts_twice(words, counts):
    totals = {}
    for word, count in zip(words, counts, strict=True):
        for i in range(1, len(word)):
            totals[word[i - 1], word[i]] = totals.get((word[i - 1], word[i]), 0) + count
    by_pair = sorted(totals.items())
    return sorted(by_pair, key=lambda item: item[1], reverse=True)


@alternative("count_pairs")
def repeats_the_words(words, counts):
    found = [
        p for word, n in zip(words, counts, strict=True) for _ in range(n) for p in pairwise(word)
    ]
    return [(p, n) for n, p in sorted((-found.count(p), p) for p in set(found)) for n in [-n]]


def _merged(ids, pair, new_id):
    return [ord(s) for s in "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new_id))]


@mistake(
    "merge_pair",
    hint="In [7, 7, 7] the last two are merged, [7, 300]. From left to right it is [300, 7].",
)
def merges_from_the_right(ids, pair, new_id):
    found, rest = [], list(ids)
    while rest:
        last = rest.pop()
        if rest and (rest[-1], last) == tuple(pair):
            rest.pop()
            last = new_id
        found.insert(0, last)
    return found


@mistake(
    "break_merge_pair",
    hint="The pair stands nowhere in the list, so nothing is merged, from either side.",
    where=lambda ids, pair, new_id: tuple(pair) not in set(zip(ids, ids[1:], strict=False)),
)
def nothing_to_merge():
    return [7, 8, 9], (9, 7), 300


@mistake(
    "break_merge_pair",
    hint="The two ids of the pair differ, so two places where it stands never share a token.",
    where=lambda ids, pair, new_id: pair[0] != pair[1],
)
def a_pair_of_two_kinds():
    return [7, 8, 7, 8], (7, 8), 300


@mistake(
    "break_merge_pair",
    hint="Both sides pair off the same tokens, because each run of them has an even length.",
    where=lambda ids, pair, new_id: (
        pair[0] == pair[1]
        and "".join("x" if one == pair[0] else " " for one in ids).replace("xx", "").count("x") == 0
    ),
)
def two_of_them():
    return [7, 7, 8], (7, 7), 300


@alternative("break_merge_pair")
def three_in_the_middle():
    return [1, 5, 5, 5, 2], (5, 5), 256


@alternative("break_merge_pair")
def five_with_a_list():
    return [0, 0, 0, 0, 0], [0, 0], 999


@alternative("merge_pair")
def cuts_a_copy(ids, pair, new_id):
    ids = list(ids)
    for i in range(len(ids)):
        if (*ids[i : i + 2],) == pair:
            ids[i : i + 2] = [new_id]
    return ids


@alternative("merge_pair")
def looks_back(ids, pair, new_id):
    merged, free = [], False
    for token in ids:
        if free and (merged[-1], token) == pair:
            merged[-1], free = new_id, False
        else:
            merged.append(token)
            free = True
    return merged


def _train(words, counts, n_merges, best=lambda totals: _ranked(totals)[0][0], merge=_merged):
    words, merges = [list(word) for word in words], []
    while len(merges) < n_merges and (totals := _totals(words, counts)):
        merges.append(best(totals))
        words = [merge(word, merges[-1], 255 + len(merges)) for word in words]
    return merges


@mistake(
    "train_bpe",
    hint="On a tie it takes the pair that it met first, that is by chance: the same words in "
    "another order give another tokeniser. Take the smallest pair.",
    earns=("the merges after it", "when to stop"),
)
def breaks_ties_by_chance(words, counts, n_merges):
    return _train(words, counts, n_merges, best=lambda totals: max(totals, key=totals.get))


@mistake("train_bpe", hint="On a tie it takes the largest pair. Take the smallest.")
def takes_the_largest_on_a_tie(words, counts, n_merges):
    largest = lambda totals: max(totals, key=lambda pair: (totals[pair], pair))  # noqa: E731
    return _train(words, counts, n_merges, best=largest)


@mistake(
    "train_bpe",
    hint="A word that occurs 4 times counts as one. Use the counts.",
    earns=("the merges after it", "when to stop"),
)
def trains_without_the_counts(words, counts, n_merges):
    return _train(words, [1] * len(words), n_merges)


@mistake(
    "train_bpe",
    hint="When no pair is left there is nothing to take the largest of. Stop early, with fewer "
    "merges.",
)
def does_not_stop(words, counts, n_merges):
    merges = _train(words, counts, n_merges)
    return merges if len(merges) == n_merges else [max([])]


@alternative("train_bpe")
def counts_everything_anew(words, counts, n_merges):
    return _train(words, counts, n_merges)


@alternative("train_bpe")
def word_by_word(words, counts, n_merges):
    index, merges = PairIndex(words, counts), []
    for new_id in range(256, 256 + n_merges):
        pair = index.most_frequent()
        if pair is None:
            break
        for place in index.where(pair):
            index.remove(place)
            index.words[place] = _merged(index.words[place], pair, new_id)
            index.add(place)
        merges.append(pair)
    return merges


@mistake(
    "bpe_encode",
    hint="The longest token that fits is taken, from left to right. That is another algorithm "
    "(WordPiece); BPE repeats the merges in the order in which they were learned.",
)
def takes_the_longest_token(text, merges, split=split_words):
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        tokens.append(tokens[left] + tokens[right])
    known, ids = {token: i for i, token in enumerate(tokens)}, []
    for piece in split(text):
        rest = piece.encode()
        while rest:
            size = next(n for n in range(len(rest), 0, -1) if rest[:n] in known)
            ids.append(known[rest[:size]])
            rest = rest[size:]
    return ids


@alternative("bpe_encode")
def merge_after_merge(text, merges, split=split_words):
    ids = []
    for piece in split(text):
        word = list(piece.encode())
        for rank, pair in enumerate(merges):
            word = _merged(word, pair, 256 + rank)
        ids.extend(word)
    return ids


@alternative("bpe_encode")
def all_places_of_the_best_pair(text, merges, split=split_words):
    ids, worst = [], len(merges)
    for word in map(list, map(str.encode, split(text))):
        while len(word) > 1:
            rank = min(merges.index(p) if p in merges else worst for p in pairwise(word))
            if rank == worst:
                break
            word = _merged(word, merges[rank], 256 + rank)
        ids = ids + word
    return ids


@alternative("bpe_decode")
def unfolds_recursively(ids, merges):
    def unfold(i):
        return [i] if i < 256 else [byte for half in merges[i - 256] for byte in unfold(half)]

    return bytes(byte for i in ids for byte in unfold(i)).decode("utf-8", "replace")


@alternative("bpe_decode")
def unfolds_with_a_stack(ids, merges):
    stack, found = list(reversed(ids)), bytearray()
    while stack:
        top = stack.pop()
        if top < 256:
            found.append(top)
        else:
            left, right = merges[top - 256]
            stack += [right, left]
    return str(found, "utf-8", "replace")


def _counted(positions, *bounds):
    """torch.arange, of the precision and on the device of the positions."""
    return torch.arange(*bounds, dtype=positions.dtype, device=positions.device)


def _angles(positions, d, exponents=None, base=10000.0):
    exponents = _counted(positions, 0, d, 2) / d if exponents is None else exponents
    return positions[:, None] / base**exponents


def _interleaved(first, second):
    return torch.stack([first, second], dim=-1).flatten(-2)


def _refuses_odd_sizes(target):
    """With the lines that are given."""

    @functools.wraps(target)
    def answer(positions, d_model):
        if d_model % 2:
            raise ValueError(f"d_model={d_model} is odd: a sine without its cosine")
        return target(positions, d_model)

    return answer


@alternative("sinusoidal_positions")
@_refuses_odd_sizes
def fills_the_columns(positions, d_model):
    table = positions.new_empty(len(positions), d_model)
    for i in range(0, d_model, 2):
        angle = positions * math.exp(-math.log(10000.0) * i / d_model)
        table[:, i], table[:, i + 1] = torch.sin(angle), torch.cos(angle)
    return table


@alternative("sinusoidal_positions")
@_refuses_odd_sizes
def shifts_the_phase(positions, d_model):
    columns = _counted(positions, d_model)
    even = columns - columns % 2
    phase = (columns % 2) * math.pi / 2
    return torch.sin(positions.outer(10000.0 ** (-even / d_model)) + phase)


@careless("sinusoidal_positions")
@_refuses_odd_sizes
def fills_a_table_on_the_cpu(positions, d_model):
    table = torch.zeros(len(positions), d_model)
    for i in range(0, d_model, 2):
        angle = positions / 10000 ** (i / d_model)
        table[:, i], table[:, i + 1] = torch.sin(angle), torch.cos(angle)
    return table


@careless("sinusoidal_positions")
@_refuses_odd_sizes
def counts_in_numpy(positions, d_model):
    exponents = numpy.arange(0, d_model, 2) / d_model
    angles = positions.numpy()[:, None] / 10000**exponents
    return torch.from_numpy(numpy.stack([numpy.sin(angles), numpy.cos(angles)], -1)).flatten(1)


@alternative("rotation")
def one_block_after_another(shift, d_model):
    angles = [shift / 10000 ** (2 * i / d_model) for i in range(d_model // 2)]
    blocks = [[[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]] for a in angles]
    return torch.block_diag(*map(torch.tensor, blocks))


@alternative("rotation")
def three_diagonals(shift, d_model):
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = shift / 10000**exponents
    cos = torch.diag(angles.cos().repeat_interleave(2))
    beside = torch.zeros(d_model - 1, dtype=torch.float64)
    beside[::2] = angles.sin()
    return cos + torch.diag(beside, diagonal=-1) - torch.diag(beside, diagonal=1)


@alternative("rotation")
def in_numpy(shift, d_model):
    R = numpy.zeros((d_model, d_model), dtype=numpy.float32)
    for i in range(0, d_model, 2):
        angle = shift / 10000 ** (i / d_model)
        R[i, i] = R[i + 1, i + 1] = numpy.cos(angle)
        R[i + 1, i] = numpy.sin(angle)
        R[i, i + 1] = -R[i + 1, i]
    return torch.from_numpy(R)


def _turn(x, positions, base, exponents=None):
    angles = _angles(positions, x.shape[-1], exponents, base)
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    return _interleaved(first * cos - second * sin, first * sin + second * cos)


@alternative("rotary")
def with_complex_numbers(x, positions, base=10000.0):
    angles = _angles(positions, x.shape[-1], base=base)
    pairs = torch.complex(x[..., 0::2].to(angles.dtype), x[..., 1::2].to(angles.dtype))
    turned = pairs * torch.complex(angles.cos(), angles.sin())
    return torch.stack([turned.real, turned.imag], dim=-1).reshape(x.shape).to(x.dtype)


@alternative("rotary")
def with_doubled_angles(x, positions, base=10000.0):
    angles = _angles(positions, x.shape[-1], base=base).repeat_interleave(2, dim=-1)
    other = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * angles.cos().to(x.dtype) + other * angles.sin().to(x.dtype)  # rounded before


@alternative("rotary")
def in_float64_throughout(x, positions, base=10000.0):
    rows = []
    for row, position in zip(x.double().unbind(-2), positions.tolist(), strict=True):
        turned = row.clone()
        for i in range(0, x.shape[-1], 2):
            angle = position / base ** (i / x.shape[-1])
            cos, sin = math.cos(angle), math.sin(angle)
            turned[..., i] = row[..., i] * cos - row[..., i + 1] * sin
            turned[..., i + 1] = row[..., i] * sin + row[..., i + 1] * cos
        rows.append(turned)
    return torch.stack(rows, dim=-2).to(x.dtype)


@careless("rotary")
def fills_pairs_on_the_cpu(x, positions, base=10000.0):
    turned, angles = torch.zeros(x.shape, dtype=x.dtype), _angles(positions, x.shape[-1], base=base)
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    turned[..., 0::2] = first * cos - second * sin
    turned[..., 1::2] = first * sin + second * cos
    return turned


@careless("rotary")
def counts_pairs_on_the_cpu(x, positions, base=10000.0):
    exponents = torch.arange(0, x.shape[-1], 2) / x.shape[-1]
    return _turn(x, positions, base, exponents).to(x.dtype)


@careless("rotary")
def turns_in_place(x, positions, base=10000.0):
    x[:] = _turn(x, positions, base)
    return x


ONE_COUNT_A_WORD = "there are as many counts as words"
ONE_DEVICE = "x and its positions are on one device"
FLOAT32_SPEEDS = "the speeds may be of float32: the angles change by 1e-5 at most"
EQUIVALENT = {
    "rotation: whose result is cut off from the gradient: return R.detach()": "two numbers go in",
    "rotation: with the two items of a pair exchanged: R[i:i + 2, i:i + 2] = torch.tensor([[cos, "
    "-sin], [sin, cos]])": "rows and columns are the same",
    "count_pairs: without `strict` in one call of `zip`: for word, count in zip(words, counts): "
    "for pair in pairwise(word): totals[pair] += count": ONE_COUNT_A_WORD,
    "count_pairs: with False once where True belongs: for word, count in zip(words, counts, "
    "strict=False): for pair in pairwise(word): totals[pair] += count": ONE_COUNT_A_WORD,
    "merge_pair: with one call of `tuple` left out: if tuple(ids[place:place + 2]) == pair: "
    "merged.append(new_id) place += 2 else: merged.append(ids[place]) place += 1": "the pair is "
    "given as a tuple",
    "sinusoidal_positions: without `dtype` in one call of `arange`: exponents = torch.arange(0, "
    "d_model, 2, device=positions.device)": FLOAT32_SPEEDS,
    "rotary: without `dtype` in one call of `arange`: exponents = torch.arange(0, d_head, 2, "
    "device=x.device)": FLOAT32_SPEEDS,
    "sinusoidal_positions: whose result is cut off from the gradient: return "
    "pairs.flatten(start_dim=1).detach()": "positions are counted, not learned",
    "rotary: with `positions` once where `x` belongs: exponents = torch.arange(0, d_head, 2, "
    "dtype=positions.dtype, device=positions.device)": ONE_DEVICE,
    "rotary: with one bound of a slice left out: first, second = (x[..., ::2], x[..., 1::2])": "a "
    "slice begins at 0 anyway",
}
