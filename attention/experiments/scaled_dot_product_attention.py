"""Lesson 05: what the scale of the scores does to learning, and what the projections do.

Two small tasks for one attention head: find the key that fits, and fetch what it stands for.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, seeded
from attention.provided.training_steps import take_steps

SEEDS = (0, 1, 2)
RATES = (0.0003, 0.001, 0.003, 0.01)
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


def at_each_rate(score: str, d: int, seed: int) -> dict[str, Any]:
    """The final loss at each learning rate, and the lowest of them."""
    losses = [round(find_keys(score, d, rate, seed), 5) for rate in RATES]
    return {"rates": list(RATES), "losses": losses, "loss": min(losses)}


def fetch_items(roles: str, steps: int, seed: int) -> dict[str, float]:
    """The mean loss of the last twenty steps, as the lesson takes it."""
    return {"loss": round(sum(fetch(roles, seed, steps)[-20:]) / 20, 5)}


def divided_by(
    power: float,
    d: int,
    seed: int,
    scaled_dot_product_attention: Callable[..., Tensor],
    times: float = 1,
    steps: int = 120,
    n: int = 16,
) -> dict[str, float]:
    """Train W such that query i finds key i, as the lesson does under "Break it".

    power    scores are divided by d to this power: 0.5 is √d
    times    the rate is 0.05 times this
    returns  the loss of the last step
    """
    draw = torch.Generator().manual_seed(seed)
    keys = torch.randn(n, d, generator=draw)
    rotation = torch.linalg.qr(torch.randn(d, d, generator=draw)).Q
    W = (torch.randn(d, d, generator=draw) / d**0.5).requires_grad_()
    optimizer = torch.optim.SGD([W], lr=0.05 * times)
    undo = d ** (0.5 - power)

    def loss() -> Tensor:
        context = scaled_dot_product_attention(keys @ rotation @ W * undo, keys, torch.eye(n))
        return (context - torch.eye(n)).square().sum(dim=1).mean()

    *_, last = take_steps((loss() for _ in range(steps)), optimizer)
    return {"loss": round(last, 5)}


EXPERIMENTS = {
    "additive against dot": Experiment(
        claim="From d = 64 on the undivided dot product learns at none of four rates; additive and "
        "scaled scores learn there",
        control="score function and d changed; task, steps, optimiser kept, best of four rates",
        points=[
            {"score": score, "d": d, "seed": seed}
            for d in (4, 16, 64, 256)
            for score in SCORES
            for seed in SEEDS
        ],
        run=at_each_rate,
        again={"score": "dot", "d": 16, "seed": 0},
    ),
}
ANSWERS_TO_QUESTIONS = {
    "05 fetch without a matrix": Experiment(
        claim="Items are fetched without W_v as with it; without W_q they are after 1200 steps",
        control="which of the three matrices there are, and the steps; task, read-out and rate "
        "kept",
        points=[
            point
            for roles, steps in (("q k v", 300), ("q k", 300), ("k v", 300), ("k v", 1200))
            for point in seeded(SEEDS, roles=roles, steps=steps)
        ],
        run=fetch_items,
        again={"roles": "q k", "steps": 300, "seed": 0},
    ),
    "05 divided by d": Experiment(
        claim="Divided by d in place of √d, scores learn hardly anything at the lesson's rate, and "
        "do at one d times larger",
        control="what the scores are divided by, then the rate; keys, start and steps kept",
        points=[
            point
            for d in (512, 64)
            for power, times in ((0.5, 1), (1, 1), (1, d))
            for point in seeded(SEEDS, power=power, d=d, times=times)
        ],
        run=divided_by,
        again={"power": 1, "d": 64, "times": 1, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "The softmax's Jacobian keeps its size when scores are divided by √d, and vanishes for "
        "large d when not",
        control="the division; same queries and keys, medians and quarters of 500 queries",
        seeds="1",
        where="What large scores do to learning",
    ),
    Claim(
        "Training fails where the scores are large at the start, divided or not, and learns "
        "undivided from a smaller start",
        control="division, size of the start and rate changed one at a time; data and steps kept",
        seeds="0, 1, 2",
        where="Break it",
    ),
    Claim(
        "Without projections a random token's weight on itself grows towards 1 with d",
        control="d changed; ten tokens, 200 sequences a seed",
        seeds="0, 1, 2",
        where="Where q, k and v come from",
    ),
    Claim(
        "Items are fetched once queries and keys are made differently, and in fewer steps with a "
        "matrix for each role",
        control="which of q, k and v share a matrix; task, read-out, steps and rate kept",
        seeds="0, 1, 2",
        where="Where q, k and v come from",
    ),
]
