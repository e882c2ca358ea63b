"""Lesson 18: linear attention with other features, for its second open question.

The task needs distant memory: a sequence holds ``pairs`` positions that show a key and its value,
then as many that show one of these keys each, in another order. The answer is the value that stood
beside it. `make bench-efficient-attention` measures what the claims say.
"""

from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment
from attention.provided import demand
from attention.provided.progress import Bar
from attention.provided.training_steps import descend, fewer

KEYS, VALUES, PAIRS = 64, 16, 32
D_MODEL = 64
BATCH, LEARNING_RATE, STEPS = 64, 3e-3, 500
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def make(count: int, pairs: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw sequences: keys (B, 2 · pairs), shown values (B, pairs), and answers (B, pairs).

    The keys of a sequence are different ones. Answer i belongs to the key at position pairs + i.
    Raises ValueError for more pairs than there are keys, or for less than one.

    >>> keys, shown, answers = make(5, 3, torch.Generator().manual_seed(0))
    >>> keys.shape, shown.shape, answers.shape
    (torch.Size([5, 6]), torch.Size([5, 3]), torch.Size([5, 3]))
    """
    demand.counts(count=count)
    demand.counts(1, KEYS, pairs=pairs)
    keys = torch.rand(count, KEYS, generator=draw).argsort(dim=1)[:, :pairs]
    shown = torch.randint(VALUES, (count, pairs), generator=draw)
    order = torch.rand(count, pairs, generator=draw).argsort(dim=1)
    return torch.cat([keys, keys.gather(1, order)], dim=1), shown, shown.gather(1, order)


class Recaller(nn.Module):
    """One layer of attention with one head: embeddings, q, k and v, a score for each value.

    attention  any function of q, k, v, (B, T, d_k), (B, T, d_k) and (B, T, D_MODEL)
    d_k        length of queries and keys; all other vectors have D_MODEL numbers
    """

    def __init__(self, attention: Attention, d_k: int = D_MODEL):
        super().__init__()
        self.attention = attention
        self.keys, self.values = nn.Embedding(KEYS, D_MODEL), nn.Embedding(VALUES, D_MODEL)
        self.W_q, self.W_k = nn.Linear(D_MODEL, d_k), nn.Linear(D_MODEL, d_k)
        self.W_v, self.head = nn.Linear(D_MODEL, D_MODEL), nn.Linear(D_MODEL, VALUES)

    def forward(self, keys: Tensor, shown: Tensor) -> Tensor:
        """Score the values: keys (B, 2 · pairs) and shown (B, pairs) to (B, pairs, VALUES)."""
        pairs = shown.shape[1]
        x = self.keys(keys) + F.pad(self.values(shown), (0, 0, 0, pairs))  # (B, 2 · pairs, d)
        context = self.attention(self.W_q(x), self.W_k(x), self.W_v(x))
        scores: Tensor = self.head(context[:, pairs:])
        return scores


def train(model: nn.Module, steps: int = STEPS, seed: int = 0, label: str = "training") -> None:
    """Train on fresh sequences; their pairs grow from 4 to PAIRS over the first half of the steps.

    While nbgrader runs the notebook, there are a few steps only.
    """
    steps, draw = fewer(steps), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1
    )

    def loss(step: int) -> Tensor:
        pairs = min(PAIRS, 4 + round((PAIRS - 4) * 2 * step / steps))
        keys, shown, answers = make(BATCH, pairs, draw)
        return F.cross_entropy(model(keys, shown).flatten(0, 1), answers.flatten())

    with Bar(steps, label) as bar:
        descend(model, map(loss, range(steps)), optimizer, schedule, bar)


@torch.no_grad()
def right(model: nn.Module, count: int = 500, pairs: int = PAIRS) -> tuple[float, Tensor]:
    """Return the share of right answers, and the share by how far back the pair stood.

    The second one is (2 · pairs,): entry n is for n positions back. Entry 0 is NaN.
    """
    keys, shown, answers = make(count, pairs, torch.Generator().manual_seed(1_000_000))
    found = model(keys, shown).argmax(dim=2) == answers  # (B, pairs)
    same = keys[:, pairs:, None] == keys[:, None, :pairs]  # (B, pairs, pairs)
    distance = torch.arange(pairs, 2 * pairs) - same.int().argmax(dim=2)  # (B, pairs)
    sums = torch.zeros(2 * pairs).index_add(0, distance.flatten(), found.flatten().float())
    return found.double().mean().item(), sums / distance.flatten().bincount(minlength=2 * pairs)


SEEDS = (0, 1, 2)
D_K = 16
FEATURES: dict[str, Callable[[Tensor], Tensor]] = {
    "elu(x) + 1": lambda x: F.elu(x) + 1,
    "its square": lambda x: (F.elu(x) + 1) ** 2,
    "its fourth power": lambda x: (F.elu(x) + 1) ** 4,
    "exp(x)": lambda x: x.clamp(max=20).exp(),
    "softmax of x": lambda x: x.softmax(-1),
    "exp(x), exp(−x)": lambda x: torch.cat([x, -x], -1).clamp(max=20).exp(),
}


def recall_with(
    features: str, seed: int, linear_attention: Any, steps: int = STEPS
) -> dict[str, float]:
    """Train one layer of linear attention with these features; shares right of PAIRS pairs, and 4.

    All positions see all others, and the features are positive: a sum of them is never 0.
    """
    phi = FEATURES[features]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with mock.patch.dict(linear_attention.__globals__, positive_features=phi):
            context: Tensor = linear_attention(q, k, v)
        return context

    torch.manual_seed(seed)
    model = Recaller(attend, D_K)
    train(model, steps, seed)
    shares = (right(model, pairs=pairs)[0] for pairs in (PAIRS, 4))
    return dict(zip(("right", "right of 4"), (round(share, 4) for share in shares), strict=True))


SHORT = {"features": "exp(x), exp(−x)", "seed": 0, "steps": 100}

EXPERIMENTS = {
    "features": Experiment(
        claim="Of five other features for linear attention, only twice as many recall more of 32 "
        "pairs",
        control="the features; d_k = 16, task, 500 steps and rate kept",
        points=[
            *({"features": name, "seed": seed} for name in FEATURES for seed in SEEDS),
            SHORT,
        ],
        run=recall_with,
        again=SHORT,
    ),
}

CLAIMS = [
    Claim(
        claim="Tiles give the result of dense attention with less memory; the fused kernel "
        "is the quickest exact one",
        control="the same inputs, dense attention in the same run",
        seeds="none: the shortest of several runs",
        where="What it costs",
    ),
    Claim(
        claim="A recurrent form takes the same time for each token, a cache more with each",
        control="the length; heads and d kept",
        seeds="none: the shortest of several runs",
        where="Attention as a recurrent network",
    ),
    Claim(
        claim="Linear attention recalls many pairs only with enough features, a window only"
        " within its reach",
        control="d_k, pairs, distance and steps, one at a time; dense attention beside",
        seeds="0, 1, 2",
        where="What is given up",
    ),
]
