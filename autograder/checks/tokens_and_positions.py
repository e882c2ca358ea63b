"""Checks of lesson 08. The oracles are direct: recount everything, replace in text, loop in Python.

Tokens have small ids and texts few letters, so that pairs repeat, overlap and tie.
"""

import math

import torch

from attention.provided.stand_ins import Whole
from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

F64 = torch.float64
LETTERS = "aabcéß日"  # of one, two and three bytes
ON_LISTS = {"care": "lists of whole numbers go in: no device, no dtype and no gradient"}


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _same(got, expected, what):
    """Two lists are equal; if not, the message shows the first entry that differs.

    A pair may be a list as well as a tuple.
    """
    expect.true(isinstance(got, list), what, expect.describe(got), "a list")
    for place, (one, other) in enumerate(zip(got, expected, strict=False)):
        shown = [f"entry {place} is {expect.describe(item)}" for item in (one, other)]
        expect.true(_alike(one, other), what, *shown)
    lengths = [f"{len(each)} entries" for each in (got, expected)]
    expect.true(len(got) == len(expected), what, *lengths)


def _alike(one, other):
    if isinstance(other, tuple):
        pair = isinstance(one, tuple | list) and len(one) == len(other)
        return pair and all(map(_alike, one, other))
    return type(one) is type(other) and one == other


def _words(draw, n):
    """n words of ids from 97 to 99, of 0 to 9 tokens, and how often each occurs."""
    words = [draw.integers(97, 100, size).tolist() for size in draw.integers(0, 10, n).tolist()]
    return words, draw.integers(1, 6, n).tolist()


def _totals(words, counts):
    """The direct count: a dict from pair to total."""
    totals = {}
    for symbols, times in zip(words, counts, strict=True):
        for i in range(len(symbols) - 1):
            pair = symbols[i], symbols[i + 1]
            totals[pair] = totals.get(pair, 0) + times
    return totals


def _merged(ids, pair, new_id):
    """The merge as a replacement in a text with one sign per token."""
    text = "".join(map(chr, ids)).replace(chr(pair[0]) + chr(pair[1]), chr(new_id))
    return [ord(sign) for sign in text]


def _trained(words, counts, n_merges):
    """The direct trainer: all pairs are counted anew for every merge."""
    merges = []
    while len(merges) < n_merges and (totals := _totals(words, counts)):
        best = min(totals, key=lambda pair: (-totals[pair], pair))
        words = [_merged(word, best, 256 + len(merges)) for word in words]
        merges.append(best)
    return merges


def _encoded(pieces, merges):
    """All merges, one after the other, in each piece."""
    ids = []
    for piece in pieces:
        word = list(piece.encode())
        for rank, pair in enumerate(merges):
            word = _merged(word, pair, 256 + rank)
        ids += word
    return ids


def _pieces(draw, n):
    """n words of 1 to 8 letters, each after the first with a space before."""
    sizes = draw.integers(1, 9, n).tolist()
    words = ["".join(draw.choice(LETTERS) for _ in range(size)) for size in sizes]
    return words[:1] + [" " + word for word in words[1:]]


@check(
    without=ON_LISTS,
    rests_on=(
        "most frequent first, and the smaller pair first where counts are equal",
        "Every place counts where the two stand side by side",
        "Count the pairs of neighbouring tokens",
        "how often each word occurs",
    ),
)
def count_pairs(student, draw):
    """Totals of neighbouring pairs, in the order in which they would be merged."""
    expected = [((2, 3), 6), ((5, 2), 1)]
    got = student([[5, 2, 3], [2, 3]], [1, 5])
    _same(got, expected, "for the words [5, 2, 3] and [2, 3], counts 1 and 5, the pairs are wrong")
    got = student([[7, 7, 7], [], [8]], [2, 3, 4])
    _same(got, [((7, 7), 4)], "for [7, 7, 7], counted 2 times, and shorter words, it is wrong")
    got = student([[4, 1, 9], [3, 9], [1, 4]], [1, 1, 1])
    expected = [((1, 4), 1), ((1, 9), 1), ((3, 9), 1), ((4, 1), 1)]
    _same(got, expected, "for the words [4, 1, 9], [3, 9], [1, 4], all counted once, it is wrong")
    got = student([[0, 10], [10, 0], [9, 300], [9, 40], [0, 10]], [9, 10, 10, 10, 3])
    expected = [((0, 10), 12), ((9, 40), 10), ((9, 300), 10), ((10, 0), 10)]
    _same(got, expected, "for words with the ids 0, 9, 10, 40 and 300, one word twice, it is wrong")
    for n in (1, 8, 30):
        words, counts = _words(draw, n)
        expected = sorted(_totals(words, counts).items(), key=lambda item: (-item[1], item[0]))
        _same(student(words, counts), expected, f"for {n} random words the result is wrong")
    with expect.care():
        _same(student([], []), [], "without words there are no pairs")


