"""Lesson 06: what leaks are worth, and how much past a speller of German numbers needs.

A small model spells letter after letter, under any mask. With a mask that leaks the loss is
splendid, and the model writes nonsense.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment
from attention.provided.data.numbers import in_words, is_test
from attention.provided.data.tokens import BOS, PAD, Vocabulary
from attention.provided.training_steps import take_steps

WORDS = [in_words(number, "de") for number in range(1, 1000)]
TRAINED_ON = [word for number, word in enumerate(WORDS, 1) if not is_test(number)]
LETTERS = Vocabulary("".join(WORDS))
LONGEST = 1 + max(map(len, WORDS))

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # from q, k and v (B, T, d) to (B, T, d)
Attend4 = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # the same, under a mask (T, T)


class Speller(nn.Module):
    """Letters and their positions, one head of attention, then two layers for each position.

    attend  what happens between queries, keys and values, the mask included
    """

    def __init__(self, attend: Attend, d: int = 32):
        super().__init__()
        self.attend = attend
        self.letter, self.place = nn.Embedding(len(LETTERS), d), nn.Embedding(LONGEST, d)
        self.W_q, self.W_k, self.W_v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.hidden, self.out = nn.Linear(2 * d, 2 * d), nn.Linear(2 * d, len(LETTERS))

    def forward(self, letters: Tensor) -> Tensor:
        """Score every next letter: ids (B, T) to (B, T, len(LETTERS))."""
        x = self.letter(letters) + self.place.weight[: letters.shape[1]]
        context = self.attend(self.W_q(x), self.W_k(x), self.W_v(x))
        scores: Tensor = self.out(self.hidden(torch.cat([x, context], dim=-1)).relu())
        return scores


class Report(NamedTuple):
    """What became of a training.

    losses  cross-entropy per letter, one a step, in nats
    known   share of the written words that are German numbers below 1000
    wrote   the first words that it wrote
    """

    losses: list[float]
    known: float
    wrote: list[str]


def least_loss() -> float:
    """Return the lowest expected loss per letter of a model that cannot see the next letter.

    All words are equally likely, so each costs the logarithm of their number, EOS included.
    """
    return math.log(len(TRAINED_ON)) * len(TRAINED_ON) / sum(len(word) + 1 for word in TRAINED_ON)


def train_speller(attend: Attend, seed: int, steps: int = 300) -> Report:
    """Train on the numbers below 1000 that are not test numbers, then let it write 300 words."""
    torch.manual_seed(seed)
    rows = torch.full((len(TRAINED_ON), LONGEST + 1), PAD)
    for row, word in zip(rows, TRAINED_ON, strict=True):
        ids = torch.tensor([BOS, *LETTERS.encode(word)])
        row[: len(ids)] = ids
    model = Speller(attend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def loss() -> Tensor:
        batch = rows[torch.randint(len(rows), (48,))]
        scores = model(batch[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)

    losses = list(take_steps((loss() for _ in range(steps)), optimizer))
    wrote = write(model)
    return Report(losses, sum(word in WORDS for word in wrote) / len(wrote), wrote[:4])


@torch.no_grad()
def write(model: Speller, count: int = 300) -> list[str]:
    """Draw words letter after letter: nothing comes after the last letter that is there."""
    letters = torch.full((count, 1), BOS)
    for _ in range(LONGEST):
        scores = model(letters)[:, -1]
        scores[:, [PAD, BOS]] = -torch.inf
        letters = torch.cat([letters, torch.multinomial(scores.softmax(dim=1), 1)], dim=1)
    return ["".join(LETTERS.decode(row)) for row in letters[:, 1:].tolist()]


def with_mask(masked_attention: Attend4, may_attend: Callable[[int], Tensor]) -> Attend:
    """Attention under the mask that ``may_attend`` makes for a length."""
    return lambda q, k, v: masked_attention(q, k, v, may_attend(q.shape[-2]))


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / q.shape[-1] ** 0.5


def masks(masked_attention: Attend4, causal_mask: Callable[[int], Tensor]) -> dict[str, Attend]:
    """Attention that is causal, and three ways in which it leaks, by the names of MASKS."""

    def mask_after_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Weights of what is forbidden become 0, but it has had its share of the denominator."""
        return (_scores(q, k).softmax(dim=-1) * causal_mask(q.shape[-2])) @ v

    def zero_instead(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Forbidden scores become 0, whose exponential is 1."""
        return torch.where(causal_mask(q.shape[-2]), _scores(q, k), 0.0).softmax(dim=-1) @ v

    ahead: Callable[[int], Tensor] = lambda T: torch.ones(T, T, dtype=torch.bool).tril(1)  # noqa: E731
    ways = (
        with_mask(masked_attention, causal_mask),
        mask_after_softmax,
        zero_instead,
        with_mask(masked_attention, ahead),
    )
    return dict(zip(MASKS, ways, strict=True))


def train_with(
    mask: str, seed: int, masked_attention: Attend4, causal_mask: Callable[[int], Tensor]
) -> dict[str, float]:
    """Train and write under one of MASKS."""
    return _told(train_speller(masks(masked_attention, causal_mask)[mask], seed))


def train_with_window(
    window: int,
    seed: int,
    masked_attention: Attend4,
    causal_mask: Callable[[int], Tensor],
    local_mask: Callable[[int, int], Tensor],
) -> dict[str, float]:
    """Train and write under a causal window: a letter and ``window`` letters before it."""
    attend = with_mask(masked_attention, lambda T: causal_mask(T) & local_mask(T, window))
    return _told(train_speller(attend, seed))


def train_with_a_gap(seed: int, masked_attention: Attend4) -> dict[str, float]:
    """Train and write where a position sees all letters but the one that it must predict."""
    seen: Callable[[int], Tensor] = lambda T: ~torch.ones(T, T, dtype=torch.bool).triu(1).tril(1)  # noqa: E731
    return _told(train_speller(with_mask(masked_attention, seen), seed))


def _told(report: Report) -> dict[str, float]:
    loss = sum(report.losses[-20:]) / 20
    return {"loss": round(loss, 4), "known": round(report.known, 4)}


SEEDS = (0, 1, 2)
MASKS = ("causal", "mask after softmax", "0 instead of −∞", "sees one ahead")
WINDOWS = (1, 2, 4, 8, 16)


EXPERIMENTS = {
    "what a leak is worth": Experiment(
        claim="Every leak lowers the training loss and ruins what the model writes",
        control="the mask changed; model, data, steps and rate kept",
        points=[{"mask": mask, "seed": seed} for mask in MASKS for seed in SEEDS],
        run=train_with,
        again={"mask": "causal", "seed": 0},
    ),
    "causal windows": Experiment(
        claim="A causal window of two letters before is as good for the speller as the whole past",
        control="the window changed; model, data, steps and rate kept",
        points=[{"window": window, "seed": seed} for window in WINDOWS for seed in SEEDS],
        run=train_with_window,
        again={"window": 4, "seed": 0},
    ),
    "all but the next": Experiment(
        claim="A model that fills gaps has a lower loss than a causal one and cannot write",
        control="the mask changed; compared with the causal one of “what a leak is worth”",
        points=[{"seed": seed} for seed in SEEDS],
        run=train_with_a_gap,
        again={"seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "The share of the weight that goes to padding grows with the padding",
        control="the padded length changed; the same two tokens",
        seeds="0, 1, 2",
        where="What fails without this idea",
    ),
    Claim(
        "On 64 blocks global blocks make all pairs meet in 2 steps, with random ones or without; "
        "without global ones random blocks shorten 63 steps to 7 to 12",
        control="each part of BigBird taken away in turn",
        seeds="0 to 39",
        where="BigBird without its parts",
    ),
]
