"""Lesson 08: what a tokeniser was trained on, what positions are good for, and what the root is."""

import random

import numpy
import torch
from torch import nn

from attention.provided.data import in_words
from attention.provided.looking_back import SMALL, train_one
from attention.tokens_and_positions import bpe_encode, count_words, docstrings, train_bpe
from benchmarks.evidence import Claim, Experiment, seeded

SEEDS = (0, 1, 2)
KINDS = ("none", "learned", "sinusoidal", "rotary")
FEW = 50  # texts kept aside of each kind: docstrings, or ten numbers each


def train_tokeniser(learns_from, seed, merges=2000):
    """Learn merges from one kind of text, or from both; bytes per token of kept-aside texts."""
    draw = random.Random(seed)
    texts = docstrings(torch, nn, nn.functional, numpy)
    draw.shuffle(texts)
    written = [in_words(n, "de") for n in draw.sample(range(1, 1_000_000), 5000)]
    kept = {"docstrings": texts[:FEW], "numbers": written[: 10 * FEW]}
    rest = {"docstrings": texts[FEW:], "numbers": written[10 * FEW :]}
    rest["both"] = rest["docstrings"] + rest["numbers"]
    learned = train_bpe(*count_words(rest[learns_from]), n_merges=merges)
    result = {}
    for kind, of in kept.items():
        text = "\n".join(of)
        result[kind] = round(len(text.encode()) / len(bpe_encode(text, learned)), 3)
    return result


EXPERIMENTS = {
    "whose merges": Experiment(
        claim="A tokeniser needs fewer tokens for the kind of text that it learned from, English "
        "docstrings or German numbers",
        control="what 2000 merges are learned from, and what is cut; the seed draws the texts that "
        "are kept aside",
        points=[
            point
            for kind in ("docstrings", "numbers", "both")
            for point in seeded(SEEDS, learns_from=kind)
        ],
        run=train_tokeniser,
        again={"learns_from": "docstrings", "seed": 0},
    ),
    "three back": Experiment(
        claim="Without positions one layer of attention does not find the token three back; with "
        "sinusoidal, learned or rotary ones it does, at lengths it was trained at (learned ones "
        "need more than 300 steps for 96 places); at longer ones only rotary positions still do",
        control="the kind of positions, and the length in training; task, layer, 300 steps and "
        "rate kept",
        points=[
            point
            for length in (24, 96)
            for kind in KINDS
            for point in seeded(SEEDS, kind=kind, length=length)
        ],
        run=train_one,
        again={"kind": "sinusoidal", "length": 24, "seed": 0},
    ),
    "random start": Experiment(
        claim="Sequences of 24 tokens that begin at random positions teach sinusoidal positions, "
        "and after more steps learned ones, most of 96 places",
        control="where the training sequences begin; compared with “three back”",
        points=[
            point
            for kind, steps in (("learned", 300), ("learned", 900), ("sinusoidal", 300))
            for point in seeded(SEEDS, kind=kind, steps=steps, random_start=True)
        ],
        run=train_one,
        again={"kind": "learned", "steps": 300, "random_start": True, "seed": 0},
    ),
    "root": Experiment(
        claim="Rows of size 1 need no root and small rows do little worse without it; rows of "
        "size √d_model do not learn",
        control="the factor √d_model, and the size of the table at the start; sinusoidal "
        "positions, task, layer, steps and rate kept",
        points=[
            point
            for start in (SMALL, 1.0)
            for root in (True, False)
            for point in seeded(SEEDS, kind="sinusoidal", root=root, start=start)
        ],
        run=train_one,
        again={"kind": "sinusoidal", "root": False, "start": 1.0, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "Merges learned from docstrings help less and less, and a German text hardly",
        control="the number of merges; one tokeniser, fifty docstrings kept aside and a German "
        "text; with exchanged texts: “whose merges”",
        seeds="none: a count",
        where="Learning the merges",
    ),
    Claim(
        "Attention without positions gives each word of “dog bites man” the row that it has in "
        "“man bites dog”; with positions it does not",
        control="the order of the words, then positions; words, table and weights kept",
        seeds="0, 1, 2 (with positions: 2)",
        where="Order",
    ),
    Claim(
        "The dot product of two sinusoidal positions depends on their distance only; one matrix "
        "leads from any position to the one five steps on",
        control="three positions, 61 shifts; 50 rows under one matrix",
        seeds="none: an identity",
        where="A shift is a rotation",
    ),
    Claim(
        "With rotary positions a score depends on the distance only, with added sinusoids also on "
        "the place",
        control="turned or added; the same query and key",
        seeds="0, 1, 2",
        where="★ Rotary positions",
    ),
    Claim(
        "Without √d_model the positions hide the words: the cosines of all rows are alike",
        control="the factor; the same table and positions; what becomes of it in training: “root”",
        seeds="0",
        where="Break it",
    ),
]