@check(
    without=ON_LISTS,
    rests_on=(
        "Replace a pair wherever it stands, from left to right",
        "a new list; what was merged cannot be merged once more",
        "A token can be used once",
    ),
)
def merge_pair(student, draw):
    """Replace a pair from left to right."""
    hand = [7, 8, 7, 7, 8, 8]
    got = student(hand, (7, 8), 300)
    _same(got, [300, 7, 300, 8], f"merging (7, 8) in {hand} into 300 gives a wrong result")
    _same(
        student([7, 8, 8, 7], (8, 7), 300), [7, 8, 300], "merging (8, 7) in [7, 8, 8, 7] is wrong"
    )
    _same(student([7, 7, 7], (7, 7), 300), [300, 7], "merging (7, 7) in [7, 7, 7] is wrong")
    _same(student([7, 7, 7, 7], (7, 7), 300), [300, 300], "merging (7, 7) in [7, 7, 7, 7] is wrong")
    for ids, pair in (([7, 8], (7, 8)), ([7, 7], (7, 7))):
        _same(student(ids, pair, 300), [300], f"merging {pair} in {ids} is wrong")
    for ids in ([], [7], [8], [9, 9, 9], [8, 7], [7, 9, 8]):
        _same(student(ids, (7, 8), 300), ids, f"{ids} holds no (7, 8) and should stay as it is")
    got = student([0, 0, 5, 0, 300, 0], (0, 5), 256)
    _same(got, [0, 256, 0, 300, 0], "merging (0, 5) in [0, 0, 5, 0, 300, 0] is wrong")
    got = student([0, 0, 300, 301, 0, 0, 0], (0, 0), 302)
    _same(got, [302, 300, 301, 302, 0], "merging (0, 0) in [0, 0, 300, 301, 0, 0, 0] is wrong")
    got = student([17, 8, 7, 80, 7, 8], (7, 8), 300)
    _same(got, [17, 8, 7, 80, 300], "merging (7, 8) in [17, 8, 7, 80, 7, 8] is wrong")
    for size in (5, 11, 40):
        ids, pair = draw.integers(97, 100, size).tolist(), tuple(draw.integers(97, 100, 2).tolist())
        expected = _merged(ids, pair, 256)
        _same(student(ids, pair, 256), expected, f"merging {pair} in {ids} is wrong")


@check(
    without={**counterexamples.WITHOUT, "care": "an example is asked for: there is none to take"},
    rests_on=(
        "Return an input for which merges_from_the_right gives wrong ids",
        "returns a tuple (ids, pair, new_id), as merge_pair takes them",
    ),
)
def break_merge_pair(student, draw):
    """An input on which merges_from_the_right is wrong."""
    counterexamples.judge(student, "merge_pair", "merges_from_the_right", allowed=_ids_and_a_pair)


def _ids_and_a_pair(ids, pair, new_id):
    whole = isinstance(ids, list) and all(type(one) is int for one in [*ids, new_id])
    expect.true(
        whole, "the ids are no list of whole numbers", expect.describe(ids), "a list of ints"
    )
    two = (
        isinstance(pair, tuple | list) and len(pair) == 2 and all(type(one) is int for one in pair)
    )
    expect.true(
        two, "this is no pair of ids", expect.describe(pair), "a tuple (left, right) of ints"
    )


