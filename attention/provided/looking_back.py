"""The task of lesson 08: one layer of attention says the token three places before each token."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided.descent import take_steps

ANSWERS = "tokens_and_positions"  # the lesson whose exercises this would answer
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
    **options: Any,
) -> dict[str, Any]:
    """Train on random tokens, then count what is right in sequences of several lengths.

    length        T of the sequences in training
    random_start  let each batch begin at a random position instead of at 0
    options       `root` and `start` of `LooksBack`
    returns       "lengths" and "right", lists; "losses": means of ten steps, in nats a token
    """
    torch.manual_seed(seed)
    model = LooksBack(kind, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss() -> Tensor:
        ids = torch.randint(TOKENS, (32, length))
        first = int(torch.randint(MOST - length + 1, ())) if random_start else 0
        return F.cross_entropy(model(ids, first)[:, BACK:].mT, ids[:, :-BACK])

    losses = list(take_steps((loss() for _ in range(steps)), optimizer))
    return {
        "lengths": list(LENGTHS),
        "right": [round(_right(model, T), 3) for T in LENGTHS],
        "losses": [round(sum(losses[i : i + 10]) / 10, 4) for i in range(0, steps, 10)],
    }


@torch.no_grad()
def _right(model: LooksBack, T: int) -> float:
    ids = torch.randint(TOKENS, (100, T))
    return (model(ids)[:, BACK:].argmax(dim=-1) == ids[:, :-BACK]).double().mean().item()
