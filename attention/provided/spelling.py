"""A small model that spells German numbers letter after letter, under any mask.

Lesson 06 trains it with a mask that leaks: the loss is splendid, and the model writes nonsense.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided.data import BOS, PAD, Vocabulary, in_words, is_test
from attention.provided.descent import take_steps

WORDS = [in_words(number, "de") for number in range(1, 1000)]
TRAINED_ON = [word for number, word in enumerate(WORDS, 1) if not is_test(number)]
LETTERS = Vocabulary("".join(WORDS))
LONGEST = 1 + max(map(len, WORDS))

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # from q, k and v (B, T, d) to (B, T, d)


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