@check(
    without=ON_LISTS,
    rests_on=(
        "how many merges to learn; fewer if no pair is left before",
        "list of pairs in the order in which they are merged",
        "Each step merges the pair that is most frequent at that time",
        "on a tie, the smallest pair",
        "number r makes the id 256 + r",
    ),
    stages={"the first merge": 1, "the merges after it": 1, "when to stop": 1},
)
def train_bpe(student, draw):
    """The merges, with counts that follow each merge and a fixed order on ties."""
    with expect.stage("the first merge"):
        _begins_rightly(student, draw)
    with expect.stage("the merges after it"):
        _goes_on_rightly(student, draw)
    with expect.stage("when to stop"):
        _stops(student)
        if expect.stands("the first merge") and expect.stands("the merges after it"):
            _trains(student, draw)


def _begins_rightly(student, draw):
    """The most frequent pair, by the counts of the words, and the smallest on a tie."""
    words = [[5, 5], [9, 4], [2, 8, 1]]
    what = f"for the words {words}, equally frequent, the first merge is wrong"
    _same(_first(student(words, [2, 2, 2], 3), 1), [(2, 8)], what)
    words = [list(b"drei"), list(b"zwei"), list(b"dr")]
    what = 'for "drei" 4 times, "zwei" 3 times and "dr" once the first merge is wrong'
    _same(_first(student(words, [4, 3, 1], 3), 1), [(101, 105)], what)
    words = [[0, 10], [9, 200], [9, 40], [0, 10], [0, 0]]
    what = f"for the words {words} with the counts 2, 5, 5, 3 and 1 the first merge is wrong"
    _same(_first(student(words, [2, 5, 5, 3, 1], 2), 1), [(0, 10)], what)
    for n in (12, 40):
        words, counts = _words(draw, n)
        what = f"for {n} random words the first merge is wrong"
        _same(_first(student(words, counts, 2), 1), _trained(words, counts, 1), what)


def _first(merges, n):
    """The first n of a list: whether it stops where it should is asked elsewhere."""
    return merges[:n] if isinstance(merges, list) else merges


def _goes_on_rightly(student, draw):
    """Every merge is as frequent as any: first of words that stand once each, whatever the ties."""
    words = [list(b"drei")] * 4 + [list(b"zwei")] * 3 + [list(b"dr")]
    what = 'for 4 words "drei", 3 words "zwei" and one word "dr", each counted once, '
    got = student(words, [1] * len(words), 5)
    _are_most_frequent(got, words, 4, what + "one of the first merges is wrong")
    for n, n_merges in ((12, 6), (40, 20)):
        words, _ = _words(draw, n)
        got = student(words, [1] * n, n_merges)
        what = f"for {n} random words, each counted once, one of the first merges is wrong"
        _are_most_frequent(got, words, n_merges - 1, what)
    if expect.stands("the first merge"):
        words, counts = [list(b"drei"), list(b"zwei"), list(b"dr")], [4, 3, 1]
        what = 'for "drei" 4 times, "zwei" 3 times and "dr" once the first four merges are wrong'
        _same(_first(student(words, counts, 5), 4), _trained(words, counts, 4), what)
        words, counts = _words(draw, 40)
        what = "for 40 random words the first 20 merges differ from those of a direct trainer"
        _same(_first(student(words, counts, 21), 20), _trained(words, counts, 20), what)


def _are_most_frequent(got, words, n, what):
    """Each of the first n merges is a pair of which there are as many as of any, by then."""
    expect.true(isinstance(got, list), what, expect.describe(got), "a list")
    expect.true(len(got) >= n, what, f"{len(got)} merges", f"{n} or more")
    for number, pair in enumerate(got[:n]):
        totals = _totals(words, [1] * len(words))
        known = next((one for one in totals if _alike(pair, one)), None)
        times, most = totals.get(known, 0), max(totals.values())
        found = f"merge number {number} is {expect.describe(pair)}, which stands {times} times"
        expect.true(times == most, what, found, f"a pair that stands {most} times by then")
        words = [_merged(word, known, 256 + number) for word in words]


