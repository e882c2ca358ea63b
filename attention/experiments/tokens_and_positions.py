"""Lesson 08: what a tokeniser was trained on, what positions are good for, and what the root is.

In the task for positions one layer of attention says the token three places before each token.
"""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, seeded
from attention.provided.data.numbers import in_words
from attention.provided.training_steps import take_steps

ANSWERS = "tokens_and_positions"  # the lesson whose exercises this would answer

SEEDS = (0, 1, 2)
FEW = 50  # texts kept aside of each kind: docstrings, or ten numbers each
BACK, TOKENS, D_MODEL = 3, 16, 64
MOST = 96  # positions that a learned table has
LENGTHS = (12, 24, 48, 96)
SMALL = 1 / math.sqrt(D_MODEL)  # a start of the table that √d_model brings to size 1
KINDS = ("none", "learned", "sinusoidal", "rotary")


def clocks(first: int, T: int) -> Tensor:
    """The hands of the clocks at T positions from ``first`` on: complex numbers of size 1,
    (T, D_MODEL / 2)."""
    speeds = torch.logspace(0, -4, D_MODEL // 2 + 1)[:-1]
    angles = torch.outer(torch.arange(first, first + T, dtype=speeds.dtype), speeds)
    return torch.polar(torch.ones_like(angles), angles)


def turned(x: Tensor, hands: Tensor) -> Tensor:
    """Turn each pair of features of (B, T, D_MODEL) by the clocks (T, D_MODEL / 2)."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * hands).flatten(-2)


class LooksBack(nn.Module):
    """One head of attention over embedded tokens, and a linear read-out.

    kind   "sinusoidal" or "learned" positions, added to the rows; "rotary"; or "none"
    root   whether the rows of the table are multiplied by √d_model
    start  standard deviation of the table before training

    Raises ValueError for another kind.
    """

    def __init__(self, kind: str, root: bool = True, start: float = SMALL):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
        self.kind, self.factor = kind, 1 / SMALL if root else 1.0
        self.table = nn.Parameter(start * torch.randn(TOKENS, D_MODEL))
        self.W_q, self.W_k, self.W_v = (nn.Linear(D_MODEL, D_MODEL, bias=False) for _ in range(3))
        self.read_out = nn.Linear(D_MODEL, TOKENS)
        if kind == "learned":
            self.places = nn.Parameter(torch.randn(MOST, D_MODEL) / 50)

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        """Score the token at each place: (B, T), which begin at position ``first``, to
        (B, T, TOKENS)."""
        T = ids.shape[1]
        x, hands = self.factor * self.table[ids], clocks(first, T)
        if self.kind == "learned":
            x = x + self.places[first : first + T]
        elif self.kind == "sinusoidal":
            x = x + torch.view_as_real(hands).flip(-1).flatten(-2)  # sines first
        q, k = self.W_q(x), self.W_k(x)
        if self.kind == "rotary":
            q, k = turned(q, hands), turned(k, hands)
        weights = (q @ k.mT / math.sqrt(D_MODEL)).softmax(dim=-1)  # (B, T, T)
        scores: Tensor = self.read_out(weights @ self.W_v(x))
        return scores


def train_one(
    kind: str,
    seed: int,
    length: int = 24,
    steps: int = 300,
    random_start: bool = False,
    back: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train on random tokens, then count what is right in sequences of several lengths.

    length        T of the sequences in training
    random_start  let each batch begin at a random position instead of at 0
    back          how many places back the token stands; None: BACK
    options       `root` and `start` of `LooksBack`
    returns       "lengths" and "right", lists; "losses": means of ten steps, in nats a token
    """
    back = back or BACK
    torch.manual_seed(seed)
    model = LooksBack(kind, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss() -> Tensor:
        ids = torch.randint(TOKENS, (32, length))
        first = int(torch.randint(MOST - length + 1, ())) if random_start else 0
        return F.cross_entropy(model(ids, first)[:, back:].mT, ids[:, :-back])

    losses = list(take_steps((loss() for _ in range(steps)), optimizer))
    return {
        "lengths": list(LENGTHS),
        "right": [round(_right(model, T, back), 3) for T in LENGTHS],
        "losses": [round(sum(losses[i : i + 10]) / 10, 4) for i in range(0, steps, 10)],
    }


@torch.no_grad()
def _right(model: LooksBack, T: int, back: int) -> float:
    ids = torch.randint(TOKENS, (100, T))
    return (model(ids)[:, back:].argmax(dim=-1) == ids[:, :-back]).double().mean().item()


def train_tokeniser(
    learns_from: str,
    seed: int,
    docstrings: Callable[..., list[str]],
    count_words: Callable[..., Any],
    train_bpe: Callable[..., Any],
    bpe_encode: Callable[..., Any],
    merges: int = 2000,
) -> dict[str, float]:
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


def farther(kind: str, back: int, seed: int, steps: int = 300) -> dict[str, Any]:
    """Train to say the token so many places back; what is right, and when the loss is below 0.5.

    returns  "right", at 24 tokens, and "steps", the first ten steps with such a mean loss, by
             their last one; 0 if there are none
    """
    found = train_one(kind, seed, steps=steps, back=back)
    below = [10 * (i + 1) for i, loss in enumerate(found["losses"]) if loss < 0.5]
    right = found["right"][found["lengths"].index(24)]
    return {"right": right, "steps": below[0] if below else 0}


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
ANSWERS_TO_QUESTIONS = {
    "08 farther back": Experiment(
        claim="The token ten places back takes as many steps as the token one place back",
        control="how many places back, for three kinds of positions; task, layer, 300 steps and "
        "rate kept",
        points=[
            point
            for kind in ("learned", "sinusoidal", "rotary")
            for back in (1, 3, 10)
            for point in seeded(SEEDS, kind=kind, back=back)
        ],
        run=farther,
        again={"kind": "rotary", "back": 10, "seed": 0},
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
