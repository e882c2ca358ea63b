"""Answers of lesson 04: how many pairs a rank holds, and what learned queries and keys do."""

import torch

from attention.provided.descent import take_steps
from attention.score_functions import score
from benchmarks.evidence import Experiment, seeded

SEEDS = (0, 1, 2)
CROSSINGS = (4, 5, 6)  # seeds of the lesson's own
D = 8  # length of their queries and keys


def crossing(kind, pairs, seed, r=1, steps=150, learned=False):
    """Train scores such that query i finds key pairs - 1 - i, as the lesson does for six pairs.

    learned  whether queries and keys are learned as well
    returns  "found", how many queries have their largest weight on the wanted key, and "weight",
             the mean weight there
    """
    draw = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(1, pairs, D, generator=draw) for _ in range(2))
    shapes = {"V": (r, D), "U": (r, D)} if kind == "reduced_rank" else {}
    if kind == "reduced_rank":
        torch.randn(D, D, generator=draw)  # the lesson draws the matrix of "bilinear" first
    weights = {name: 0.3 * torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    trained = [*weights.values(), *((q, k) if learned else ())]
    optimizer = torch.optim.Adam([one.requires_grad_() for one in trained], lr=0.03)
    wanted = torch.arange(pairs - 1, -1, -1)

    def shares():
        return score(kind, q, k, weights).softmax(dim=2)[0]  # (T_q, T_k)

    def loss():
        return -shares()[torch.arange(pairs), wanted].log().mean()

    for _ in take_steps((loss() for _ in range(steps)), optimizer):
        pass
    with torch.no_grad():
        found = shares()
    return {
        "found": int((found.argmax(dim=1) == wanted).sum()),
        "weight": round(found[torch.arange(pairs), wanted].mean().item(), 4),
    }


EXPERIMENTS = {
    "04 pairs that a rank holds": Experiment(
        claim="Rank 1 lets two queries find their key, of 3 pairs and of 4; rank 2 lets all of 4 "
        "and of 8, and nearly all of 12",
        control="r, and the number of pairs; d = 8, 1000 steps and rate kept",
        points=[
            point
            for r, pairs in ((1, 3), (1, 4), (2, 4), (2, 8), (2, 12))
            for point in seeded(SEEDS, kind="reduced_rank", r=r, pairs=pairs, steps=1000)
        ],
        run=crossing,
        again={"kind": "reduced_rank", "r": 1, "pairs": 3, "steps": 1000, "seed": 0},
    ),
    "04 learned queries and keys": Experiment(
        claim="Where queries and keys are learned, the dot product draws the crossing, scaled or "
        "not",
        control="queries and keys learned, or kept as they are (“What each of them can say”); six "
        "pairs, 150 steps and rate kept",
        points=[
            point
            for kind in ("dot", "scaled_dot")
            for point in seeded(CROSSINGS, kind=kind, pairs=6, learned=True)
        ],
        run=crossing,
        again={"kind": "dot", "pairs": 6, "learned": True, "seed": 4},
    ),
}