def _stops(student):
    """As many merges as there can be, whichever they are."""
    words = [[1, 2], [1, 2, 3], [2, 3]]
    for n_merges in (2, 9):
        got, most = student(words, [1, 1, 1], n_merges), min(n_merges, 3)
        what = f"for the words {words} and n_merges={n_merges} there should be {most} merges"
        expect.true(isinstance(got, list), what, expect.describe(got), "a list")
        expect.true(len(got) == most, what, f"{len(got)} merges", f"{most} merges")
    what = "with n_merges=0 there is nothing to merge"
    _same(student([list(b"drei"), list(b"zwei"), list(b"dr")], [4, 3, 1], 0), [], what)
    _same(student([], [], 3), [], "without words there is nothing to merge")
    _same(student([[], [65]], [2, 1], 3), [], "without pairs there is nothing to merge")


def _trains(student, draw):
    words = [[5, 5], [9, 4], [2, 8, 1]]
    expected = [(2, 8), (5, 5), (9, 4)]
    what = f"for the words {words}, equally frequent, the merges are wrong"
    _same(student(words, [2, 2, 2], 3), expected, what)
    words, counts = [list(b"drei"), list(b"zwei"), list(b"dr")], [4, 3, 1]
    # ei 7, dr 5, then drei 4: (256, …) is counted only after ei is merged; then wei before zw.
    expected = [(101, 105), (100, 114), (257, 256), (119, 256), (122, 259)]
    what = 'for "drei" 4 times, "zwei" 3 times and "dr" once'
    _same(student(words, counts, 3), expected[:3], f"{what} the first three merges are wrong")
    _same(student(words, counts, 5), expected, f"{what} the first five merges are wrong")
    _same(student(words, counts, 9), expected, f"{what} no pair is left after five merges")

    words = [[0, 10], [9, 200], [9, 40], [0, 10], [0, 0]]
    expected = [(0, 10), (9, 40), (9, 200), (0, 0)]
    what = f"for the words {words} with the counts 2, 4, 4, 3 and 1 the merges are wrong"
    _same(student(words, [2, 4, 4, 3, 1], 9), expected, what)

    words = [[97] * 9, [97] * 5, [98, 97, 97, 97]]
    expected = _trained(words, [1, 2, 1], 6)
    _same(student(words, [1, 2, 1], 6), expected, "for aaaaaaaaa, aaaaa, baaa it is wrong")
    for n, n_merges in ((6, 12), (12, 40), (40, 60)):
        words, counts = _words(draw, n)
        expected = _trained(words, counts, n_merges)
        what = f"for {n} random words the merges differ from those of a direct trainer"
        _same(student(words, counts, n_merges), expected, what)


@check(
    without={"care": "a text and a list of pairs go in, whole numbers come out"},
    rests_on=(
        "Within each word, the pair that was learned first is merged first",
        "No merge crosses the words of split",
        "The words come from split",
        "split_words refuses lone surrogates with a ValueError",
        "encode any text with it, and get the text back",
    ),
    stages={"one word of letters": 2, "any text": 1},
)
def bpe_encode(student, draw):
    """Merges within words, first learned first."""
    with expect.stage("one word of letters"):
        _encodes_words(student, draw)
    with expect.stage("any text"):
        _cuts_texts(student)
        if expect.stands("one word of letters"):
            _encodes_texts(student, draw)
            _encodes_rare_signs(student)
        for text in ("a\ud83d", "\udc00 b"):
            what = f"{text!r} holds half a character, a lone surrogate: a ValueError should say so"
            expect.raises(student, ValueError, text, [(97, 98)], what=what)


