"""Two small tasks for one attention head: find the key that fits, and fetch what it stands for.

Lesson 05 compares scores and projections on them; `benchmarks/evidence` repeats both over seeds.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided.descent import take_steps

SCORES = ("dot", "scaled dot", "additive")
ITEMS, CONTENT = 8, 4  # of the second task: items in a row, numbers that each item holds


def find_keys(score: str, d: int, rate: float, seed: int, steps: int = 120) -> float:
    """Train a score function until each of 16 queries, rotated keys, finds its key again.

    score    "dot", "scaled dot" or "additive"
    d        length of queries, keys and, if additive, of the hidden layer
    rate     learning rate of Adam
    returns  the loss of the last step: mean squared distance of a row of weights from one-hot;
             2 is the worst, a wrong key with a weight of 1
    """
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(16, d, generator=generator)
    queries = keys @ torch.linalg.qr(torch.randn(d, d, generator=generator)).Q
    W_q, W_k, v = (
        (torch.randn(*size, generator=generator) / d**0.5).requires_grad_()
        for size in ((d, d), (d, d), (d,))
    )
    parameters = [W_q, W_k, v] if score == "additive" else [W_q, W_k]
    optimizer = torch.optim.Adam(parameters, lr=rate)

    def loss() -> Tensor:
        q, k = queries @ W_q, keys @ W_k  # (16, d)
        if score == "additive":
            scores = torch.tanh(q[:, None] + k) @ v  # (16, 16)
        else:
            scores = q @ k.T / (math.sqrt(d) if score == "scaled dot" else 1.0)
        return (scores.softmax(dim=1) - torch.eye(16)).square().sum(dim=1).mean()

    *_, last = take_steps((loss() for _ in range(steps)), optimizer)
    return last


def pointing_items(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Make rows of items, each with a name, the name of another item, and a content.

    returns  x (batch, 8, 20): two one-hot names of 8 and 4 random numbers,
             y (batch, 8, 4): the content of the item that each one names
    """
    names = torch.rand(batch, ITEMS, generator=generator).argsort(dim=1)
    asked = torch.randint(ITEMS, (batch, ITEMS), generator=generator)
    content = torch.randn(batch, ITEMS, CONTENT, generator=generator)
    x = torch.cat([F.one_hot(names, ITEMS), F.one_hot(asked, ITEMS), content], dim=-1)
    place = names.argsort(dim=1).gather(1, asked)  # where the item asked for stands
    return x, content.gather(1, place[..., None].expand(-1, -1, CONTENT))


class Fetcher(nn.Module):
    """Attention of items on each other, then a linear read-out.

    roles    which letters share a matrix, and which have none: "" uses x itself for q, k and v;
             "qkv" one matrix for all three; "kv" one for k and v; "k v" one for each of the two;
             "q k v" three matrices
    d_model  length of an item; all matrices are (d_model, d_model), without bias
    """

    def __init__(self, roles: str, d_model: int = 2 * ITEMS + CONTENT):
        super().__init__()
        self.roles = roles.split()
        self.W = nn.ModuleDict({r: nn.Linear(d_model, d_model, bias=False) for r in self.roles})
        self.read_out = nn.Linear(d_model, CONTENT)

    def forward(self, x: Tensor) -> Tensor:
        """From items (B, T, d_model) to reports (B, T, 4)."""
        made = {letter: self.W[role](x) for role in self.roles for letter in role}
        q, k, v = (made.get(letter, x) for letter in "qkv")
        report: Tensor = self.read_out(F.scaled_dot_product_attention(q, k, v))
        return report


def fetch(roles: str, seed: int, steps: int = 300) -> list[float]:
    """Train a ``Fetcher`` on fresh items in each step; returns the losses.

    The loss is the mean squared error of a report; always saying 0 has a loss of 1.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed + 100)
    model = Fetcher(roles)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)

    def loss() -> Tensor:
        x, y = pointing_items(32, generator)
        error: Tensor = model(x) - y
        return error.square().mean()

    return list(take_steps((loss() for _ in range(steps)), optimizer))
