"""Lesson 08: the rows of X, and the tokens that they stand for.

First what stands in a row: a token's vector, and its position. Then how a text is cut into tokens:
byte-level BPE (Sennrich, Haddow and Birch 2016; on bytes: Radford et al. 2019). A token is an id.
Ids 0 to 255 are the bytes. Merge number r joins a pair of ids (left, right) into the id 256 + r, so
a list of pairs is a whole tokeniser. Texts are cut into words first, and no token crosses a cut.
"""

import math
from collections import Counter
from itertools import pairwise

import torch
from torch import nn

from attention.provided import demand
from attention.provided.data.words import WORD as WORD
from attention.provided.data.words import PairIndex, split_words
from attention.provided.data.words import count_words as count_words
from attention.provided.data.words import docstrings as docstrings


def embed(ids, table):
    """Look up the vector of each token, and scale it.

    ids      (B, T)                 int64
    table    (vocab_size, d_model)  one row per id
    returns  (B, T, d_model)        rows of the table times √d_model

    Source: Vaswani et al. (2017), section 3.4.

    >>> embed(torch.tensor([[1, 0]]), torch.tensor([[1.0, 2, 3, 4], [5.0, 6, 7, 8]]))
    tensor([[[10., 12., 14., 16.],
             [ 2.,  4.,  6.,  8.]]])
    """
    return table[ids] * math.sqrt(table.shape[1])  # (B, T, d_model)