def _encodes_words(student, draw):
    """One word at a time. Whether several give one list, or a list each, is asked elsewhere."""

    def encodes(text, merges, expected, what):
        got = student(text, merges)
        joined = isinstance(got, list) and len(got) == 1 and isinstance(got[0], list)
        _same(got[0] if joined else got, expected, what)

    merges = [(98, 99), (99, 100), (97, 98), (100, 101), (97, 256)]
    what = "with the merges bc, cd, ab, de, abc the word abcde is cut wrongly"
    encodes("abcde", merges, [260, 259], what)
    what = "with the merges bc, then ab, the word abc is cut wrongly"
    encodes("abc", [(98, 99), (97, 98)], [97, 256], what)
    what = "with the merges ab, (257, 99), abab the word ababc is cut wrongly"
    encodes("ababc", [(97, 98), (257, 99), (256, 256)], [258, 99], what)
    what = "with the merge aa the word aaa is cut wrongly"
    encodes("aaa", [(97, 97)], [256, 97], what)
    for size in (9, 20):
        word = "".join(draw.choice("aabc") for _ in range(size))
        merges = _trained([list(word.encode())], [1], 6)
        order = draw.permutation(len(merges)).tolist()
        known = [pair for pair in (merges[place] for place in order) if max(pair) < 256]
        what = f"the ids of {word} are wrong"
        encodes(word, merges, _encoded([word], merges), what)
        encodes(word, known, _encoded([word], known), what)


def _cuts_texts(student):
    """Where it does not matter which pair goes first, nor with which id the merges begin."""
    for text, merges, expected, what in (
        ("a b", [(97, 32)], [97, 32, 98], '"a" and " b": no merge crosses them'),
        ("ß🙂", [], list("ß🙂".encode()), "one, of six bytes, without merges"),
        ("", [(97, 98)], [], "none: an empty text has no tokens"),
        (" \0 a \n", [(32, 10)], [32, 0, 32, 97, 256], "cut wrongly"),
        ("ß, ß", [(195, 159)], [256, 44, 32, 256], "cut wrongly, with a merge of the bytes of ß"),
    ):
        got = student(text, merges)
        if got != [number - 256 if number > 255 else number for number in expected]:
            _same(got, expected, f"the words of {text!r} are {what}")
    got = student("it's", [(116, 39)], {STAND_IN: Whole.__name__})
    if got != [105, 0, 115]:
        what = (
            "with a `split` that leaves \"it's\" whole, and a merge of t and ', it is cut wrongly"
        )
        _same(got, [105, 256, 115], what)


def _encodes_texts(student, draw):
    text = "It's  2 o'clock,\n\tOK? \0\0 Ab 2026"
    pieces = ["It", "'", "s", " ", " 2", " o", "'", "clock", ",", "\n", "\t", "OK", "?"]
    pieces += [" \0\0", " Ab", " 2026"]
    merges = [(0, 0), (32, 256), (50, 48), (258, 50), (32, 32), (10, 9), (32, 50), (65, 98)]
    merges += [(39, 115), (44, 10), (32, 259), (79, 75)]
    what = f"the ids of {text!r}, with merges of other signs than letters, are wrong"
    _same(student(text, merges), _encoded(pieces, merges), what)
    for n in (4, 12, 30):
        pieces = _pieces(draw, n)
        merges = _trained([list(piece.encode()) for piece in pieces], [1] * n, 12)
        pieces += [" " + piece.strip() for piece in _pieces(draw, n)]
        expected = _encoded(pieces, merges)
        what = f"the ids of a text of {len(pieces)} words are wrong"
        _same(student("".join(pieces), merges), expected, what)


def _encodes_rare_signs(student):
    """Signs that are several characters, or look like others."""
    family, accent, other = "👩\u200d👧", "e\u0301 \xe9", "\u00a0x\u2003\ufeff٣²ﬁ\U00010348"
    for text, pieces in (
        (family, [family]),
        (accent, ["e", "\u0301", " \xe9"]),
        (other, ["\u00a0", "x", "\u2003", "\ufeff", "٣", "²ﬁ\U00010348"]),
    ):
        merges = _trained([list(piece.encode()) for piece in pieces], [1] * len(pieces), 5)
        what = f"the ids of {text!r}, in which some signs are rare, are wrong"
        _same(student(text, merges), _encoded(pieces, merges), what)


