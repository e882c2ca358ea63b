"""The library of lesson 08 against the tokenizers package, and on rare texts and far positions."""

import json
import math
import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from attention.tokens_and_positions import (
    PairIndex,
    bpe_decode,
    bpe_encode,
    count_pairs,
    count_words,
    docstrings,
    rotary,
    split_words,
    train_bpe,
)

F64 = torch.float64

ids = st.integers(97, 99)  # few, so that pairs repeat and overlap
words = st.lists(st.tuples(st.lists(ids, max_size=9), st.integers(1, 4)), max_size=9)
TEXT = "\n".join(docstrings(math, random, np))[:200_000]
WORDS, COUNTS = count_words(TEXT.splitlines())
MERGES = train_bpe(WORDS, COUNTS, 500)


def byte_names():
    """The character by which the tokenizers package shows each byte, in the order of the bytes."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte if byte in shown else 256 + hidden.index(byte)) for byte in range(256)]


TO_BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
# The words of the course, in the terms of another engine: there \w holds combining marks as well.
PATTERN = r" ?[\p{L}\p{Nl}\p{No}_]+| ?\p{Nd}+| ?[^\s\p{L}\p{N}_]+|\s+(?!\S)|\s+"


def package_bpe(texts, n_merges):
    """The merges of the tokenizers package, for words that are cut already, as pairs of ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = TO_BYTES
    # Named first, the bytes get the ids 0 to 255: on a tie the smallest pair of ids is merged.
    settings = {"special_tokens": byte_names(), "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=256 + n_merges, **settings)
    tokenizer.train_from_iterator((word for text in texts for word in split_words(text)), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return [(model["vocab"][left], model["vocab"][right]) for left, right in model["merges"]]


# Byte-pair encoding


def test_merges_on_real_text_are_those_of_the_tokenizers_package():
    assert package_bpe(TEXT.splitlines(), 500) == MERGES


def test_ids_are_those_of_the_tokenizers_package():
    names = byte_names()
    for left, right in MERGES:
        names.append(names[left] + names[right])
    pairs = [(names[left], names[right]) for left, right in MERGES]
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, pairs))
    words = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, TO_BYTES])
    unseen = " ".join(docstrings(torch))[:100_000] + " Größe 12½ Ⅷ_x  日本語\n\n🙂"
    assert bpe_encode(unseen, MERGES) == tokenizer.encode(unseen).ids


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


# Rows and positions


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