def sinusoidal_positions(positions, d_model):
    """Describe each position by sines and cosines of d_model / 2 wavelengths.

    positions  (T,)          float32 or float64, usually 0.0, 1.0, …; bfloat16 cannot count
                             beyond 256
    d_model    an even number
    returns    (T, d_model)  column 2i: sin(position / 10000^(2i / d_model)); column 2i + 1: cos of
                             the same; of the positions' dtype

    Raises ValueError if d_model is odd.
    Also for a d_model below 2.
    Source: Vaswani et al. (2017), section 3.5.

    >>> sinusoidal_positions(torch.tensor([0.0, 1.0]), d_model=4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    demand.counts(2, d_model=d_model)
    if d_model % 2:
        raise ValueError(f"d_model={d_model} is odd: a sine without its cosine")
    # exercise: about 4 lines
    exponents = torch.arange(0, d_model, 2, dtype=positions.dtype, device=positions.device)
    angles = positions[:, None] / 10000 ** (exponents / d_model)  # (T, d_model / 2)
    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (T, d_model / 2, 2)
    return pairs.flatten(start_dim=1)  # (T, d_model)


def rotation(shift, d_model):
    """The matrix that leads from any position to the one that is ``shift`` steps ahead.

    shift    a number of steps; below 0 it leads back
    d_model  an even number
    returns  (d_model, d_model)  R, float32 or float64, with
                                 sinusoidal_positions(t) @ R = sinusoidal_positions(t + shift)

    >>> rotation(math.pi / 2, d_model=2).round()  # a quarter turn: (sin, cos) to (cos, -sin)
    tensor([[ 0., -1.],
            [ 1.,  0.]])
    """
    demand.counts(2, d_model=d_model)
    # exercise: about 5 lines
    R = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        angle = shift / 10000 ** (i / d_model)  # by which this clock's hand turns
        cos, sin = math.cos(angle), math.sin(angle)
        R[i : i + 2, i : i + 2] = torch.tensor([[cos, -sin], [sin, cos]])
    return R


class LearnedPositions(nn.Module):
    """Adds a learned vector to each position.

    max_length  how many positions there are vectors for
    d_model     features

    The parameter `table` is (max_length, d_model), and starts small and random.
    """

    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))

    def forward(self, x):
        """Add row t of the table to every x[b, t]: (B, T, d_model) -> (B, T, d_model).

        Raises ValueError, with both numbers, if T is larger than max_length.
        """
        T, max_length = x.shape[1], len(self.table)
        if max_length < T:
            raise ValueError(f"T={T} is longer than max_length={max_length}")
        return x + self.table[:T]  # (B, T, d_model)


def rotary(x, positions, base=10000.0):
    """Turn each pair of features by an angle that grows with the position.

    x          (..., T, d_head)  queries or keys, d_head even
    positions  (T,)              float32 or float64, whatever x is, usually 0.0, 1.0, …
    base       how far apart the speeds are; a larger one turns the last pairs more slowly
    returns    (..., T, d_head)  (x[2i], x[2i + 1]) turned by position / base^(2i / d_head), from
                                 the first axis towards the second; of x's dtype

    The angles are computed in the positions' dtype: bfloat16 cannot count beyond 256.
    So the dot product of a query and a key depends on the difference of their positions.
    Source: Su et al. (2021), RoFormer, section 3.2.

    >>> rotary(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0.0, math.pi / 2])).round()
    tensor([[1., 0.],
            [-0., 1.]])
    """
    demand.positive(base=base)
    # exercise: about 6 lines
    d_head = x.shape[-1]
    exponents = torch.arange(0, d_head, 2, dtype=positions.dtype, device=x.device)
    angles = positions[:, None] / base ** (exponents / d_head)  # (T, d_head / 2)
    first, second = x[..., 0::2], x[..., 1::2]  # (..., T, d_head / 2) each
    cos, sin = angles.cos(), angles.sin()
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1)
    return turned.flatten(start_dim=-2).to(x.dtype)  # (..., T, d_head)


def count_pairs(words, counts):
    """Count the pairs of neighbouring tokens.

    words    list of lists of ids
    counts   list of int: how often each word occurs
    returns  list of ((left, right), count): most frequent first, and the smaller pair first where
             counts are equal; (3, 9) is smaller than (4, 1)

    Every place counts where the two stand side by side: [7, 7, 7] holds the pair (7, 7) twice.

    >>> count_pairs([[1, 2, 3], [2, 3]], counts=[1, 5])
    [((2, 3), 6), ((1, 2), 1)]
    """
    # exercise: about 5 lines
    totals = Counter()
    for word, count in zip(words, counts, strict=True):
        for pair in pairwise(word):
            totals[pair] += count
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


def merge_pair(ids, pair, new_id):
    """Replace a pair wherever it stands, from left to right.

    ids      list of ids
    pair     (left, right)
    new_id   the id to put in the place of both
    returns  a new list; what was merged cannot be merged once more: (7, 7) in [7, 7, 7] is
             replaced once

    >>> merge_pair([7, 8, 7, 7, 8], (7, 8), 300)
    [300, 7, 300]
    """
    # exercise: about 9 lines
    merged, place = [], 0
    while place < len(ids):
        if tuple(ids[place : place + 2]) == tuple(pair):
            merged.append(new_id)
            place += 2
        else:
            merged.append(ids[place])
            place += 1
    return merged


def train_bpe(words, counts, n_merges):
    """Learn the merges of a byte-level BPE.

    words     list of lists of bytes
    counts    list of int: how often each word occurs
    n_merges  how many merges to learn; fewer if no pair is left before
    returns   list of pairs in the order in which they are merged; number r makes the id 256 + r

    Each step merges the pair that is most frequent at that time; on a tie, the smallest pair.
    Source: Sennrich, Haddow and Birch (2016), algorithm 1.
    Refuses a number of merges below 0.

    >>> train_bpe([[3, 4, 5], [4, 5]], counts=[1, 1], n_merges=9)
    [(4, 5), (3, 256)]
    """
    demand.counts(0, n_merges=n_merges)
    index, merges = PairIndex(words, counts), []
    # exercise: about 3 lines
    while len(merges) < n_merges and (pair := index.most_frequent()):
        index.merge(pair, 256 + len(merges))
        merges.append(pair)
    return merges


def bpe_encode(text, merges, split=split_words):
    """Turn a text into ids, by the merges in the order in which they were learned.

    text     str
    merges   list of pairs, from `train_bpe`
    split    a function that cuts a text into words; `split_words` refuses lone surrogates with a
             ValueError
    returns  list of ids

    Within each word, the pair that was learned first is merged first. No merge crosses the words
    of `split`.

    >>> bpe_encode("aab ab", [(97, 98), (32, 256)])
    [97, 256, 257]
    """
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    ids = []
    # exercise: about 7 lines
    for piece in split(text):
        word = list(piece.encode("utf-8"))
        while found := [(ranks[pair], i) for i, pair in enumerate(pairwise(word)) if pair in ranks]:
            rank, i = min(found)
            word[i : i + 2] = [256 + rank]
        ids += word
    return ids


def bpe_decode(ids, merges):
    """Turn ids back into a text.

    ids      list of ids below 256 + len(merges)
    merges   list of pairs, from `train_bpe`
    returns  str; bytes that are not UTF-8, as in half a character, become U+FFFD

    >>> bpe_decode([97, 256, 257], [(97, 98), (32, 256)])
    'aab ab'
    """
    # exercise: about 4 lines
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        tokens.append(tokens[left] + tokens[right])
    return b"".join(tokens[i] for i in ids).decode("utf-8", errors="replace")


# Inputs on which a wrong answer shows


def break_merge_pair():
    """Return an input for which `merges_from_the_right` gives wrong ids.

    returns  a tuple (ids, pair, new_id), as `merge_pair` takes them
    """
    return [7, 7, 7], (7, 7), 300