@check(
    without={"care": "whole numbers and a list of pairs go in, a text comes out"},
    rests_on=(
        "join the bytes of the tokens, and read them as UTF-8",
        "bytes that are not UTF-8, as in half a character, become U+FFFD",
        "Note that a token may end within a character",
        "encode any text with it, and get the text back",
    ),
)
def bpe_decode(student, draw):
    """Bytes of the tokens, joined, then read as UTF-8."""
    merges = [(97, 98), (32, 256), (99, 257)]
    what = "with the merges ab, _ab and c_ab (_ is the space), "
    expect.equal(student([97, 256, 257], merges), "aab ab", what + "[97, 256, 257] is read wrongly")
    expect.equal(student([258, 99], merges), "c abc", what + "[258, 99] is read wrongly")
    expect.equal(student([], merges), "", "no tokens are an empty text")
    for token, text in ((97, "a"), (256, "ab"), (258, "c ab"), (195, "\ufffd")):
        expect.equal(student([token], merges), text, what + f"[{token}] is read wrongly")
    expect.equal(student([195, 159, 33], []), "ß!", "the bytes 195, 159, 33 are read wrongly")
    smile = list("🙂".encode())
    got = student([256, 257], [tuple(smile[:2]), tuple(smile[2:])])
    expect.equal(got, "🙂", "a smile of two tokens, with two of its bytes each, is read wrongly")
    got = student([97, *smile[:2], 98], [])
    expect.equal(got, "a\ufffdb", "half a smile between a and b should be one U+FFFD")
    got = student([97, *smile[:3]], [])
    expect.equal(got, "a\ufffd", "three quarters of a smile, at the end, should be one U+FFFD")
    got = student([255, 65, 128, 0, 10, 13, 32, 256], [(32, 32)])
    what = "bytes that are no UTF-8, among A, a zero, line breaks and spaces, are read wrongly"
    expect.equal(got, "\ufffdA\ufffd\0\n\r   ", what)
    for n in (3, 10, 30):
        pieces = _pieces(draw, n)
        merges = _trained([list(piece.encode()) for piece in pieces], [1] * n, 15)
        text = "".join(pieces)
        expect.equal(student(_encoded(pieces, merges), merges), text, "a text does not come back")


def _sinusoid(position, column, d_model):
    angle = position / 10000 ** ((column - column % 2) / d_model)
    return math.cos(angle) if column % 2 else math.sin(angle)


def _sinusoids(positions, d_model):
    rows = [[_sinusoid(t, j, d_model) for j in range(d_model)] for t in positions.tolist()]
    return _tensor(rows)


def _close_waves(got, expected, what):
    """The first pair turns at speed 1, to the last digit; the others' speeds may be float32.

    Exponents in float32, torch.arange's own precision, move an angle of a few dozen by 1e-5.
    """
    expect.shape(got, expected.shape)
    expect.dtype(got, expected.dtype)
    expect.close(got[..., :2], expected[..., :2], what)
    expect.close(got, expected, what, atol=1e-4)


