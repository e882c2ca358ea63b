"""The library of lesson 08 against slow direct versions and against the tokenizers package."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from attention.tokens_and_positions import (
    LearnedPositions,
    PairIndex,
    bpe_decode,
    bpe_encode,
    count_pairs,
    count_words,
    docstrings,
    embed,
    merge_pair,
    rotary,
    sinusoidal_positions,
    split_words,
    train_bpe,
)
from benchmarks.bpe import byte_level, byte_names, package_merges

F64 = torch.float64

ids = st.integers(97, 99)  # few, so that pairs repeat and overlap
words = st.lists(st.tuples(st.lists(ids, max_size=9), st.integers(1, 4)), max_size=9)
TEXT = "\n".join(docstrings(math, random, np))[:200_000]
WORDS, COUNTS = count_words(TEXT.splitlines())
MERGES = train_bpe(WORDS, COUNTS, 500)


def slow_train_bpe(words, counts, n_merges):
    """The direct trainer: counts all pairs anew for each merge, and rebuilds every word."""
    words, merges = [list(word) for word in words], []
    while len(merges) < n_merges:
        totals = {}
        for word, count in zip(words, counts, strict=True):
            for i in range(len(word) - 1):
                pair = word[i], word[i + 1]
                totals[pair] = totals.get(pair, 0) + count
        if not totals:
            break
        best = min(totals, key=lambda pair: (-totals[pair], pair))
        new_id = 256 + len(merges)
        for word in words:
            i = 0
            while i < len(word) - 1:
                if (word[i], word[i + 1]) == best:
                    word[i : i + 2] = [new_id]
                i += 1
        merges.append(best)
    return merges


def package_bpe(texts, n_merges):
    """The merges of the tokenizers package, for words that are cut already."""
    pieces = [piece for text in texts for piece in split_words(text)]
    return package_merges(pieces, n_merges, cut=False)


# Byte-pair encoding


@given(words, st.integers(0, 30))
@example([([97] * 9, 1), ([97] * 4, 2)], 30)
def test_training_agrees_with_the_direct_trainer(counted, n_merges):
    lists, counts = [word for word, _ in counted], [count for _, count in counted]
    assert train_bpe(lists, counts, n_merges) == slow_train_bpe(lists, counts, n_merges)


@given(st.lists(st.text("ab é", max_size=12), max_size=12))
@example(["aaaaaaaaa aaaa aa"])
def test_merges_are_those_of_the_tokenizers_package(texts):
    assert train_bpe(*count_words(texts), 40) == package_bpe(texts, 40)


def test_merges_on_real_text_are_those_of_both():
    assert package_bpe(TEXT.splitlines(), 500) == MERGES
    assert MERGES[:60] == slow_train_bpe(WORDS, COUNTS, 60)


def test_ids_are_those_of_the_tokenizers_package():
    names = byte_names()
    for left, right in MERGES:
        names.append(names[left] + names[right])
    pairs = [(names[left], names[right]) for left, right in MERGES]
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, pairs))
    tokenizer.pre_tokenizer = byte_level()
    unseen = " ".join(docstrings(torch))[:100_000] + " Größe 12½ Ⅷ_x  日本語\n\n🙂"
    assert bpe_encode(unseen, MERGES) == tokenizer.encode(unseen).ids


@given(words)
def test_count_pairs_counts_every_place(counted):
    lists, counts = [word for word, _ in counted], [count for _, count in counted]
    found = count_pairs(lists, counts)
    everything = [p for word, n in counted for p in list(pairwise(word)) * n]
    assert sum(total for _, total in found) == len(everything)
    assert all(total == everything.count(pair) for pair, total in found)
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))


@given(st.lists(ids, max_size=12), ids, ids)
def test_merge_pair_is_a_replacement_of_text(tokens, left, right):
    text = "".join(map(chr, tokens)).replace(chr(left) + chr(right), chr(300))
    assert merge_pair(tokens, (left, right), 300) == [ord(letter) for letter in text]


@given(words, st.integers(0, 10**6))
def test_the_index_counts_like_count_pairs(counted, seed):
    lists, counts = [word for word, _ in counted], [count for _, count in counted]
    index, draw = PairIndex(lists, counts), random.Random(seed)
    for place in draw.sample(range(len(lists)), len(lists) // 2):
        index.remove(place)
        index.words[place] = draw.choices(range(97, 100), k=draw.randrange(6))
        index.add(place)
    found = count_pairs(index.words, counts)
    assert sorted(found) == sorted(item for item in index.totals.items() if item[1])
    assert index.most_frequent() == (found[0][0] if found else None)
    for pair, _ in found:
        assert {p for p, word in enumerate(index.words) if pair in pairwise(word)} <= set(
            index.where(pair)
        )


def test_training_stops_when_no_pair_is_left_and_keeps_its_input():
    corpus = [[97, 98, 99], []]
    assert train_bpe(corpus, [1, 1], 9) == [(97, 98), (256, 99)]
    assert corpus == [[97, 98, 99], []]
    assert train_bpe([], [], 5) == train_bpe([[97]], [3], 5) == []


# Texts


@given(st.text())
@example("")
@example("👩‍👩‍👧 🇩🇪 e\u0301 ȩ̌ \u0000 \ufffd \ufeff\u2028 नमस्ते  \t\r\n ")
@example("\U0010ffff\x1c\x85\xa0")
def test_any_text_comes_back(text):
    assert "".join(split_words(text)) == text
    assert bpe_decode(bpe_encode(text, MERGES), MERGES) == text
    assert bytes(bpe_encode(text, [])) == text.encode("utf-8")
    assert len(bpe_encode(text, MERGES)) <= len(text.encode("utf-8"))


@pytest.mark.parametrize("text", ["\ud83d", "half a smile \ud83d!", "\ude00\ud83d"])
def test_lone_surrogates_are_refused(text):
    place = next(i for i, sign in enumerate(text) if "\ud800" <= sign <= "\udfff")
    for function in (
        split_words,
        lambda text: bpe_encode(text, MERGES),
        lambda text: count_words([text]),
    ):
        with pytest.raises(ValueError, match=rf"text\[{place}\].*lone surrogate") as raised:
            function(text)
        assert raised.type is ValueError


def test_words_keep_letters_digits_and_signs_apart():
    assert split_words("x_1 = größer(42)!") == ["x_", "1", " =", " größer", "(", "42", ")!"]
    assert split_words("a   b \n\n c") == ["a", "  ", " b", " \n\n", " c"]


def test_broken_bytes_are_replaced():
    half = "🙂".encode()[:2]
    assert bpe_decode([*b"ab", *half, *b"c"], []) == "ab\ufffdc"
    assert bpe_decode([], MERGES) == ""


# Rows and positions


def test_embed_scales_the_rows():
    table = torch.randn(9, 16, dtype=F64)
    tokens = torch.tensor([[3, 1, 3], [0, 8, 2]])
    torch.testing.assert_close(
        embed(tokens, table), 4 * torch.nn.functional.embedding(tokens, table)
    )


def test_sinusoids_agree_with_loops():
    found = sinusoidal_positions(torch.arange(50, dtype=F64), 12)
    for t in range(50):
        for i in range(6):
            angle = t / 10000 ** (2 * i / 12)
            assert found[t, 2 * i].item() == pytest.approx(math.sin(angle))
            assert found[t, 2 * i + 1].item() == pytest.approx(math.cos(angle))


def rotation(shift, d_model):
    """The matrix that turns each pair of a row: row @ matrix is the row `shift` positions on."""
    matrix = torch.zeros(d_model, d_model, dtype=F64)
    for i in range(0, d_model, 2):
        angle = shift / 10000 ** (i / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        matrix[i : i + 2, i : i + 2] = torch.tensor([[cos, -sin], [sin, cos]], dtype=F64)
    return matrix


@given(st.floats(-100, 100), st.sampled_from([2, 6, 64]))
def test_a_shift_is_a_rotation(shift, d_model):
    positions = torch.arange(20, dtype=F64)
    moved = sinusoidal_positions(positions + shift, d_model)
    turned = sinusoidal_positions(positions, d_model) @ rotation(shift, d_model)
    torch.testing.assert_close(moved, turned, rtol=0, atol=1e-9)
    torch.testing.assert_close(
        moved.norm(dim=1), torch.full((20,), math.sqrt(d_model / 2), dtype=F64)
    )


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="d_model=7"):
        sinusoidal_positions(torch.arange(3.0), 7)


def test_learned_positions_add_the_first_rows():
    layer = LearnedPositions(max_length=6, d_model=4)
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(layer(x), x + layer.table[:3].expand(2, 3, 4))
    assert layer(torch.zeros(2, 6, 4)).shape == (2, 6, 4)
    with pytest.raises(ValueError, match=r"T=7.*max_length=6"):
        layer(torch.zeros(2, 7, 4))


@given(st.integers(0, 10**6), st.floats(-50, 50), st.sampled_from([2, 8, 64]))
def test_rotated_dot_products_depend_on_the_difference(seed, shift, d_head):
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 3, 5, d_head, generator=generator, dtype=F64)
    m, n = 20 * torch.rand(2, 5, generator=generator, dtype=F64)
    before = (rotary(q, m) * rotary(k, n)).sum(-1)
    after = (rotary(q, m + shift) * rotary(k, n + shift)).sum(-1)
    torch.testing.assert_close(before, after)
    torch.testing.assert_close(rotary(q, m).norm(dim=-1), q.norm(dim=-1))


def test_rotary_is_a_product_of_complex_numbers():
    x, positions = torch.randn(2, 3, 5, 8, dtype=F64), torch.arange(5, dtype=F64)
    angles = positions[:, None] * 10000.0 ** (-torch.arange(4, dtype=F64) / 4)
    turned = torch.view_as_complex(x.unflatten(-1, (4, 2))) * torch.polar(
        torch.ones(5, 4, dtype=F64), angles
    )
    torch.testing.assert_close(rotary(x, positions), torch.view_as_real(turned).flatten(-2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rotary_counts_far_and_keeps_the_dtype(dtype):
    """In bfloat16 there is no 257: angles in x's dtype would be off by radians."""
    x = torch.randn(2, 3000, 12, generator=torch.Generator().manual_seed(0)).to(dtype)
    turned = rotary(x, torch.arange(3000.0))
    assert turned.dtype == dtype
    exact = rotary(x.double(), torch.arange(3000, dtype=F64))
    room = {torch.bfloat16: 0.02, torch.float16: 0.005, torch.float32: 0.005}[dtype]
    assert (turned.double() - exact).abs().max() < room
    assert rotary(x.double(), torch.arange(3000.0)).dtype == F64


def test_docstrings_are_taken_once():
    texts = docstrings(math, math)
    assert len(texts) == len(set(texts)) > 40
