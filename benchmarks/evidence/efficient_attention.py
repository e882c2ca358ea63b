"""What lesson 18 claims. `make bench-efficient-attention` measures what its claims say.

The experiment is that of its second open question.
"""

import torch
from torch.nn import functional as F

from attention.provided import recall
from benchmarks.evidence import Claim, Experiment

SEEDS = (0, 1, 2)
D_K = 16
FEATURES = {
    "elu(x) + 1": lambda x: F.elu(x) + 1,
    "its square": lambda x: (F.elu(x) + 1) ** 2,
    "its fourth power": lambda x: (F.elu(x) + 1) ** 4,
    "exp(x)": lambda x: x.clamp(max=20).exp(),
    "softmax of x": lambda x: x.softmax(-1),
    "exp(x), exp(−x)": lambda x: torch.cat([x, -x], -1).clamp(max=20).exp(),
}


def recall_with(features, seed, steps=recall.STEPS):
    """Train one layer of linear attention with these features; shares right of PAIRS pairs, and 4.

    All positions see all others, and the features are positive: a sum of them is never 0.
    """
    phi = FEATURES[features]

    def attend(q, k, v):
        q, k = phi(q), phi(k)
        return q @ (k.mT @ v) / (q @ k.sum(-2).unsqueeze(-1))

    torch.manual_seed(seed)
    model = recall.Recaller(attend, D_K)
    recall.train(model, steps, seed)
    shares = (recall.right(model, pairs=pairs)[0] for pairs in (recall.PAIRS, 4))
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