@check(
    without={"gradients": "positions are counted, not learned"},
    asks={
        "dtype": "of the positions' dtype",
    },
    rests_on=(
        "column 2i: sin(position / 10000^(2i / d_model)); column 2i + 1: cos of the same",
        "Note that sines and cosines take turns",
        "Raises ValueError if d_model is odd",
        "each hand turns by the same angle, wherever it stood",
    ),
)
def sinusoidal_positions(student, draw):
    """Interleaved sines and cosines; a shift is a rotation."""
    positions = torch.arange(7, dtype=F64)
    table = student(positions, 12)
    expect.shape(table, (7, 12), axes="T, d_model")
    expect.dtype(table, F64)
    got = student(_tensor([0.0]), 6)
    expected = _tensor([[0.0, 1, 0, 1, 0, 1]])
    expect.close(got, expected, "position 0 should be 0, 1, 0, 1, …: sine and cosine take turns")
    got = student(_tensor([1.0, 2.0]), 4)
    expected = _tensor(
        [[math.sin(t), math.cos(t), math.sin(t / 100), math.cos(t / 100)] for t in (1.0, 2.0)]
    )
    what = "for d_model=4, row t should be sin t, cos t, sin t/100, cos t/100; at t = 1 and 2"
    _close_waves(got, expected, what)
    for d_model in (2, 6, 12, 64):
        positions = _in_float32(draw.uniform(9, low=0.0, high=200.0))
        what = f"with d_model={d_model} the values are wrong"
        got = student(draw.strided(positions), d_model)
        _close_waves(got, _sinusoids(positions, d_model), what)
    for odd in (5, 1):
        what = f"d_model={odd} is odd: a ValueError should say so"
        expect.raises(student, ValueError, positions, odd, what=what)
    shift = _in_float32(draw.uniform(1, low=5.0, high=50.0))
    pairs = torch.view_as_complex(_sinusoids(positions, 12).unflatten(1, (6, 2)))
    # sin + i·cos turns backwards, by the same angles at every position
    angles = -shift / 10000 ** (torch.arange(6, dtype=F64) / 6)
    turned = torch.view_as_real(pairs * torch.polar(torch.ones(6, dtype=F64), angles)).flatten(1)
    what = "shifting all positions should turn each pair of columns, all rows by the same angle"
    _close_waves(student(positions + shift, 12), turned, what)


def _turning(shift, d_model):
    """Entry (row, column): cos on the diagonal, -sin or sin beside it, 0 elsewhere."""

    def entry(row, column):
        angle = shift / 10000 ** (row // 2 * 2 / d_model)
        if row // 2 != column // 2:
            return 0.0
        if row == column:
            return math.cos(angle)
        return math.sin(angle) * (-1 if row < column else 1)

    return _tensor([[entry(row, column) for column in range(d_model)] for row in range(d_model)])


@check(
    without={
        "care": "two numbers go in: no device and no dtype",
        "gradients": "two numbers go in",
    },
    rests_on=(
        "is the row of position t + shift",
        "below 0 it leads back",
        "All other entries are 0",
    ),
)
def rotation(student, draw):
    """A block for each clock on the diagonal, and zeros beside them."""
    by_hand = _tensor([[0.0, -1.0], [1.0, 0.0]])
    got = _matrix(student, math.pi / 2, 2)
    what = "for d_model=2 a shift of π/2 leads from (sin, cos) to (cos, -sin): R is wrong"
    expect.close(got, by_hand, what, atol=1e-5)
    got = _matrix(student, 0, 6)
    expect.close(got, torch.eye(6, dtype=F64), "a shift of 0 should change nothing", atol=1e-5)
    for shift, d_model in ((1, 4), (-3, 8), (5.5, 64), (2000, 4)):
        got, expected = _matrix(student, shift, d_model), _turning(shift, d_model)
        positions = draw.uniform(9, low=0.0, high=50.0)
        what = f"with shift={shift} and d_model={d_model}, rows of positions times R "
        what += f"are not the rows {abs(shift)} {'ahead' if shift > 0 else 'back'}"
        rows = _sinusoids(positions, d_model) @ got
        expect.close(rows, _sinusoids(positions + shift, d_model), what, atol=1e-3)
        what = f"the entries of R are wrong for shift={shift} and d_model={d_model}"
        expect.close(got, expected, what, atol=1e-4)


def _matrix(student, shift, d_model):
    R = student(shift, d_model)  # noqa: N806
    expect.shape(R, (d_model, d_model), axes="d_model, d_model")
    return R.double()


def _in_float32(positions):
    """Multiples of 1/64: float32 has them as they are, and adds them without rounding."""
    return (64 * positions).round() / 64


def _turned(x, positions, base=10000.0):
    """Every pair as a complex number, times a number of length 1."""
    half = x.shape[-1] // 2
    angles = positions.unsqueeze(1) * base ** (-torch.arange(half, dtype=F64) / half)
    pairs = torch.view_as_complex(x.unflatten(-1, (half, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@check(
    without={"gradients": "positions are counted, not learned; that of x is compared"},
    asks={
        "dtype": "of x's dtype",
    },
    rests_on=(
        "turned by position / base^(2i / d_head), from the first axis towards the second",
        "The base is 10000, as for the clocks, unless the caller gives another one",
        "The lengths of the vectors stay as they are",
        "so it depends on m − n",
        "So x may be bfloat16, but the positions are float32 or float64",
        "Only the result is rounded to x's dtype",
    ),
)
def rotary(student, draw):
    """Each pair turned by its own angle; dot products see the difference of positions only."""
    x, positions = draw.normal(2, 3, 5, 6), draw.uniform(5, high=30.0)
    out = student(x, positions)
    expect.shape(out, (2, 3, 5, 6), axes="B, H, T, d_head")
    expect.dtype(out, F64)
    what = "turning should not change the length of a vector"
    expect.close(out.norm(dim=-1), x.norm(dim=-1), what)
    right = _tensor([[1.0, 0, 2, 0]])
    expect.close(student(right, _tensor([0.0])), right, "position 0 should turn nothing")
    got = student(right, _tensor([math.pi / 2]))
    small = math.pi / 200
    expected = _tensor([[0.0, 1, 2 * math.cos(small), 2 * math.sin(small)]])
    _close_waves(got, expected, "for (1, 0, 2, 0) at position π/2 the result is wrong")
    _close_waves(out, _turned(x, positions), "the values differ from a product of complex numbers")
    for shape in ((7, 2), (7, 12), (5, 7, 18), (3, 3, 3, 6)):
        x, positions = _turns(student, draw, shape)
    for base in (100.0, 500000.0):
        what = f"with base={base:g} the result is wrong"
        _close_waves(student(x, positions, base), _turned(x, positions, base), what)
    _sees_differences(student, draw)
    _counts_beyond_bfloat16(student, draw)
    with expect.care():
        for shape in ((1, 3, 1, 6), (3, 1, 7, 2)):
            _turns(student, draw, shape)
    with expect.care():
        far, loud = positions + 150.0, 50.0 * x
        what = "for numbers in the hundreds the result is wrong"
        expect.close(student(loud, far), _turned(loud, far), what, atol=0.05)
    with expect.care("gradients"):
        q, m, cotangent = draw.normal(5, 6), draw.uniform(5, high=30.0), draw.normal(5, 6)
        got = student.gradients(q, m, cotangent=cotangent)[0]
        expect.true(got is not None, "no gradient flows back to x")
        _close_waves(got, _turned(cotangent, -m), "the gradient of x is wrong")


def _turns(student, draw, shape):
    x, positions = draw.normal(*shape), draw.uniform(shape[-2], high=30.0)
    got = student(draw.strided(x), draw.strided(positions))
    what = f"for x of shape {shape} the result is wrong"
    _close_waves(got, _turned(x, positions), what)
    return x, positions


def _counts_beyond_bfloat16(student, draw):
    """x is a bfloat16, the positions are not: counted in bfloat16, 257 would be 256."""
    x, positions = draw.uniform(2, 600, 6, low=-1.0).bfloat16(), torch.arange(600.0)
    got = student(x, positions)
    expect.shape(got, x.shape)
    what = "with x in bfloat16 and positions in float32 the result should be of x's dtype"
    with expect.care("dtype"):
        expect.true(got.dtype == x.dtype, what, str(got.dtype), str(x.dtype))
    got, expected = got.double(), _turned(x.double(), positions.double())
    what = "with x in bfloat16 and positions 0.0 to 599.0 in float32 the values are wrong"
    expect.close(got, expected, what, atol=0.05)


def _sees_differences(student, draw):
    q, k = draw.normal(5, 6), draw.normal(5, 6)
    m, n = draw.uniform(5, high=30.0), draw.uniform(5, high=30.0)
    expected = (_turned(q, m) * _turned(k, n)).sum(1)
    what = "the dot products change when query and key both move by 17 positions"
    after = student(q, m + 17.0), student(k, n + 17.0)
    expect.shape(after[0], q.shape)
    expect.shape(after[1], k.shape)
    expect.close((after[0] * after[1]).sum(1), expected, what, atol=1e-3)
